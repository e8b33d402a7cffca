"""What the sections of searches are made of: the ladder's, and the traits of the private ones.

The ladder is a graph of jobs. Every other way is a single job that puts out one model: what else it
trains stays secret, because its theorem needs that.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from dpladder.config.rules import Messages, Table
from dpladder.section import OnlyFor, Section


class Ladder(Section):
    """Rungs of cheap trials, and r carried along them to the total (Panda et al.); sweep and fit
    are its sections."""

    name: Literal["ladder"] = "ladder"
    """Which search: the ladder, or a private search that pays for itself (docs/papers.md)."""


OF_LADDER = OnlyFor("hpo.name: ladder", lambda c: isinstance(c.hpo, Ladder))


class SearchSection(Section):
    """What every private search's section has: its name, and traits."""

    exact_under: ClassVar[tuple[str, ...]] = ("add_remove", "replace_one")
    """The relations under which its price is proved."""
    needs_delta: ClassVar[bool] = False
    """Whether its events are Gaussian but for a small probability, a part of delta."""
    name: str


def _private_search(c: Any) -> Messages:
    """A private search is one job that spends the whole total, so nothing else may bear on the
    training part."""
    if isinstance(c.hpo, Ladder):
        return
    learner, sweep, apart = c.learner, c.sweep, ("hash", "add_remove")
    if learner.searches is None:
        yield f"learner {learner.name} has nothing to search; leave hpo out"
    # rungs would spend beside a search that spends the whole total
    if sweep.ladder:
        yield "it climbs no ladder; write sweep: {rungs: []} beside it"
    if learner.sampling < 1:
        yield "its theorem is for full batches; leave learner.sampling_rate out"
    if c.features.mean is not None or learner.purchases:
        yield (
            "it spends the whole total; leave features.mean, learner.shared and learner.head out"
        )
    # a price is charged only where a theorem proves it (contract: one-filter)
    if c.privacy.relation not in c.hpo.exact_under:
        yield f"its bound holds under privacy.relation: {', '.join(c.hpo.exact_under)} alone"
    if not c.exact_test and (c.dataset.split.rule, c.privacy.relation) != apart:
        yield (
            "the test part must cost nothing beside it: name dataset.public_test, or use "
            "split.rule: hash and privacy.relation: add_remove"
        )


RULES: Table = {"hpo.name": _private_search}
