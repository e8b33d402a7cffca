"""What a choice among candidates (`sweep.choose`) cannot go with: rules between its keys and those
of other sections. What candidates are stands in candidates.py."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from pydantic import ValidationError

from dpladder.config.candidates import count_of_candidates, learner_as
from dpladder.config.depths import OF_BUNDLED, resolve_layers
from dpladder.config.features_sections import Features
from dpladder.config.learners import DEFAULT, METHODS, names_with
from dpladder.config.model import Config
from dpladder.config.rules import Messages, Problem, Table
from dpladder.config.search_sections import Ladder
from dpladder.config.sweep_sections import Search
from dpladder.config.wording import did_you_mean
from dpladder.errors import BadInput


def problems_of_own_network(config: Config) -> Iterator[Problem]:
    """A network that a config names beside those that it tries. Asked of the config as it was
    given, for `with_first_network` then writes a network of its own there.

    Args:
        config: before `with_first_network`; a value at its default counts as left out.
    """
    choose = config.sweep.choose
    for key in ("model", "image_size"):
        default = Features.model_fields[key].default
        if choose and getattr(choose.features, key) and getattr(config.features, key) != default:
            yield (
                ("features", key),
                f"it is chosen among those of sweep.choose.features.{key}; leave it out",
            )


def _choose(c: Any) -> Messages:
    """A choice is made by the ladder's trials, all at kappa by the prior. What was bought once
    cannot serve learners or features of several kinds."""
    choose, search = c.sweep.choose, c.sweep.search
    if choose is None:
        return
    if count_of_candidates(choose) < 2:
        yield (
            "nothing to choose from; name two candidates or more, by features.layers, model or "
            "image_size, or by learner.name"
        )
    if not isinstance(c.hpo, Ladder):
        yield "the ladder's trials choose; leave hpo out"
    if c.learner.searches is None:
        yield (
            f"candidates are tried at r by the prior, and learner {c.learner.name} has no r; name "
            "one that has, such as dp_gd"
        )
    # a shared release is made of one learner's features at one depth
    if c.learner.purchases:
        yield ("candidates share no releases: leave learner.shared and learner.head out")
    if c.learner.starts_from_public_head:
        yield (
            "the candidates cannot share one public head; leave learner.init out and set "
            "learner.public: none"
        )
    if c.final.without_noise:
        yield "a choice is made by noised counts; leave final.without_noise out"
    # one median of kappa cannot be right for learners that differ
    if choose.learner.name and search.expected is not None:
        yield "every learner has a prior of its own; leave sweep.search.expected out"
    default = Search()
    # a candidate has one trial at first, so its r must be good without a search
    if (search.unit, search.prior, search.draw) != (default.unit, default.prior, default.draw):
        yield (
            "every candidate is tried at kappa by the prior; leave sweep.search.unit, prior and "
            "draw out"
        )


def rungs(c: Any) -> Messages:
    """Rungs by hand beside a choice: each trial of the first rung is a candidate, and only those go
    on.

    Args:
        c: a config with `sweep.choose`, as rules see it.
    """
    if c.sweep.rungs is None:
        return
    count, trials = count_of_candidates(c.sweep.choose), [one.trials for one in c.sweep.rungs]
    if trials[:1] != [count] or trials != sorted(trials, reverse=True):
        yield (
            f"given {trials} trials beside sweep.choose; the first rung tries each of the {count} "
            "candidates once, and the best of a rung go on to the next, which has no more; or "
            "leave rungs out, and the plan chooses"
        )


def _network(key: str, c: Any) -> Messages:
    """Networks, or sizes of images: each once, and only where a frozen network makes features."""
    choose = c.sweep.choose
    values = () if choose is None else getattr(choose.features, key)
    if not values:
        return
    if len(set(values)) < len(values):
        yield "two candidates are the same; name each once"
    if c.features.takes == "features":
        yield "features.model is none, and records that are features need no network; leave it out"
    if c.features.takes == "texts" and key == "image_size":
        yield "texts have no pixels; leave it out"
    if c.features.until is not None:
        yield "a network that is trained is not chosen; leave features.until or this out"


def _layers(c: Any) -> Messages:
    """Depths of one network: pooled outputs of equal length, no two alike."""
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
    # of another network its depths are known when it runs, so names alone are compared
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
    # a training sees the same whatever order features stand in
    apart = {frozenset([one] if isinstance(one, str) else one) for one in resolved}
    if len(apart) < len(resolved):
        yield "two candidates are the same depths; name each once"


def _learners(c: Any) -> Messages:
    """Learners that differ in more than their own defaults are no candidates for one another. All
    trials of a rung are charged alike, by what one learner buys, samples and sees."""
    if c.sweep.choose is None or not c.sweep.choose.learner.name:
        return
    names, of_config = c.sweep.choose.learner.name, c.learner
    if of_config.name != DEFAULT:
        yield "learner.name is chosen among these; leave learner.name out"
        return
    if len(set(names)) < len(names):
        yield "two candidates are the same learner; name each once"
    for name in names:
        if name not in METHODS:
            yield f"no learner {name}; {did_you_mean(name, METHODS)}allowed: {_WITH_R}"
            continue
        if METHODS[name].section.searches is None:
            yield f"candidates are tried at r by the prior, and {name} has no r; allowed: {_WITH_R}"
            continue
        try:
            learner = learner_as(of_config, name)
        except ValidationError as wrong:
            keys = {f"learner.{error['loc'][-1]}" for error in wrong.errors()}
            yield (
                f"what the config says of the learner holds for every candidate, and {name} does "
                f"not take {', '.join(sorted(keys))}; leave one of them out"
            )
            continue
        # a rung has one price for all its trials, which is that of the config's own learner
        if learner.purchases or (learner.sampling, learner.views) != (
            of_config.sampling,
            of_config.views,
        ):
            yield f"{name} buys, samples or sees records in its own way; leave it out"


# learners that search an r, for messages
_WITH_R = ", ".join(names_with("searches"))
RULES: Table = {
    "sweep.choose": _choose,
    "sweep.choose.features.model": partial(_network, "model"),
    "sweep.choose.features.image_size": partial(_network, "image_size"),
    "sweep.choose.features.layers": _layers,
    "sweep.choose.learner.name": _learners,
}
