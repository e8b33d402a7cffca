"""The candidates that private trials choose among (`sweep.choose`): which keys of the config each
of them replaces, what each is called, and what a choice cannot go with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpladder.config.depths import OF_BUNDLED, in_words, resolve_layers
from dpladder.config.features_sections import Features
from dpladder.config.rules import Messages, Table
from dpladder.config.search_sections import Ladder
from dpladder.config.sweep_sections import Choose, Search
from dpladder.errors import BadInput


def keys_of_candidates(choose: Choose) -> tuple[Mapping[str, Any], ...]:
    """What each candidate has in place of the config's own: keys with dots, and plain values."""
    return tuple({"features.layers": _plain(layers)} for layers in choose.features.layers)


def _plain(layers: str | tuple[str, ...]) -> str | list[str]:
    return layers if isinstance(layers, str) else list(layers)


def names_of_candidates(choose: Choose | None, features: Features) -> tuple[str, ...]:
    """What each candidate is called, for people."""
    layers = () if choose is None else choose.features.layers
    return tuple(in_words(features.model_copy(update={"layers": one})) for one in layers)


# --- rules ---


def _choose(c: Any) -> Messages:
    """A choice is made by the ladder's trials, all at kappa by the prior."""
    choose, search = c.sweep.choose, c.sweep.search
    if choose is None:
        return
    count = len(keys_of_candidates(choose))
    if count < 2:
        yield "nothing to choose from; name two candidates or more (features.layers)"
    if not isinstance(c.hpo, Ladder):
        yield "the ladder's trials choose; leave hpo out"
    if c.learner.searches is None:
        yield (
            f"candidates are tried at r by the prior, and learner {c.learner.name} has no r; name "
            "one that has, such as dp_gd"
        )
    if c.learner.purchases:
        yield (
            "the candidates cannot share learner.covariance, statistics or head; leave those out"
        )
    if c.learner.starts_from_public_head:
        yield (
            "the candidates cannot share one public head; leave learner.init out and set "
            "learner.public: none"
        )
    if c.final.without_noise:
        yield "a choice is made by noised counts; leave final.without_noise out"
    default = Search()
    if (search.unit, search.prior, search.draw) != (default.unit, default.prior, default.draw):
        yield (
            "every candidate is tried at kappa by the prior; leave sweep.search.unit, prior and "
            "draw out"
        )


def rungs(c: Any) -> Messages:
    """Rungs by hand beside a choice."""
    if c.sweep.rungs is None:
        return
    count, trials = len(keys_of_candidates(c.sweep.choose)), [one.trials for one in c.sweep.rungs]
    if trials[:1] != [count] or trials != sorted(trials, reverse=True):
        yield (
            f"given {trials} trials beside sweep.choose; the first rung tries each of the {count} "
            "candidates once, and the best of a rung go on to the next, which has no more; or "
            "leave rungs out, and the plan chooses"
        )


def _layers(c: Any) -> Messages:
    choose, features = c.sweep.choose, c.features
    if choose is None or not choose.features.layers:
        return
    candidates = choose.features.layers
    if features.takes == "features":
        yield "features.model is none, and records that are features have no depths; leave it out"
        return
    if features.until is not None:
        yield "pooled outputs have depths, and features.until keeps others; leave one of them out"
    if features.layers != "auto":
        yield "features.layers is chosen among these; leave features.layers out"
    if features.length == "as_is" or (features.mean is not None and features.mean.radius):
        yield (
            "depths are compared at one length; leave features.length: as_is and "
            "features.mean.radius out"
        )
    known = OF_BUNDLED.get(features.model)
    try:
        resolved = [
            resolve_layers(one, known, features.takes, features.model) if known else one
            for one in candidates
        ]
    except BadInput as wrong:
        yield str(wrong).removeprefix("features.layers: ")
        return
    if any(one == () or len(set(one)) < len(one) for one in resolved if isinstance(one, tuple)):
        yield "a candidate names no depth, or one twice; write last for the network's own output"
    # trainings see no order of features
    apart = {frozenset([one] if isinstance(one, str) else one) for one in resolved}
    if len(apart) < len(resolved):
        yield "two candidates are the same depths; name each once"


RULES: Table = {
    "sweep.choose": _choose,
    "sweep.choose.features.layers": _layers,
}
