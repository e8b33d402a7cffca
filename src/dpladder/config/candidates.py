"""The candidates that private trials choose among (`sweep.choose`): which keys of the config each
of them replaces, what each is called, and what a choice cannot go with."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dpladder.config.depths import OF_BUNDLED, in_words, resolve_layers
from dpladder.config.features_sections import FOLDER, HUGGING_FACE, Features
from dpladder.config.learners import DEFAULT, METHODS, Learner, learner_of, names_with
from dpladder.config.model import Config, TriedNetwork
from dpladder.config.rules import Messages, Problem, Table
from dpladder.config.search_sections import Ladder
from dpladder.config.sweep_sections import Choose, FeaturesToChoose, Search
from dpladder.config.wording import did_you_mean
from dpladder.errors import BadInput


@cache
def candidates_of(config: Config) -> tuple[Config, ...]:
    """The config as each candidate has it, without a choice and without rungs. None where nothing
    is chosen."""
    choose = config.sweep.choose
    if choose is None:
        return ()
    sweep = config.sweep.model_copy(update={"choose": None, "rungs": None})
    several = product(
        _networks(config),
        choose.features.layers or (config.features.layers,),
        choose.learner.name or (config.learner.name,),
    )
    return tuple(
        config.model_copy(
            update={
                "features": config.features.model_copy(update=network | {"layers": layers}),
                "learner": learner_as(config.learner, name),
                "sweep": sweep,
            }
        )
        for network, layers, name in several
    )


def _networks(config: Config) -> list[dict[str, Any]]:
    """The keys of each network that is tried."""
    choose, features = config.sweep.choose, config.features
    assert choose is not None, "who asks knows"
    return [
        {"model": model, "image_size": size}
        for model in choose.features.model or (features.model,)
        for size in choose.features.image_size or (features.image_size,)
    ]


def count_of_networks(choose: Choose | None) -> int:
    if choose is None:
        return 1
    return max(len(choose.features.model), 1) * max(len(choose.features.image_size), 1)


@cache
def networks_of(config: Config) -> tuple[Config, ...]:
    """What makes features for an experiment's candidates: of each network one, with the candidates
    for features.layers, which share its extraction and its mean. The first has the experiment's own
    network (`with_first_network`); of an experiment that chooses nothing it is all there is."""
    choose = config.sweep.choose
    if choose is None:
        return (config,)
    layers = Choose(features=FeaturesToChoose(layers=choose.features.layers))
    sweep = config.sweep.model_copy(update={"choose": layers if layers.features.layers else None})
    return tuple(
        TriedNetwork.model_construct(
            **{
                **{name: getattr(config, name) for name in Config.model_fields},
                "features": config.features.model_copy(update=network),
                "sweep": sweep,
            }
        )
        for network in _networks(config)
    )


def with_first_network(config: Config) -> Config:
    """An experiment's own network is the first that it tries."""
    if config.sweep.choose is None:
        return config
    features = config.features.model_copy(update=_networks(config)[0])
    return config.model_copy(update={"features": features})


def problems_of_own_network(config: Config) -> Iterator[Problem]:
    """A network beside those that are tried, as a config gives it."""
    choose = config.sweep.choose
    for key in ("model", "image_size"):
        default = Features.model_fields[key].default
        if choose and getattr(choose.features, key) and getattr(config.features, key) != default:
            yield (
                ("features", key),
                f"it is chosen among those of sweep.choose.features.{key}; leave it out",
            )


def learner_as(learner: Learner, name: str) -> Learner:
    """The learner of this name, with what a config says of its own one beside the name."""
    if name == learner.name:
        return learner
    values = keys_beside_name(learner)
    if values.get("public") == "none" and "public" not in METHODS[name].section.model_fields:
        values.pop("public")  # a learner without the key follows no public records
    return learner_of({**values, "name": name})


def keys_beside_name(learner: Learner) -> dict[str, Any]:
    """The keys that are not at their defaults."""
    return {
        name: value
        for name, field in learner.__class__.model_fields.items()
        if name != "name"
        and (value := getattr(learner, name)) != field.get_default(call_default_factory=True)
    }


def names_of_candidates(config: Config) -> tuple[str, ...]:
    """What each candidate is called, for people: what it has of the keys that are chosen."""
    choose = config.sweep.choose
    if choose is None:
        return ()
    return tuple(
        ", ".join(
            [
                *([model_as_text(one.features.model)] if choose.features.model else []),
                *([f"{one.features.image_size} pixels"] if choose.features.image_size else []),
                *([in_words(one.features)] if choose.features.layers else []),
                *([one.learner.name] if choose.learner.name else []),
            ]
        )
        for one in candidates_of(config)
    )


def model_as_text(model: str) -> str:
    """A network by its name. Where it lies in the operator's file system is nobody's business."""
    if model.startswith((f"{HUGGING_FACE}.", f"{HUGGING_FACE}~", f"{HUGGING_FACE}/")):
        return Path(model.removeprefix(HUGGING_FACE)).name
    return Path(model.removeprefix(FOLDER)).name if model.startswith(FOLDER) else model


def count_of_candidates(choose: Choose) -> int:
    alike = max(len(choose.features.layers), 1) * max(len(choose.learner.name), 1)
    return count_of_networks(choose) * alike


# --- rules ---


def _choose(c: Any) -> Messages:
    """A choice is made by the ladder's trials, all at kappa by the prior."""
    choose, search = c.sweep.choose, c.sweep.search
    if choose is None:
        return
    if count_of_candidates(choose) < 2:
        yield (
            "nothing to choose from; name two candidates or more, by features.layers, model or "
            "image_size, or by learner.name"
        )
    if c.evaluate.of is not None and count_of_networks(choose) > 1:
        yield (
            "a model whose network is chosen is not measured on other people's records; leave "
            "features.model and image_size out, or evaluate.of"
        )
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
    if choose.learner.name and search.expected is not None:
        yield "every learner has a prior of its own; leave sweep.search.expected out"
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
    count, trials = count_of_candidates(c.sweep.choose), [one.trials for one in c.sweep.rungs]
    if trials[:1] != [count] or trials != sorted(trials, reverse=True):
        yield (
            f"given {trials} trials beside sweep.choose; the first rung tries each of the {count} "
            "candidates once, and the best of a rung go on to the next, which has no more; or "
            "leave rungs out, and the plan chooses"
        )


def _network(key: str, c: Any) -> Messages:
    choose = c.sweep.choose
    values = () if choose is None else getattr(choose.features, key)
    if not values:
        return
    if len(set(values)) < len(values):
        yield "two candidates are the same; name each once"
    if c.features.takes == "features":
        yield "features.model is none, and records that are features need no network; leave it out"
    if c.features.until is not None:
        yield "a network that is trained is not chosen; leave features.until or this out"


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


def _learners(c: Any) -> Messages:
    """Learners that differ in more than their own defaults are no candidates for one another."""
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
        if learner.purchases or (learner.sampling, learner.views) != (
            of_config.sampling,
            of_config.views,
        ):
            yield f"{name} buys, samples or sees records in its own way; leave it out"


_WITH_R = ", ".join(names_with("searches"))
RULES: Table = {
    "sweep.choose": _choose,
    "sweep.choose.features.model": partial(_network, "model"),
    "sweep.choose.features.image_size": partial(_network, "image_size"),
    "sweep.choose.features.layers": _layers,
    "sweep.choose.learner.name": _learners,
}
