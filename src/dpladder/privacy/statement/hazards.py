"""NIST SP 800-226's privacy hazards, one by one, and what a statement answers to each.

The hazards are told in our words, in the order and by the sections of the initial public draft
(December 2023). Beside them: what *How to DP-fy ML* (Ponomareva et al. 2023), section 5.3, asks a
report of a DP model for, and the three dimensions that the abstract of the W3C's draft note
*Considerations for Reviewing Differential Privacy Systems* (February 2026) names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dpladder.config.model import Deployment
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.shown import in_cell, up, up_short
from dpladder.privacy.statement.build import guarantee_of
from dpladder.privacy.statement.documents import Cost, SealedStatement, Stated
from dpladder.privacy.statement.page import NO_PERSON, found_at_most, unit_of

Answered = Literal["by construction", "by the config", "for people to judge", "does not arise"]
LARGE = 1.0  # 2.2: up to here epsilon is taken to be strong in most cases


@dataclass(frozen=True)
class Hazard:
    section: str
    hazard: str
    answered: Answered
    answer: str


def checklist(statement: SealedStatement, lineage: str, told: Deployment) -> str:
    dataset = statement.datasets[lineage]
    bound = guarantee_of(dataset)
    assert bound is not None, "what is registered has a guarantee"
    found = [*hazards(statement, dataset, bound, told)]
    return "\n".join(
        [
            f"# NIST SP 800-226, hazard by hazard: {in_cell(told.name)}",
            "",
            f"Of statement `{statement.id}`, {statement.origin.date}. Sections and order follow "
            "the initial public draft of the guidelines (December 2023); the final text "
            "(March 2025, doi:10.6028/NIST.SP.800-226) may number them otherwise. The hazards are "
            "told in this software's words. *For people to judge* is what no software can answer: "
            "write beside it what was decided, by whom.",
            "",
            "| section | hazard | answered | how |",
            "|---|---|---|---|",
            *(
                f"| {one.section} | {one.hazard} | {one.answered} | {in_cell(one.answer)} |"
                for one in found
            ),
            "",
            "## How to DP-fy ML (2023), section 5.3",
            "",
            "| asked | answer |",
            "|---|---|",
            *(
                f"| {asked} | {in_cell(answer)} |"
                for asked, answer in _reported(statement, dataset, bound)
            ),
            "",
            "## W3C's draft note for reviewers (2026): what is traded against what",
            "",
            "| dimension | answer |",
            "|---|---|",
            *(
                f"| {asked} | {in_cell(answer)} |"
                for asked, answer in _traded(statement, dataset, bound, told)
            ),
            "",
        ]
    )


def hazards(
    statement: SealedStatement, dataset: Stated, bound: Cost, told: Deployment
) -> Iterator[Hazard]:
    delta, unit = dataset.delta, dataset.unit
    figure = f"epsilon = {up(bound.epsilon)} at delta = {up_short(delta)}"
    yield Hazard(
        "2.2",
        "a large epsilon may protect nobody",
        "by construction" if bound.epsilon <= LARGE else "for people to judge",
        f"{figure}, as a bound for life. An attack that accuses 5 % wrongly finds at most "
        f"{found_at_most(bound, delta)}.",
    )
    yield Hazard(
        "2.3",
        "(epsilon, delta) alone allows that everything is revealed with probability delta",
        "by construction" if bound.mu is not None else "by the config",
        f"The events are Gaussian: mu = {up(bound.mu, 6)} bounds all of them, and delta only "
        "converts it."
        if bound.mu is not None
        else f"Some events are Gaussian only up to a probability below delta = {up_short(delta)}, "
        "or private selections; their shares of delta "
        "are declared beforehand and held by the ledger.",
    )
    yield Hazard(
        "2.4",
        "what the unit does not cover can be told apart",
        "for people to judge",
        f"Protected: {unit_of(dataset)}. The data: {told.data}",
    )
    yield Hazard(
        "2.4",
        "a unit that is an event or a row does not protect a person with several",
        "for people to judge" if unit in NO_PERSON else "by the config",
        f"The unit is a {unit}. A person with two bears {of_group(bound, delta, 2)}, one with "
        f"three {of_group(bound, delta, 3)}."
        if unit in NO_PERSON
        else f"The unit is a user with all their records: {unit_of(dataset)}.",
    )
    yield Hazard(
        "2.5",
        "figures at different deltas cannot be compared",
        "by construction",
        f"One delta for the data's life, {up_short(delta)}; mu stands beside every epsilon, and "
        "converts to any other delta.",
    )
    yield Hazard(
        "2.5",
        "figures for different units cannot be compared",
        "by construction",
        f"One unit for the data's life, {unit_of(dataset)}, and it stands beside every guarantee.",
    )
    yield Hazard(
        "2.5",
        "a large delta makes epsilon look small",
        "for people to judge",
        f"delta = {up_short(delta)}: compare it with one over the number of people. A config with "
        "one over its nominal size, or more, is refused.",
    )
    yield Hazard(
        "2.6",
        "releases without differential privacy from the same data are not covered",
        "for people to judge",
        "Nothing but what the ledger holds was released by this software. Whatever else was "
        "published from this data is outside.",
    )
    yield Hazard(
        "3",
        "home-made implementations fail",
        "by construction",
        "Accounting is checked against Google's dp-accounting, training against Opacus; the "
        "mechanisms are attacked by `dpladder audit`, and bugs planted in the privacy core must be "
        "caught by its tests (`make test-mutants`).",
    )
    yield Hazard(
        "3.3.1",
        "noise hurts small groups most",
        "for people to judge",
        "Noise costs accuracy most where a class or a group is rare. `evaluate.measures: classes` "
        "buys the accuracy of each class, `groups` that of each declared group and of the worst.",
    )
    yield Hazard(
        "3.3.2, 3.3.3",
        "repairing noisy figures biases them",
        "by construction",
        "Released counts are kept as they are, negative ones too. An accuracy that is shown is cut "
        "to 0 to 100 %, and its standard deviation stands beside it.",
    )
    yield Hazard(
        "3.4.1",
        "bounding contributions takes more noise",
        "by construction",
        f"Sensitivity counts all that may count of {unit_of(dataset)}; a release whose draws do "
        "not earn its charge is refused.",
    )
    yield Hazard(
        "3.4.1",
        "which bins a histogram has can tell of a person",
        "by construction",
        "Classes are declared in the config, never found in the data; a label that is not among "
        "them counts as nothing.",
    )
    yield Hazard(
        "3.5",
        "models memorise what they were trained on",
        "by construction",
        "Every published model is the output of a private training; its search and its scores are "
        "paid for.",
    )
    yield Hazard(
        "3.6", "synthetic data without differential privacy", "does not arise", "None is made."
    )
    yield Hazard(
        "3.7",
        "in texts, pictures and sounds it is unclear whose data is whose",
        "for people to judge",
        "The unit is a record, a document or a user by the data's own ids. Who else is seen or "
        "spoken of in a record is not protected as a unit.",
    )
    yield Hazard(
        "4.1",
        "interactive queries are harder to budget and to secure",
        "does not arise",
        "Nobody queries the data. A config is priced as a whole before any record is read; what "
        "would exceed the limit is refused.",
    )
    yield Hazard(
        "4.2",
        "the trust that is assumed must be real",
        "for people to judge",
        "Central model. The operator and whoever holds the key are trusted. Access to the data: "
        f"{told.access}",
    )
    yield Hazard(
        "4.3",
        "side channels: floating point, time, errors",
        "by construction",
        "Releases are rounded to a public grid; no run time of a private job, no private value in "
        "any message, name or exit code. Run time and memory as a scheduler sees them are outside "
        "the guarantee.",
    )
    yield Hazard(
        "4.4",
        "a breach of the raw data ends every guarantee",
        "for people to judge",
        "Private folders are mode 0700 and apart from results. Encryption, backups and access are "
        f"the curator's: {told.access}",
    )
    yield Hazard(
        "4.5",
        "differential privacy is no reason to collect more",
        "for people to judge",
        f"What was collected, and why: {told.data}",
    )


def of_group(bound: Cost, delta: float, size: int) -> str:
    """Of mu-GDP k mu (Dong, Roth & Su 2019, Theorem 2.14). Otherwise (k epsilon, delta (1 +
    e^epsilon + ...)): k epsilon says too little, so only the factor is told."""
    if bound.mu is None:
        return f"{size} times epsilon, at a larger delta"
    return f"epsilon = {up(gdp.epsilon(size * bound.mu, delta), 2)} (mu = {up(size * bound.mu, 6)})"


def _reported(
    statement: SealedStatement, dataset: Stated, bound: Cost
) -> Iterator[tuple[str, str]]:
    yield "setting", "Central: the guarantee is about all that the curator publishes."
    yield "what is protected", f"{unit_of(dataset)}; neighbours: {dataset.relation}."
    yield (
        "guarantee",
        f"epsilon = {up(bound.epsilon)}, delta = {up_short(dataset.delta)}, and mu = "
        f"{'no single mu' if bound.mu is None else up(bound.mu, 6)}.",
    )
    yield (
        "accounting",
        f"{dataset.accountant}: Gaussian differential privacy, as a filter; nothing is assumed of "
        "the order of records. Samples, where there are any, are Poisson samples as the accounting "
        "says.",
    )
    yield (
        "data accesses covered",
        "All: noised means and sums, hyperparameter search, training, evaluation, earlier "
        "releases.",
    )
    yield (
        "public data",
        "Networks and sources that the config declares public, taken to hold none of the private "
        "data.",
    )
    yield (
        "can it be checked",
        "`dpladder verify` recomputes it from the published records; commit "
        f"{statement.origin.commit or 'unknown'}.",
    )


def _traded(
    statement: SealedStatement, dataset: Stated, bound: Cost, told: Deployment
) -> Iterator[tuple[str, str]]:
    renewed = "It is for life: no period renews it, and it is never reset."
    yield (
        "privacy",
        f"epsilon = {up(bound.epsilon)} at delta = {up_short(dataset.delta)} for "
        f"{unit_of(dataset)}. "
        + (
            renewed
            if dataset.lifetime_epsilon is not None
            else "No limit for life was declared: later runs add to it."
        ),
    )
    yield (
        "utility",
        "Measured, and paid for out of the same budget: report.html has each model's accuracy with "
        "the noise of its measurement. `dpladder plan` prices every step of another budget before "
        "anything is read.",
    )
    yield (
        "trusted parties",
        "One, the curator, who reads the data and adds the noise. No other party needs to be "
        f"trusted: {told.access}",
    )
