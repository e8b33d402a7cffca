"""What a statement vouches for, said once: the facts of a lineage and of a final model.

The statement's page, the report, the model card and what `dpladder register` files are templates
over them. Figures here are as exact as the statement's own; a template rounds each by a filter
(templates.py).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import NormalDist

from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.rounding import mu_up, round_down, round_up, round_up_short
from dpladder.privacy.ledger.book import OWN_CODE
from dpladder.privacy.ledger.limits import lifetime_cost, remaining_epsilon
from dpladder.privacy.ledger.state import State, Terms
from dpladder.privacy.statement.build import MODIFIED
from dpladder.privacy.statement.documents import (
    TEST_SCORE,
    Cost,
    Stated,
    StatedModel,
    StatedSpend,
    Statement,
)

FALSE_ALARMS_PERCENT = 5  # at which the best attack's hits are told
FALSE_ALARMS = FALSE_ALARMS_PERCENT / 100
MOST_COSTS = 4  # models that are told one by one
# what each rule's charge is called, and what of it goes without saying
BOUGHT = {
    "count_units": "units by class",
    "estimate_mean": "feature mean",
    "estimate_sums": "shared sums",
    "estimate_head": "first head",
    "train_final": "final training",
    "private_search": "private search",
    "evaluate": "test count",
    "evaluate_also": "further test counts",
}
UNSAID = ("class counts", "mean", "sums", "head", "weights", TEST_SCORE)


@dataclass(frozen=True)
class LineageFacts:
    """One lineage of a statement.

    Attributes:
        statement: that states it.
        name: of the lineage.
    """

    statement: Statement
    name: str

    @property
    def stated(self) -> Stated:
        """Its figures, under its own relation and at its own delta."""
        return self.statement.datasets[self.name]

    @property
    def charges(self) -> list[tuple[StatedSpend, str, int]]:
        """What was paid, equal charges as one."""
        return charges_of(self.stated)

    @property
    def bound(self) -> Cost | None:
        """The figure that is guaranteed for one unit (contract: lifetime-first).

        It is the limit, where one was declared: later runs are held to it, too. Else it is what was
        spent so far, where nothing was planned after the first release. Else it is None. For
        whoever chose a later spend because of an earlier result could as well have gone on, so
        nothing that was spent bounds it.
        """
        stated = self.stated
        if stated.lifetime_epsilon is not None:
            return Cost(stated.lifetime_epsilon, stated.lifetime_mu)
        if not stated.planned:
            return None
        exact = stated.accountant == "exact" and not stated.outside_this_dag.jobs
        return Cost(stated.lifetime_spent, stated.mu if exact else None)

    @property
    def guarantee(self) -> str:
        """What is guaranteed, in one sentence. The lifetime limit comes first (contract:
        lifetime-first). What was spent so far is called a guarantee only where all of it was
        planned before its first release."""
        stated = self.stated
        delta, spent = round_up_short(stated.delta), round_up(stated.lifetime_spent)
        if self.statement.mode == "research":
            return (
                f"Lineage {self.name}: research mode, NOT A RELEASE. Its data is declared public, "
                "its noise may be seeded and its tests are counted exactly, so nothing is "
                f"guaranteed; what is noised would have cost a release epsilon = {spent} at delta "
                f"= {delta}."
            )
        if stated.lifetime_epsilon is not None:
            return _limit_sentence(self.name, stated.lifetime_epsilon, stated.delta, stated.unit)
        if self.bound is None:
            return (
                f"Lineage {self.name}: no lifetime limit was declared, and some of what was spent "
                "was planned after earlier results were out, so no figure is a guarantee. "
                f"Everything so far composes to epsilon = {spent} at delta = {delta}."
            )
        return (
            f"Lineage {self.name}: all of this was planned before its first release, and together "
            f"it is ({spent}, {delta})-differentially private for each {stated.unit}. No lifetime "
            "limit was declared, so nothing is promised about later runs."
        )

    @property
    def costs(self) -> Iterator[str]:
        """Behind the guarantee: what each final model costs with all that may have steered it, and
        how much of the limit is spent. Of more models than MOST_COSTS, the dearest."""
        models = self.stated.artifacts.values()
        if self.statement.mode == "research":
            return
        if 0 < len(models) <= MOST_COSTS:
            several = Counter(one.experiment for one in models)
            yield " ".join(
                f"The final model of {one.experiment}"
                + (
                    f" for target {round_up_short(one.target_epsilon)}"
                    if several[one.experiment] > 1
                    else ""
                )
                + f" costs epsilon = {round_up(one.stated.epsilon)}, its search"
                f"{' and all releases before it' if one.with_earlier else ''} included."
                for one in models
            )
        elif models:
            most = round_up(max(one.stated.epsilon for one in models))
            yield f"None of the {len(models)} final models costs more than epsilon = {most}."
        if self.stated.lifetime_epsilon is not None:
            yield _spent_sentence(round_up(self.stated.lifetime_spent))

    @property
    def choice(self) -> str | None:
        """What a choice among several models costs, which no figure of one model sees."""
        if self.stated.chosen is None:
            return None
        return (
            f"If a final model of lineage {self.name} was chosen among these, retired ones "
            "included, because of anything that was released: epsilon = "
            f"{cost_text(self.stated.chosen)}, whichever it is."
        )

    @property
    def protected(self) -> str:
        """Whose privacy is protected, in words."""
        unit, cap = self.stated.unit, self.stated.cap
        if unit == "record":
            return "each record"
        if unit == "document":
            return f"each document, of which at most {cap} spans count"
        if cap == 1:  # of several, or the mean of all
            return f"each {unit}, who counts as one record at most"
        return f"each {unit}, of whom at most {cap} records count"

    @property
    def several_records(self) -> bool:
        """Whether a person may have several units."""
        return self.stated.unit in ("record", "document")

    @property
    def detectable(self) -> str | None:
        """How many of its units the best attack finds; None where nothing bounds it."""
        return None if self.bound is None else detection_rate_text(self.bound, self.stated.delta)

    @property
    def epsilon_left(self) -> str | None:
        """Epsilon of the largest Gaussian release that the limit still has room for; None where no
        single mu says the limit."""
        stated = self.stated
        if stated.lifetime_mu is None:
            return None
        spent = stated.lifetime_spent and gdp.mu_from_epsilon(stated.lifetime_spent, stated.delta)
        room = gdp.remaining(stated.lifetime_mu, [spent])
        return round_down(gdp.epsilon(room, stated.delta) if room else 0.0)

    @property
    def groups(self) -> tuple[tuple[int, Cost], ...]:
        """What all of this DAG costs two, three and four units together, where a mu says it."""
        mu = self.stated.mu if self.stated.accountant == "exact" else None
        return tuple((k, group_cost(mu, self.stated.delta, k)) for k in (2, 3, 4)) if mu else ()

    @property
    def notes(self) -> list[str]:
        """What releases rest on beside dpladder."""
        return _notes_on_releases(self.stated.spends)

    @property
    def own_code(self) -> bool:
        """Whether mechanisms outside dpladder spent on it."""
        lines = (*self.stated.spends, *self.stated.outside_this_dag.spends)
        return any(line.experiment == OWN_CODE for line in lines)


@dataclass(frozen=True)
class ModelFacts:
    """One final model of a statement.

    Attributes:
        lineage: whose data it was trained on.
        path: of its weights.
    """

    lineage: LineageFacts
    path: str

    @property
    def price(self) -> StatedModel:
        """What it and its search cost alone. With all that may have steered it it costs the price's
        `stated`."""
        return self.lineage.stated.artifacts[self.path]

    @property
    def notes(self) -> list[str]:
        """How what it stands on was made, where the dpladder that stated it would make it
        otherwise; and whether that was its commit's."""
        jobs = {job_named.job for job_named in self.price.jobs}
        lines = (
            line for line in self.lineage.stated.spends if line.job in jobs and not line.superseded
        )
        releases = (f"Releases of {note}." for note in _notes_on_releases(lines))
        return [*releases, *modified_code_warning(self.lineage.statement)]


def lineage_facts(statement: Statement) -> tuple[LineageFacts, ...]:
    """The facts of each lineage, in the statement's order."""
    return tuple(LineageFacts(statement, name) for name in statement.datasets)


def _notes_on_releases(lines: Iterable[StatedSpend]) -> list[str]:
    """What releases rest on beside dpladder: each thing once, with how many releases they are."""
    jobs_and_ways = dict.fromkeys((line.job, line.made) for line in lines if line.made)
    ways = Counter((job.experiment, made_text) for job, made_text in jobs_and_ways)
    return [
        f"{experiment}: {made_text} ({count} released)"
        for (experiment, made_text), count in ways.items()
    ]


def cost_text(cost: Cost) -> str:
    """An epsilon as shown, and beside it the mu where a single one says it."""
    return round_up(cost.epsilon) + ("" if cost.mu is None else f" (mu = {mu_up(cost.mu)})")


def group_cost(mu: float, delta: float, size: int) -> Cost:
    """What somebody with several units bears of mu-GDP: k mu, at the same delta. Each of k
    neighbours on the way adds mu to Phi^-1 of a probability at most (Dong, Roth & Su 2019, on
    groups).

    Args:
        mu: of the guarantee for one unit.
        delta: the lineage's.
        size: k, the number of units.
    """
    return Cost(gdp.epsilon(size * mu, delta), size * mu)


def detection_rate_text(bound: Cost, delta: float) -> str:
    """The true positives of the best test at FALSE_ALARMS, in percent, rounded up.

    A mu-GDP release allows Phi(Phi^-1(alpha) + mu) (Dong, Roth & Su 2019, (6)). Any (eps, delta)-DP
    one allows min(e^eps alpha + delta, 1 - e^-eps (1 - delta - alpha)) (Kairouz, Oh & Viswanath
    2015, Theorem 2.1).

    Args:
        bound: the guarantee. Where it has a mu, the smaller of both bounds is told.
        delta: the lineage's.
    """
    normal = NormalDist()
    odds = math.exp(min(bound.epsilon, 700.0))
    most = min(odds * FALSE_ALARMS + delta, 1.0 - (1.0 - delta - FALSE_ALARMS) / odds, 1.0)
    if bound.mu is not None:
        most = min(most, normal.cdf(normal.inv_cdf(FALSE_ALARMS) + bound.mu))
    return f"{round_up(100 * most, 1)} %"


def closing_line(terms: Terms, state: State) -> str:
    """Where a lineage stands by its ledger alone, at the end of a run that may have stated nothing.

    Args:
        terms: what the lineage was opened with.
        state: what its ledger holds; all that was charged counts, released or not.
    """
    spent, delta = (
        round_up(lifetime_cost(terms, state.charged_spends()).epsilon),
        round_up_short(terms.delta),
    )
    if terms.mode == "research":
        return (
            f"Lineage {terms.lineage}: research mode, NOT A RELEASE. Nothing is guaranteed; what "
            f"is noised would have cost a release epsilon = {spent} at delta = {delta} so far."
        )
    if terms.lifetime_epsilon is not None:
        promise = _limit_sentence(terms.lineage, terms.lifetime_epsilon, terms.delta, terms.unit)
        fits = (
            f"One more release of up to epsilon = "
            f"{round_down(remaining_epsilon(terms, state.charged_spends()))} would still fit. That "
            "is not the limit less what is spent, for epsilons do not add."
        )
        return f"{promise} {_spent_sentence(spent)} {fits}"
    return (
        f"Lineage {terms.lineage}: no lifetime limit was declared, so no lifetime guarantee can be "
        f"given. So far epsilon = {spent} at delta = {delta} is spent, which is no guarantee by "
        "itself."
    )


def _limit_sentence(lineage: str, limit: float, delta: float, unit: str) -> str:
    """The promise for life, which later runs are held to as well. So it does not change as more is
    spent."""
    epsilon = round_up_short(limit)
    return (
        f"Lineage {lineage}: all that was or will ever be released about it is held to epsilon = "
        f"{epsilon} for each {unit}, a limit declared beforehand and enforced. With the delta that "
        f"was declared beside it, it is ({epsilon}, {round_up_short(delta)})-differentially "
        f"private."
    )


def _spent_sentence(spent: str) -> str:
    """How far a limit is used up, said so that nobody takes what was spent for the guarantee."""
    return f"So far epsilon = {spent} of the limit is spent. The limit is the guarantee."


def modified_code_warning(statement: Statement) -> Iterator[str]:
    """Whether the code that composed a statement was that of its commit: nothing where it was, or
    where there is no clone."""
    commit = statement.origin.commit
    if commit is not None and commit.endswith(MODIFIED):
        yield (
            "This statement was composed by modified code: the clone's files are not those of "
            f"commit {commit.removesuffix(MODIFIED)}."
        )


def charges_of(stated: Stated) -> list[tuple[StatedSpend, str, int]]:
    """A lineage's spends in the statement's order, equal ones as one, as of several trials.

    Returns:
        One of each group, what it bought in words, and how many there are.
    """
    groups: dict[tuple[object, ...], list[StatedSpend]] = {}
    for line in stated.spends:
        key = (line.experiment, line.partition, line.count, line.mu, line.epsilon, line.superseded)
        groups.setdefault((*key, _bought(line)), []).append(line)
    return [(lines[0], _bought(lines[0]), len(lines)) for lines in groups.values()]


def _bought(line: StatedSpend) -> str:
    """What a charge bought, in words."""
    if line.rule == "run_trial":
        what = "score" if line.label == "score" else "training"
        return f"rung {line.wildcards['rung']}, {what} of a trial"
    words = [BOUGHT.get(line.rule, line.rule)]
    words += [
        f"total ε = {value}" if key == "target" else value for key, value in line.wildcards.items()
    ]
    return ", ".join(
        words if line.label in UNSAID else [*words, line.label.removeprefix(f"{TEST_SCORE}, ")]
    )
