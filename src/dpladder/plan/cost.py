"""What each job of a plan costs, and how a total is divided among them.

Rungs, trials and further tests have budgets of their own; the final training gets what the total
leaves to it. Nothing here reads a private record or a ledger: what is paid already comes in as
spends.

All budgets are mus of Gaussian differential privacy, which add in squares on one partition. An
epsilon of the config becomes a mu at the lineage's delta; mechanisms that are Gaussian only up to a
small probability are booked at a delta0 beside their mu (privacy/accounting/booking.py).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dpladder.config import Config
from dpladder.config.search_sections import Ladder, SearchSection
from dpladder.config.searches import PrivateSearch
from dpladder.config.sweep_sections import Rung
from dpladder.errors import BadInput, Refused
from dpladder.plan import follows
from dpladder.plan.dag import Dag
from dpladder.plan.node import Node
from dpladder.plan.rules import RULES, purchases
from dpladder.privacy.accounting import booking, gdp, remaining
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.accounting.composition import compose
from dpladder.privacy.accounting.events import (
    Booked,
    Counted,
    Gaussian,
    Job,
    Partition,
    Spend,
    partition_version,
)
from dpladder.privacy.accounting.selection import largest
from dpladder.privacy.statement.documents import FINALS, TEST_SCORE
from dpladder.search.cost import price

TRAIN, TEST = "train", "test"
FINAL_SHARE = 0.5  # of mu^2, that a proposed plan leaves to the final training
# Share of a total's mu. Less is what rounding leaves of a total that is spent: it buys no usable
# model and no usable count.
CRUMBS = 1e-4
# Share of a total's epsilon. Less is what rounding leaves after a search that is paid for: mus add
# in squares, so a small error looks like 1 % of the total.
LEAST_SEARCH = 0.02
TEST_SHARE = 0.05  # of mu^2, for the test count where it does not compose in parallel

Spends = dict[Job, tuple[Spend, ...]]


@dataclass(frozen=True)
class TrialBudget:
    """One trial's mu, split between its weights and its score: weights^2 + score^2 = total^2.

    Attributes:
        total: of the trial.
        weights: of its training; None where it solves sums that were released before.
        score: of its count; None where it is counted on a source declared public.

    Where both stand, they are two events of one job. A share of mu^2 goes to the score, whose noise
    decides how well trials are told apart.
    """

    total: float
    weights: float | None
    score: float | None


def trial_budget(config: Config, rung: int) -> TrialBudget:
    """mu of one trial at its rung's epsilon; a share of its square pays for the score. Solving
    shared sums is free, which leaves all of it to the score.

    Args:
        config: the experiment's.
        rung: its number, from 0.
    """
    total = _mu_of(config, config.sweep.ladder[rung].epsilon, booking.TRIAL)
    public = config.sweep.select.by == "public"
    if config.learner.trials_are_solved:
        return TrialBudget(total, None, None if public else total)
    if public:
        return TrialBudget(total, total, None)
    score = math.sqrt(config.sweep.select.share) * total
    return TrialBudget(total, gdp.remaining(total, [score]), score)


def _mu_of(config: Config, epsilon: float, runs: int) -> float:
    """The mu that one training may spend at this epsilon. On samples it also uses up delta0:
    `runs` (booking.TRIAL or FINAL) of its kind fit into the lineage's share of delta."""
    delta = config.privacy.delta
    return booking.largest_mu(epsilon, delta, Entry(delta0=_delta0(config, runs)))


def _delta0(config: Config, runs: int) -> float:
    """Probability of revealing everything that a training is booked at: a part of the share of
    delta that the config declares for its lineage."""
    if not samples(config):
        return 0.0
    share = config.privacy.share
    return booking.delta0_of(
        config.privacy.delta, runs, booking.SAMPLED_SHARE if share is None else share
    )


def needed_share(config: Config) -> float:
    """Share of a lineage's delta that an experiment needs by default for events that are Gaussian
    only up to a small probability.

    Returns:
        0 where every event is Gaussian, so that nothing of delta is kept back from the mus.
    """
    if samples(config):
        return booking.SAMPLED_SHARE
    hpo = config.hpo
    return booking.SHARE if isinstance(hpo, SearchSection) and hpo.needs_delta else 0.0


def partition(config: Config, *parts: str) -> Partition:
    """A unit's hashed part holds for a version of the data. Parts as given may change with an edit,
    so a unit may have been in two of them. Each is a rule of its own, and what reads them adds
    (contract: disjoint-parts).

    Args:
        config: whose split rule and version of the data count.
        *parts: that a mechanism reads; none where the split rule alone is wanted.
    """
    split, version = config.dataset.split, partition_version(config.dataset.version)
    if split.rule == "given":
        return Partition(f"given {' '.join(parts)}".strip(), parts, version)
    rule = f"hash test={split.held_out!r} validation={split.validation!r}"
    return Partition(rule, parts, version)


def _parallel(config: Config) -> bool:
    """Whether the test part is paid for beside the training part. A replaced unit may touch
    both."""
    return config.dataset.split.rule == "hash" and config.privacy.relation == "add_remove"


def samples(config: Config) -> bool:
    """Whether trainings see Poisson samples, and so use up delta0."""
    return config.learner.sampling < 1.0


def flatten_spends(spends: Spends) -> list[Spend]:
    """All spends of some jobs, one after the other."""
    return [spend for of_job in spends.values() for spend in of_job]


def sweep_costs(dag: Dag, name: str) -> Spends:
    """The spends that every target of an experiment stands on: the noised mean, the
    sums that trainings share, and the sweep.

    Args:
        dag: all jobs; one that two experiments share is the first one's.
        name: of the experiment.

    Returns:
        Spends by job. Where two jobs are one for several experiments, all name its owner's.
    """
    config = dag.project.experiments[name]
    jobs: Spends = {}
    for rule, spend in _purchase_spends(config):
        jobs |= {node.job: (spend,) for node in dag.jobs(name, rule)}
    for number, _ in enumerate(config.sweep.ladder):
        if spends := _trial_spends(config, number):
            trials = dag.jobs(name, "run_trial", rung=str(number))
            jobs |= {node.job: spends for node in trials}
    return jobs


def _purchase_spends(config: Config) -> Iterator[tuple[str, Spend]]:
    """What is bought once for all trainings that stand on it, at an epsilon that the config names.
    Its job asks `reservation.mu` for the same label."""
    for rule, bought in purchases(config):
        mu = gdp.mu_from_epsilon(bought.epsilon, config.privacy.delta)
        yield rule, _spend(config, TRAIN, mu, RULES[rule].label)


def _trial_spends(config: Config, rung: int) -> tuple[Spend, ...]:
    """Solving shared sums and counting on a public source cost nothing."""
    cost = trial_budget(config, rung)
    spends = []
    if cost.weights is not None:
        delta0 = _delta0(config, booking.TRIAL)
        spends.append(_spend(config, TRAIN, cost.weights, "weights", delta0))
    if cost.score is not None:
        spends.append(_spend(config, config.sweep.select.part, cost.score, "score"))
    return tuple(spends)


def final_jobs(dag: Dag, name: str, target: float) -> tuple[Node, ...]:
    """The final training, or the private search that puts its model out, and its evaluations on a
    private test part. The further ones come first, for their prices are given.

    Args:
        dag: all jobs.
        name: of the experiment.
        target: the total, as the config has it.

    Returns:
        The final one first. A test that is counted exactly costs nothing, and is not among them.
    """
    return tuple(
        node
        for rule in (*FINALS, "evaluate_also", "evaluate")
        for node in dag.jobs(name, rule, target=follows.target_name(target))
        if not all(follows.counts_exactly(node.config, part) for part in node.parts)
    )


def final_costs(
    dag: Dag,
    name: str,
    target: float,
    before: list[Spend],
    priced: Mapping[Job, tuple[Spend, ...]],
) -> Spends:
    """What a final model and its tests cost, in the order in which a total is divided. First comes
    what is priced already, then tests with an epsilon of their own, last the training, which gets
    what the total leaves.

    Args:
        dag: all jobs.
        name: of the experiment.
        target: the total.
        before: all that was spent before it on the same people.
        priced: what is done already, or another experiment's too.

    Returns:
        The spends of each job, the final training first.

    Raises:
        Refused: the total leaves nothing, or next to nothing.
    """
    config = dag.project.experiments[name]
    final, *tests = (node.job for node in final_jobs(dag, name, target))
    spends = {job: priced[job] for job in (final, *tests) if job in priced}
    # A search takes all that is left of the total, so it is priced before the test part is.
    if final.rule == "private_search" and final not in spends:
        spends[final] = _search(config, target, before)
    for test in tests:
        if test not in spends:
            other_spends = [*before, *flatten_spends(spends)]
            mu = _mu_of_further_test(config, test) or _test_mu(
                config, target, other_spends, final in spends
            )
            spends[test] = (_spend(config, TEST, mu, TEST_SCORE),)
    if final not in spends:
        mu = _final_mu(config, target, [*before, *flatten_spends(spends)])
        spends[final] = tuple(_final_spends(config, mu))
    return {job: spends[job] for job in (final, *tests)}


def _final_spends(config: Config, mu: float) -> Iterator[Spend]:
    """The final training's weights, and of its mu^2 the share that calibrates them."""
    calibrate, delta0 = config.final.calibrate, _delta0(config, booking.FINAL)
    if calibrate is None or calibrate.share is None:
        yield _spend(config, TRAIN, mu, "weights", delta0)
        return
    bought = math.sqrt(calibrate.share) * mu
    yield _spend(config, TRAIN, gdp.remaining(mu, [bought]), "weights", delta0)
    yield _spend(config, TRAIN, bought, "calibration")


def _search(config: Config, target: float, before: Sequence[Spend]) -> tuple[Spend, ...]:
    """A private search spends the whole total, or what is bought before it left of it. The test
    part is paid for beside it (config/check.py)."""
    hpo, delta = config.hpo, config.privacy.delta
    assert not isinstance(hpo, Ladder)

    def spends(epsilon: float) -> tuple[Spend, ...]:
        events = price(hpo, epsilon, delta, config.privacy.relation)
        return tuple(
            _spend_of(config, TRAIN, one, label)
            for one, label in zip(events, _labels(hpo, events), strict=True)
        )

    def cost(epsilon: float) -> float:
        try:
            return compose([*before, *spends(epsilon)], delta).epsilon
        except BadInput:  # too little for any training
            return math.inf

    if not before:
        return spends(target)
    try:
        left = largest(cost, target, target, 2**-12)
    except BadInput:
        left = 0.0
    if left < LEAST_SEARCH * target:
        raise Refused(f"Nothing of epsilon {target:g} is left for {hpo.name}.")
    return spends(left)


def _labels(hpo: PrivateSearch, events: Sequence[Counted]) -> Iterator[str]:
    """A spend is known by its label, so no two of a job may have the same."""
    seen: Counter[str] = Counter()
    for one in events:
        label = _label(hpo, one)
        seen[label] += 1
        yield label if seen[label] == 1 else f"{label} {seen[label]}"


def _label(hpo: PrivateSearch, one: Counted) -> str:
    """What a search's event buys. Whether its runs are padded is a part of what its figure rests
    on."""
    if isinstance(one.event, Booked):
        return "tests"
    return "search, not padded" if not getattr(hpo, "padded", True) else "search"


def _final_mu(config: Config, target: float, before: Sequence[Spend]) -> float:
    """The mu of the final training, which is `final.budget`'s where it is a number. Where it is
    `remaining`, it is what the total leaves, mu_f = sqrt(B^2 - sum mu^2)."""
    if config.final.budget != "remaining":
        return _mu_of(config, config.final.budget, booking.FINAL)
    try:
        return _remaining_mu(config, target, before, TRAIN, _delta0(config, booking.FINAL))
    except Refused as refused:
        raise Refused(
            f"total epsilon {target:g} is infeasible. {refused} {_nearest(config, target)}"
        ) from None


def _remaining_mu(
    config: Config, target: float, before: Sequence[Spend], part: str, delta0: float = 0.0
) -> float:
    """What a total leaves to one more mechanism on a part.

    Raises:
        Refused: nothing is left, or less than CRUMBS of the total's mu.
    """
    delta = config.privacy.delta
    left = remaining.remaining_mu(target, delta, before, partition(config, part), delta0)
    if left < CRUMBS * gdp.mu_from_epsilon(target, delta):
        raise Refused(
            f"What is spent before uses up epsilon {target:g}. Raise the total, or spend less "
            "before."
        )
    return left


def _test_mu(config: Config, target: float, before: Sequence[Spend], priced: bool) -> float:
    """The mu of the noised test count.

    Args:
        before: All spends that the total covers so far.
        priced: Whether the model's price is among them: then the count gets what is left. If not,
            it gets as much as the final training where the parts compose in parallel. The test part
            still never bears more than the training part (contract: disjoint-parts). Elsewhere the
            count gets a share.
    """
    if config.evaluate.epsilon is not None:
        return gdp.mu_from_epsilon(config.evaluate.epsilon, config.privacy.delta)
    if priced:  # done, or a search, which takes the whole total
        return _remaining_mu(config, target, before, TEST)
    left = _final_mu(config, target, before)
    if not _parallel(config):
        return left * math.sqrt(TEST_SHARE)
    beside = remaining.remaining_mu(target, config.privacy.delta, before, partition(config, TEST))
    return min(left, beside)  # less only where further tests read the part too


def _mu_of_further_test(config: Config, test: Job) -> float | None:
    """What a further test's count costs by the config."""
    test_found = follows.further_tests(config).get(dict(test.wildcards).get("test", ""))
    if test_found is None:
        return None
    assert test_found.epsilon is not None, "config/check.py asks for it"
    return gdp.mu_from_epsilon(test_found.epsilon, config.privacy.delta)


def _nearest(config: Config, target: float) -> str:
    """The nearest plans that leave the final training its share, in one sentence with numbers."""

    def sweep(factor: float) -> list[Spend]:
        rungs = tuple(
            Rung(epsilon=rung.epsilon * factor, trials=rung.trials) for rung in config.sweep.ladder
        )
        scaled = config.model_copy(
            update={"sweep": config.sweep.model_copy(update={"rungs": rungs})}
        )
        bought = [spend for _, spend in _purchase_spends(config)]
        trials = (
            spend
            for number, rung in enumerate(rungs)
            for spend in _trial_spends(scaled, number) * rung.trials
        )
        return [*bought, *trials]

    delta, train = config.privacy.delta, partition(config, TRAIN)
    return remaining.sentence(remaining.nearest_feasible(target, delta, sweep, train, FINAL_SHARE))


def _spend(config: Config, part: str, mu: float, label: str, delta0: float = 0.0) -> Spend:
    """One Gaussian of this mu, booked at delta0 where the training samples. sigma = 1/mu, for
    sensitivity 1."""
    one = Counted(Gaussian(gdp.sigma(mu, 1)))
    return _spend_of(config, part, Counted(Booked((one,), delta0)) if delta0 else one, label)


def _spend_of(config: Config, part: str, one: Counted, label: str) -> Spend:
    """An event on a part of the config's lineage, by what it buys."""
    relation, where = config.privacy.relation, partition(config, part)
    return Spend(config.dataset.lineage, relation, where, one.event, one.count, label)
