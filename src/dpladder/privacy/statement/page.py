"""The statement as one page, in words: what a privacy officer reads and signs.

It follows from the statement's JSON byte for byte: no clock, no ledger and no config is read here.
So `dpladder verify` can hold the one against the other (docs/design.md, line 21).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import NormalDist

from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.rounding import (
    markdown_cell,
    mu_up,
    round_down,
    round_nearest,
    round_up,
    round_up_short,
)
from dpladder.privacy.ledger.book import OWN_CODE
from dpladder.privacy.ledger.limits import lifetime_cost, remaining_epsilon
from dpladder.privacy.ledger.state import State, Terms
from dpladder.privacy.statement.build import (
    MODIFIED,
    guarantee_of,
    limit_was_exceeded,
    notes_on_releases,
)
from dpladder.privacy.statement.documents import (
    Cost,
    SealedStatement,
    Stated,
    StatedModel,
    StatedSpend,
    Statement,
    counts_another_model,
)

AT_COST = (
    "The figures here count what such releases really cost, which is more than the totals that "
    "were asked for, and may be more than the lifetime limit: where it is, no figure above that "
    "limit was enforced, and nothing more may be spent."
)
MANY = 1_000_000  # released numbers that float64's slack is told for
FALSE_ALARMS_PERCENT = 5  # at which the best attack's hits are told
FALSE_ALARMS = FALSE_ALARMS_PERCENT / 100
WANTED = {
    "add_remove": "one more is",
    "replace_one": "a certain one, and not another in its place, is",
}
NEIGHBOURS = {
    "add_remove": "one unit more or less",
    "replace_one": "one unit replaced, whose old and new version may lie in two parts",
}


GLOSSARY = {
    "lineage": "a data set under one name for life, its later versions included",
    "unit": "whose privacy is protected: one record, one document or one person",
    "part": "training, validation or test; each unit lies in one",
    "release": "what was computed from the data and is published: weights, counts, means, all with "
    "noise",
    "epsilon": "how much one unit can change what is published; smaller is better",
    "delta": "a small probability that epsilon leaves out",
    "mu": "epsilon and delta in one figure. The squares of mu add up, and epsilons do not: what "
    "costs 1 and what costs 7.87 make 8 together, not 8.87",
    "limit": "the epsilon that all releases of a lineage's life may come to; nothing is released "
    "beyond it",
}
"""The words that a statement cannot do without."""


@dataclass(frozen=True)
class Wording:
    """What a statement of a workflow and one of a ledger alone (external_ledger/) say otherwise.

    Attributes:
        origin: what the releases are called together.
        person: what makes people the unit.
        relation: where the relation was chosen.
        published: what may be published, and what never.
        declared: what is public by declaration, and so not protected.
        lineage_phrase: who is trusted to name lineages.
        cut: what holds of clipping, where dpladder did it.
    """

    origin: str
    person: str
    relation: str
    published: str
    declared: str
    lineage_phrase: str
    cut: tuple[str, ...] = ()


WORKFLOW = Wording(
    origin="workflow",
    person="dataset.unit: {by: user}",
    relation="privacy.relation",
    published="May be published: all that lies in results/ and logs/, the config, and whatever is "
    "computed from them. Never: the data, private/ and DPLADDER_HOME.",
    declared="Declared public, so not protected: the whole config, with its list of classes, round "
    "sizes, bounds, grids and shares; and the sources that it names public_test, "
    "public_validation, public_sample or public_unlabelled, their labels included. What a "
    "training learns from them, at its start or at each step, is charged to nobody: of a "
    "source that is named so and is private, nothing is protected.",
    lineage_phrase="Sources and lineages belong to the operator, who is trusted to name them, and "
    "to give "
    "data that changed another dataset.version; whoever else chooses configs may not. No exit code "
    "and no file tells who is there: `dpladder check` alone compares lineages, versions and "
    "sources declared public, for the operator's eyes.",
    cut=(
        "Each record's part of a sum is cut to a little less than the noise is made for, which "
        "leaves room for what rounding adds. That a record is rounded alike wherever it stands "
        "among others is tried on each machine, on public noise, before a training is charged "
        "there.",
    ),
)
LEDGER = Wording(
    origin="results folder",
    person="a person (dpladder.Ledger's argument unit)",
    relation="relation",
    published="May be published: this statement with its records, what was released, and whatever "
    "is computed from them. Never: the data and DPLADDER_HOME.",
    declared="Public, so not protected: the names of spends, what they cost, sample rates and "
    "numbers of steps, and what these tell about the size of the data.",
    lineage_phrase="Lineages belong to the operator, who is trusted to name them: one for all data "
    "about "
    "the same people. The ledger sees no records, so it cannot find out that two lineages hold the "
    "same.",
)


def statement_wording(statement: Statement) -> Wording:
    """The words for this statement: one of a ledger alone has no config behind it."""
    return WORKFLOW if statement.config else LEDGER


def page(statement: SealedStatement) -> str:
    """One page that a privacy officer can sign: what is guaranteed, in plain words, and then the
    figures behind it."""
    lines = ["# Privacy statement", ""]
    if statement.mode == "research":
        lines += [
            "**This is not a release.** Research mode: the data is declared public, the noise may "
            "be seeded, and tests are counted exactly.",
            "",
        ]
    for lineage in statement.datasets:
        lines += [f"**{first_line(statement, lineage)}**", ""]
        lines += [line for sentence in costs(statement, lineage) for line in (sentence, "")]
    if statement.mode == "release":
        lines += ["## In plain words", "", *(f"- {line}" for line in plain_words(statement)), ""]
    lines += ["## What is stated, by whom and when", "", "| | |", "|---|---|"]
    lines += [*(f"| {what} | {words} |" for what, words in _facts(statement)), ""]
    lines += [line for bug in bugs_in(statement) for line in (f"**{bug}.** {AT_COST}", "")]
    for lineage, dataset in statement.datasets.items():
        here = statement_wording(statement).origin
        lines += [f"## Figures: lineage {lineage}", "", *_page_of(lineage, dataset, here)]
    lines += ["## What this rests on", "", *(f"- {line}" for line in _assumptions(statement)), ""]
    lines += ["## Words", "", "| | |", "|---|---|"]
    lines += [*(f"| {word} | {meaning} |" for word, meaning in GLOSSARY.items()), ""]
    lines += ["Signed: ______________________   Date: ______________", ""]
    return "\n".join(lines)


def bugs_in(statement: Statement) -> list[str]:
    """Why some releases cost more than was booked for them: each reason once, in the order of the
    spends. Empty where all is sound."""
    lines = (
        line
        for dataset in statement.datasets.values()
        for line in (*dataset.spends, *dataset.outside_this_dag.spends)
    )
    return list(dict.fromkeys(line.unsound for line in lines if line.unsound))


def _facts(statement: SealedStatement) -> Iterator[tuple[str, str]]:
    """The rows of the first table: what was declared and who declared it, whose privacy is
    protected, and what identifies this statement."""
    deployment, origin = statement.deployment or {}, statement.origin
    for key in ("name", "curators", "authors", "use", "data", "region", "access"):
        if key in deployment:
            words = (
                deployment[key] if isinstance(deployment[key], str) else ", ".join(deployment[key])
            )
            yield key, markdown_cell(words)
    for lineage, dataset in statement.datasets.items():
        yield f"protected in {lineage}", unit_text(dataset)
    yield "stated on", origin.date
    if statement.config:  # mechanisms outside the workflow have none
        yield "config", f"`{statement.config}` (`dpladder plan --json` shows it for a config)"
    yield "commit", f"`{origin.commit}`" if origin.commit else "none: not run from a clone"
    yield "id", f"`{statement.id}`"
    yield "seal", f"`{statement.seal}` (`dpladder verify` checks both)"


NO_PERSON = ("record", "document")  # units of which a person may have several


def unit_text(dataset: Stated) -> str:
    """Whose privacy is protected, in words."""
    if dataset.unit == "record":
        return "each record"
    if dataset.unit == "document":
        return f"each document, of which at most {dataset.cap} spans count"
    if dataset.cap == 1:  # of several, or the mean of all
        return f"each {dataset.unit}, who counts as one record at most"
    return f"each {dataset.unit}, of whom at most {dataset.cap} records count"


def plain_words(statement: Statement) -> Iterator[str]:
    """What the guarantee means for whom, without a formula. One sentence or several for each item
    of the page's list."""
    for lineage, dataset in statement.datasets.items():
        bound = guarantee_of(dataset)
        if bound is None:
            yield (
                f"Nobody in {lineage} is promised a figure: there is no limit, and some releases "
                "followed from earlier ones."
            )
            continue
        yield (
            f"Who is protected: {unit_text(dataset)} of {lineage}, which is the data's name for "
            "life, later versions included. Suppose that somebody sees everything that is "
            f"published, knows all the other {dataset.unit}s and wants to tell whether "
            f"{WANTED[dataset.relation]} among them. If {FALSE_ALARMS_PERCENT} % of those who are "
            "not in the data may be accused wrongly, at most "
            f"{detection_rate_text(bound, dataset.delta)} of those who are in it can be found. "
            f"Guessing alone finds {FALSE_ALARMS_PERCENT} %."
            + (
                ""
                if dataset.lifetime_epsilon is not None
                else " That is said of what is published so far."
            )
        )
        if dataset.unit in NO_PERSON:
            yield (
                f"The unit is a {dataset.unit}. A person with several {dataset.unit}s in the data "
                "is protected less than that: the figures for groups below are theirs. Where that "
                f"is so, {statement_wording(statement).person} is the right unit, in a lineage of "
                f"its own."
            )
    yield (
        "Against whom: everybody who is not trusted with the data itself, whatever else they know. "
        "Not against those who can read the data, the private folder or DPLADDER_HOME, who have it "
        "in the clear or the key to the noise."
    )
    yield (
        f"Epsilon bounds how much one {_units(statement)} in the data can change what is "
        "published: nothing becomes more than e to the epsilon times as likely. Delta, "
        f"{_deltas(statement)} here, is a small probability that this bound leaves out. Mu says "
        f"epsilon and delta in one figure. Telling whether one {_units(statement)} is in the data "
        "is as hard as telling from one draw whether a bell curve of width 1 stands at 0 or at mu. "
        "The smaller each of the three, the better the protection."
    )
    yield statement_wording(statement).published
    yield (
        "Not promised: that nothing can be guessed about somebody from what holds for people like "
        "them, whether or not they are in the data."
    )


def _units(statement: Statement) -> str:
    """The units of all lineages, each once, as one phrase."""
    return " or ".join(dict.fromkeys(dataset.unit for dataset in statement.datasets.values()))


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


def first_line(statement: Statement, lineage: str) -> str:
    """What is guaranteed about a lineage, in one sentence. The lifetime limit comes first
    (docs/design.md, line 17). What was spent so far is called a guarantee only where all of it was
    planned before its first release."""
    dataset = statement.datasets[lineage]
    delta, spent = round_up_short(dataset.delta), round_up(dataset.lifetime_spent)
    limit = dataset.lifetime_epsilon
    if statement.mode == "research":
        return (
            f"Lineage {lineage}: research mode, NOT A RELEASE. Its data is declared public, its "
            "noise may be seeded and its tests are counted exactly, so nothing is guaranteed; what "
            f"is noised would have cost a release epsilon = {spent} at delta = {delta}."
        )
    if limit is not None and limit_was_exceeded(dataset):
        return (
            f"Lineage {lineage}: its limit of epsilon = {round_up_short(limit)} was not kept. What "
            f"is published cost epsilon = {spent} at delta = {delta}, by a bug that is mended; "
            "nothing more may be spent."
        )
    if limit is not None:
        return _limit_sentence(lineage, limit, dataset.delta, dataset.unit)
    if guarantee_of(dataset) is None:
        return (
            f"Lineage {lineage}: no lifetime limit was declared, and some of what was spent was "
            "planned after earlier results were out, so no figure is a guarantee. Everything so "
            f"far composes to epsilon = {spent} at delta = {delta}."
        )
    return (
        f"Lineage {lineage}: all of this was planned before its first release, and together it is "
        f"({spent}, {delta})-differentially private for each {dataset.unit}. No lifetime limit "
        "was declared, so nothing is promised about later runs."
    )


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
            f"What is left fits epsilon = "
            f"{round_down(remaining_epsilon(terms, state.charged_spends()))}: the squares of mu "
            "add up, and epsilons do not."
        )
        return f"{promise} {_spent_sentence(spent)} {fits}"
    return (
        f"Lineage {terms.lineage}: no lifetime limit was declared, so no lifetime guarantee can be "
        f"given. So far epsilon = {spent} at delta = {delta} is spent, which is no guarantee by "
        "itself."
    )


def _limit_sentence(lineage: str, limit: float, delta: float, unit: str) -> str:
    epsilon = round_up_short(limit)
    return (
        f"Lineage {lineage}: all that was or will ever be released about it is held to epsilon = "
        f"{epsilon} for each {unit}, a limit declared beforehand and enforced. With the delta that "
        f"was declared beside it, it is ({epsilon}, {round_up_short(delta)})-differentially "
        f"private."
    )


def _spent_sentence(spent: str) -> str:
    return f"So far epsilon = {spent} of the limit is spent. The limit is the guarantee."


MOST_COSTS = 4  # models that are told one by one


def costs(statement: Statement, lineage: str) -> Iterator[str]:
    """Behind the promise: what each final model costs with all that may have steered it, and how
    much of the limit is spent. Of more models than MOST_COSTS, the dearest."""
    dataset = statement.datasets[lineage]
    models, counts = _models_and_counts(dataset.artifacts)
    if statement.mode == "research":
        return
    if 0 < len(models) <= MOST_COSTS:
        several = Counter(one.experiment for one in models.values())
        yield " ".join(
            f"The final model of {one.experiment}"
            + (
                f" for target {round_up_short(one.target_epsilon)}"
                if several[one.experiment] > 1
                else ""
            )
            + f" costs epsilon = {round_up(one.stated.epsilon)}, its search"
            f"{' and all releases before it' if one.with_earlier else ''} included."
            for one in models.values()
        )
    elif models:
        most = max(one.stated.epsilon for one in models.values())
        yield f"None of the {len(models)} final models costs more than epsilon = {round_up(most)}."
    if counts:
        most = max(one.stated.epsilon for one in counts.values())
        yield f"No count of another lineage's model costs more than epsilon = {round_up(most)}."
    if dataset.lifetime_epsilon is not None and not limit_was_exceeded(dataset):
        yield _spent_sentence(round_up(dataset.lifetime_spent))


def _page_of(lineage: str, dataset: Stated, here: str) -> list[str]:
    """The figures of one lineage as tables: all that was ever released, its models, its parts, each
    spend, and what groups of units bear.

    Args:
        lineage: its name.
        dataset: what is stated of it.
        here: what the releases are called together (`Wording.origin`).
    """
    delta, beside = dataset.delta, dataset.outside_this_dag
    lines = [
        f"Everything ever released about lineage {lineage}: epsilon = "
        f"{round_up(dataset.lifetime_spent)}.",
        "",
        f"This {here}'s releases together: epsilon = {round_up(dataset.epsilon)}{_mu_of(dataset)}. "
        "What else was spent, by others or on what is asked no longer: "
        + (
            f"epsilon = {round_up(beside.epsilon)}{_mu_of(beside)} over {beside.jobs} jobs."
            if beside.jobs
            else "nothing."
        ),
        "",
        *_models(lineage, dataset),
        "| part of the data | epsilon of all that reads it | mu |",
        "|---|---|---|",
        *(
            f"| {part} | {round_up(figure.epsilon)} | {_mu(figure.mu)} |"
            for part, figure in dataset.partitions.items()
        ),
        "",
        "| rule | experiment | buys | reads | how often | epsilon of each line | mu |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {line.rule} {_where(line)} | {line.experiment} | "
        f"{line.label}{' (superseded)' if line.superseded else ''} | {line.partition} | "
        f"{line.count} | {round_up(line.epsilon)} | {_mu(line.mu)} |"
        for line in dataset.spends
    ]
    lines += [
        line for note in notes_on_releases(dataset.spends) for line in ("", f"Releases of {note}.")
    ]
    if dataset.mu and dataset.accountant == "exact":
        theirs = (
            f"**The unit is a {dataset.unit}: for a person with that many {dataset.unit}s, these "
            "are the figures.**"
        )
        lines += [
            "",
            f"Several {dataset.unit}s of one group together bear k mu."
            + (f" {theirs}" if dataset.unit in NO_PERSON else ""),
            "",
            f"| {dataset.unit}s of one group | epsilon of this {here} | mu |",
            "|---|---|---|",
            *(
                f"| {k} | {round_up(gdp.epsilon(k * dataset.mu, delta), 2)} | "
                f"{_mu(k * dataset.mu)} |"
                for k in (2, 3, 4)
            ),
        ]
    return [*lines, ""]


def _models(lineage: str, dataset: Stated) -> list[str]:
    """The tables of final models and of counts of other lineages' models. Empty where there are
    none."""
    if not dataset.artifacts:
        return []
    models, counts = _models_and_counts(dataset.artifacts)
    what = "counts of another lineage's final model"
    return [
        *_artifact_table(
            "final model", "a final model", "that model, its scores and its sweep", models
        ),
        *_artifact_table(what, "such counts", "those counts", counts),
        *(line for sentence in choice_sentences(lineage, dataset) for line in (sentence, "")),
    ]


def choice_sentences(lineage: str, dataset: Stated) -> Iterator[str]:
    """What a choice among several models costs, which no figure of one model sees."""
    if dataset.chosen is not None:
        yield (
            f"If a final model of lineage {lineage} was chosen among these, retired ones included, "
            "because of anything that was released: epsilon = "
            f"{round_up(dataset.chosen.epsilon)}{_mu_of(dataset.chosen)}, whichever it is."
        )


def _models_and_counts(artifacts: Mapping[str, StatedModel]) -> list[dict[str, StatedModel]]:
    """The models of the lineage's own, and counts of others'."""
    return [
        {path: one for path, one in artifacts.items() if counts_another_model(one.jobs) == counts}
        for counts in (False, True)
    ]


def _artifact_table(
    heading: str, what: str, seen: str, artifacts: Mapping[str, StatedModel]
) -> list[str]:
    """A table of models or counts, and what its two epsilons hold for. One is for who may have
    chosen the config by earlier releases, the other for who did not."""
    if not artifacts:
        return []
    return [
        f"| {heading} | its total | epsilon | mu | epsilon of it and its search alone | share of "
        "the search in mu^2 |",
        "|---|---|---|---|---|---|",
        *(_row_of(path, artifact) for path, artifact in artifacts.items()),
        "",
        f"The epsilon of {what} holds for someone who sees {seen}, and nothing else; for someone "
        "who sees everything published here, the joint figure above holds. The column epsilon "
        "counts all that was released before the last of these jobs was planned, because people "
        "may have chosen the config by that. The last column but one leaves that out, and holds "
        "only if the config was chosen without looking at it.",
        "",
    ]


def _row_of(path: str, artifact: StatedModel) -> str:
    """One model of that table: its total, the figure it is stated at, and its price alone."""
    figure, share = artifact.stated, _percent(artifact.search_share)
    own_cost = f"{round_up(artifact.epsilon)}{_mu_of(Cost(artifact.epsilon, artifact.mu))}"
    return (
        f"| `{path}` | {round_up_short(artifact.target_epsilon)} | {round_up(figure.epsilon)} | "
        f"{_mu(figure.mu)} | {own_cost} | {share} |"
    )


def _mu_of(cost: Cost) -> str:
    """The mu beside an epsilon in running text, or nothing where no single mu says it."""
    return "" if cost.mu is None else f" (mu = {_mu(cost.mu)})"


def _mu(mu: float | None) -> str:
    """A private selection has an epsilon alone."""
    return "no single mu" if mu is None else mu_up(mu)


def _percent(share: float | None) -> str:
    """The search's share of mu^2; a private search and its model are one mechanism."""
    return "not separable" if share is None else f"{round_nearest(100 * share, 1)}%"


def _where(line: StatedSpend) -> str:
    """A job's wildcards in words, such as `rung 1`."""
    return " ".join(f"{key} {value}" for key, value in line.wildcards.items())


def _deltas(statement: Statement) -> str:
    """The deltas of all lineages, each once, as one phrase. Lineages may differ in theirs."""
    deltas = dict.fromkeys(round_up_short(dataset.delta) for dataset in statement.datasets.values())
    return " or ".join(deltas)


def _assumptions(statement: Statement) -> list[str]:
    """What the guarantee rests on and what it leaves out, as a list: whoever signs the page accepts
    these."""
    wording = statement_wording(statement)
    selected = {
        line.label
        for dataset in statement.datasets.values()
        for line in dataset.spends
        if line.spend["event"]["type"] in ("RepeatAndSelect", "SubsetSelect")
    }
    secret = (
        "Of a private selection nothing is known but the model that it put out: not how often it "
        "trained, nor what lost. "
        + (
            "One that is not padded tells whoever times its job."
            if selected - {"search"}
            else "It was padded."
        )
    )
    return [
        *(
            f"Lineage {lineage}: what is published hardly tells apart two data sets that differ by "
            f"{NEIGHBOURS[dataset.relation]} ({wording.relation}: {dataset.relation}). Delta = "
            f"{round_up_short(dataset.delta)}, one for the life of the lineage."
            for lineage, dataset in statement.datasets.items()
        ),
        wording.declared,
        "The secret key and the operator are trusted. Noise comes from a keyed generator, so the "
        "guarantee is computational. What is released is rounded to a public grid, so that its low "
        f"bits tell nothing; what float64 arithmetic adds to ideal noise is below {_slack()} "
        "(dpladder/privacy/release/grid.py has the theorem).",
        *wording.cut,
        "Outside the guarantee: run time, memory and scheduler accounting.",
        *([secret] if selected else []),
        wording.lineage_phrase,
        *(
            f"Lineage {lineage} has spends of mechanisms outside dpladder ({OWN_CODE}): their "
            "authors' word says that they cost what was charged, drew their noise after it was "
            "charged, and let nothing out beside it. What stands above about keyed noise, grids "
            "and arithmetic holds for them only where they drew from this ledger."
            for lineage, dataset in statement.datasets.items()
            if any(
                line.experiment == OWN_CODE
                for line in (*dataset.spends, *dataset.outside_this_dag.spends)
            )
        ),
        "A person whose records are in two lineages bears both.",
        *modified_code_warning(statement),
        "Versions: "
        + ", ".join(f"{name} {version}" for name, version in statement.origin.versions.items())
        + ".",
    ]


def modified_code_warning(statement: Statement) -> Iterator[str]:
    """Whether the code that composed a statement was that of its commit: nothing where it was, or
    where there is no clone."""
    commit = statement.origin.commit
    if commit is not None and commit.endswith(MODIFIED):
        yield (
            "This statement was composed by modified code: the clone's files are not those of "
            f"commit {commit.removesuffix(MODIFIED)}."
        )


def _slack() -> str:
    """What float64 adds to ideal noise, for each MANY released numbers, rounded up (grid.py)."""
    # numpy, which the start of a workflow does without
    from dpladder.privacy.release.grid import slack

    epsilon, delta = slack(MANY)
    return (
        f"{round_up_short(epsilon, 2)} in epsilon and {round_up_short(delta, 2)} in delta for each "
        "million released numbers"
    )
