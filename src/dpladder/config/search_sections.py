"""The searches, one section for each, with the options that it reads and no others.

The ladder is a graph of jobs. Every other way is a single job that puts out one model: what else it
trains stays secret, because its theorem needs that. A module of search/ runs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args

from pydantic import Field

from dpladder.config.learners import METHODS
from dpladder.config.plugins import entries, other_search
from dpladder.config.rules import Messages, Table
from dpladder.config.section import Count, Section

Law = Literal["logarithmic", "geometric", "poisson"]
Share = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
Mean = Annotated[float, Field(gt=1, le=500, description="Expected number of runs.")]
Padded = Annotated[
    bool,
    Field(
        description="Whether to train as often as there may ever be runs. Time and memory then do "
        "not tell how many counted. At a mean of 10 that is 148 trainings for a "
        "logarithmic law, 66 geometric, 21 Poisson."
    ),
]


class Ladder(Section):
    """Rungs of cheap trials, and r carried along them to the total (Panda et al.); sweep and fit
    are its sections."""

    name: Literal["ladder"] = Field(
        "ladder",
        description="Which search. ladder, or a private search that pays for itself. "
        "config/README.md has them all.",
    )


class RandomSearch(Section):
    """One training at a random r, with the whole total. It looks at nothing."""

    name: Literal["random_search"] = "random_search"
    law: Literal["log_uniform", "uniform"] = Field(
        "log_uniform", description="How r is drawn in its range."
    )


class NaiveComposition(Section):
    """Trainings of equal budgets, spread over the range of r; the best one is put out."""

    name: Literal["naive_composition"] = "naive_composition"
    runs: Annotated[int, Field(ge=1, le=10_000, description="Number of trainings.")] = 5


class Selection(Section):
    """What private selection reads: the best of a secret number of runs."""

    name: str
    mean: Mean = 10.0
    padded: Padded = True


class PapernotSteinke(Selection):
    """The best of a secret, random number of runs (Papernot & Steinke)."""

    name: Literal["papernot_steinke"] = "papernot_steinke"
    law: Law = Field(
        "logarithmic",
        description="Law of the number of runs. A Poisson number may be 0; then nothing is "
        "trained.",
    )


class LiuTalwar(Selection):
    """Runs until a coin says stop, of which the best is put out (Liu & Talwar)."""

    name: Literal["liu_talwar"] = "liu_talwar"
    law: Literal["geometric"] = Field("geometric", description="Law of the number of runs.")


class DpHypo(Selection):
    """Private selection whose runs look where earlier ones did well, by a Gaussian process (Wang et
    al., DP-HyPO)."""

    name: Literal["dp_hypo"] = "dp_hypo"
    law: Literal["logarithmic", "geometric"] = Field(
        "geometric", description="Law of the number of runs."
    )
    adapting: Share = Field(
        0.2, description="Share of the total that leaning towards good runs may cost."
    )


class KoskelaKulkarni(Selection):
    """Private selection on a secret random subset of the units; the final training sees the rest,
    or everything."""

    name: Literal["koskela_kulkarni"] = "koskela_kulkarni"
    law: Law = Field("geometric", description="Law of the number of runs.")
    share: Share = Field(0.2, description="Expected share of the units that selects.")
    apart: bool = Field(
        True,
        description="What the final training sees. true: only the units that did not select. "
        "false: all units.",
    )


class ProposeTest(Section):
    """Candidates tested on models of disjoint parts of the data, by AboveThreshold with doubling
    steps (Ding & Wu). The choice is a guess unless parts times a round's epsilon is some 100."""

    name: Literal["propose_test"] = "propose_test"
    parts: Annotated[
        int,
        Field(ge=2, le=1000, description="Number of disjoint parts, each with models of its own."),
    ] = 10
    candidates: Count = Field(
        4, description="Number of values of r that are tried, spread over its range."
    )
    step: Annotated[
        float,
        Field(
            ge=0.01, lt=1, description="Least gain in accuracy that is worth a round, as a share."
        ),
    ] = 0.1
    aside: Share = Field(
        0.2, description="Expected share of the units that models of parts are tested on."
    )
    final: Share = Field(0.8, description="Share of mu squared for the final training.")


SecretRuns = PapernotSteinke | LiuTalwar | DpHypo | KoskelaKulkarni
PrivateSearch = RandomSearch | NaiveComposition | SecretRuns | ProposeTest
OWN_SEARCHES: tuple[Any, ...] = get_args(PrivateSearch)
PLUGIN_SEARCHES = entries("dpladder.searches", other_search, METHODS)
"""Those of other packages."""
SEARCHES = (*OWN_SEARCHES, *(other.section for other in PLUGIN_SEARCHES.values()))
if not TYPE_CHECKING:  # nobody who checks types can know those of others
    PrivateSearch = Union[SEARCHES]  # noqa: UP007
Hpo = Annotated[Ladder | PrivateSearch, Field(discriminator="name")]


def names(section: Any) -> tuple[str, ...]:
    """The searches that a section is for; of a learner's section, the one."""
    return get_args(section.model_fields["name"].annotation)


# modules of search/ that run more than the one search of their name
SHARED = {"papernot_steinke": "secret_runs", "liu_talwar": "secret_runs"}


def runner_of(search: str) -> str:
    """The module that runs a search."""
    if search in PLUGIN_SEARCHES:
        return f"{PLUGIN_SEARCHES[search].room}.search"
    return f"dpladder.search.{SHARED.get(search, search)}"


def _private_search(c: Any) -> Messages:
    """A private search is one job that spends the whole total, so nothing else may bear on the
    training part."""
    if isinstance(c.hpo, Ladder):
        return
    learner, sweep, apart = c.learner, c.sweep, ("hash", "add_remove")
    if learner.searches is None:
        yield f"learner {learner.name} has nothing to search; leave hpo out"
    if sweep.ladder:
        yield "it climbs no ladder; write sweep: {rungs: []} beside it"
    if learner.sampling < 1:
        yield "its theorem is for full batches; leave learner.sampling_rate out"
    if (sweep.search.draw, sweep.search.prior) != ("stratified", "lognormal"):
        yield "it draws r by itself; leave sweep.search.draw and sweep.search.prior out"
    if (sweep.select.by, sweep.select.part) != ("noisy_count", "train"):
        yield "it counts on the training part; leave sweep.select.by and sweep.select.part out"
    if c.features.mean is not None or learner.purchases:
        yield (
            "it spends the whole total; leave features.mean, learner.covariance, "
            "learner.statistics and learner.head out"
        )
    if c.final.budget != "remaining":
        yield "it spends the whole total; leave final.budget out"
    if c.hpo.name == "koskela_kulkarni" and c.privacy.relation != "add_remove":
        yield "its bound holds under privacy.relation: add_remove alone"
    if not c.exact_test and (c.dataset.split.rule, c.privacy.relation) != apart:
        yield (
            "the test part must cost nothing beside it: name dataset.public_test, or use "
            "split.rule: hash and privacy.relation: add_remove"
        )


RULES: Table = {"hpo.name": _private_search}
