"""The candidates that private trials choose among (`sweep.choose`). Here stands which keys of the
config each of them replaces, how many there are, and what each is called. What a choice cannot go
with stands in candidate_rules.py.

Candidates are configs of their own, so all that plans, trains or reports reads one like any other.
Their order is that of the trials, and follows from the config alone.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from dpladder.config.depths import in_words
from dpladder.config.features_sections import FOLDER, HUGGING_FACE
from dpladder.config.learners import METHODS, Learner, learner_of
from dpladder.config.model import Config, TriedNetwork
from dpladder.config.sweep_sections import Choose, FeaturesToChoose


@cache
def candidates_of(config: Config) -> tuple[Config, ...]:
    """The config as each candidate has it, as if it alone had been asked for.

    Returns:
        One config for every combination of network, depths and learner, in the order of their keys:
        without `sweep.choose`, and without `sweep.rungs`, which count candidates. An empty tuple if
        the config chooses nothing.
    """
    choose = config.sweep.choose
    if choose is None:
        return ()
    # a candidate alone has one trial, and the plan gives its rung
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


def count_of_candidates(choose: Choose) -> int:
    """How many candidates there are, without making their configs: rules ask it before those can be
    made.

    Args:
        choose: the section, whose values may still be wrong. A key that is left out counts as one.
    """
    of_network = max(len(choose.features.layers), 1) * max(len(choose.learner.name), 1)
    return count_of_networks(choose) * of_network


def _networks(config: Config) -> list[dict[str, Any]]:
    """The keys of `features` that each network replaces: a model and the size of its images."""
    choose, features = config.sweep.choose, config.features
    assert choose is not None, "who asks knows"
    return [
        {"model": model, "image_size": size}
        for model in choose.features.model or (features.model,)
        for size in choose.features.image_size or (features.image_size,)
    ]


def count_of_networks(choose: Choose | None) -> int:
    """How many networks extract features; each has an extraction and a mean of its own. 1 without a
    choice.

    Args:
        choose: `sweep.choose`; None where an experiment chooses nothing.
    """
    if choose is None:
        return 1
    return max(len(choose.features.model), 1) * max(len(choose.features.image_size), 1)


@cache
def networks_of(config: Config) -> tuple[Config, ...]:
    """The configs that make features for an experiment's candidates: one for each network.

    Returns:
        Configs with the candidates for features.layers, which share one extraction and one private
        mean. The first has the experiment's own network (`with_first_network`). If the experiment
        chooses nothing, its own config alone.
    """
    choose = config.sweep.choose
    if choose is None:
        return (config,)
    # depths come from one pass through a network, so they need no config of their own
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
    """The config with the first network that it tries as its own: whoever reads `features` without
    asking about candidates then reads one of them."""
    if config.sweep.choose is None:
        return config
    features = config.features.model_copy(update=_networks(config)[0])
    return config.model_copy(update={"features": features})


def learner_as(learner: Learner, name: str) -> Learner:
    """The learner of another name, with all keys that the config gives its own learner.

    Args:
        learner: The config's. Its keys at their defaults are left out: a candidate has defaults
            of its own.
        name: The candidate's. Pydantic's ValidationError names keys that it does not take.
    """
    if name == learner.name:
        return learner
    values = {
        key: value
        for key, field in learner.__class__.model_fields.items()
        if key != "name"
        and (value := getattr(learner, key)) != field.get_default(call_default_factory=True)
    }
    if values.get("public") == "none" and "public" not in METHODS[name].section.model_fields:
        values.pop("public")  # a learner without the key follows no public records
    return learner_of({**values, "name": name})


def names_of_candidates(config: Config) -> tuple[str, ...]:
    """What each candidate is called, for people: its values of the keys that are chosen, in the
    order of `candidates_of`. Names lie in public files, so they hold no path (contract 1).

    Returns:
        Such as `efficientnet_lite1, 224 pixels`; an empty tuple if the config chooses nothing.
    """
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
    """A network by its name alone: where its files lie on the operator's machine is private.

    Args:
        model: `features.model`. Names of hubs stay whole; of a local folder the last part is left.
    """
    if model.startswith((f"{HUGGING_FACE}.", f"{HUGGING_FACE}~", f"{HUGGING_FACE}/")):
        return Path(model.removeprefix(HUGGING_FACE)).name
    return Path(model.removeprefix(FOLDER)).name if model.startswith(FOLDER) else model
