"""Depths of a public network: how they are named, and which of them features are taken from.

A depth is a stage of a network for images, or a layer of one for texts. What each puts out is
pooled, and all of them are kept from one forward pass; `last` is the network's own pooled output.
Which stages a network has is found when it runs (network/depths.py, data/sentences.py). Of the
bundled ones it is known here, so that a name that none of them has is refused at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from dpladder.config.features_sections import BUNDLED_IMAGES, BUNDLED_TEXT, LAST, Features, Layers
from dpladder.config.sources import Takes
from dpladder.errors import BadInput
from dpladder.wording import did_you_mean

EMBEDDINGS = "embeddings"
LAYER = "layer."  # and its number, from 1 on
MOST_STAGES = 8  # stages that are all kept
LATE = (1 / 2, 2 / 3, 5 / 6, 1)  # of a longer stack, how far up those are that are kept
STAGES = 3  # of images, whose last ones are taken together

STAGES_OF_LITE = tuple(f"blocks.{stage}" for stage in range(7))
LAYERS_OF_MINILM = (EMBEDDINGS, *(f"{LAYER}{layer}" for layer in range(1, 6)))
OF_BUNDLED = {
    **dict.fromkeys(BUNDLED_IMAGES, (*STAGES_OF_LITE, LAST)),
    BUNDLED_TEXT: (*LAYERS_OF_MINILM, LAST),
}


def candidates(stages: Sequence[str]) -> tuple[str, ...]:
    """Those stages of a network, in their order, whose outputs are kept.

    Args:
        stages: all that the network has, from the input up, its own pooled output left out.

    Returns:
        All of up to `MOST_STAGES`; of a longer stack four in its upper half, the last among them.
    """
    if len(stages) <= MOST_STAGES:
        return tuple(stages)
    return tuple(stages[ceil(share * len(stages)) - 1] for share in LATE)


def resolve_layers(
    layers: Layers, known: Sequence[str], takes: Takes, model: str
) -> tuple[str, ...]:
    """The depths that `features.layers` stands for, in the order in which their outputs are laid
    side by side.

    Args:
        layers: `auto`, `last`, or depths by name.
        known: all depths that the network has, from the input up, `last` among them.
        takes: images or texts, which have defaults of their own.
        model: the network's name, for the message.

    Raises:
        BadInput: a name is no depth of the network.
    """
    stages = [name for name in known if name != LAST]
    if layers == "last" or (layers == "auto" and not stages):
        return (LAST,)
    if layers == "auto":
        return (EMBEDDINGS, LAST) if takes == "texts" else tuple(stages[-STAGES:])
    for name in layers:
        if name not in known:
            raise BadInput(
                f"features.layers: {name!r} is no depth of {model}; {did_you_mean(name, known)}it "
                f"has {', '.join(known)}."
            )
    return tuple(layers)


def alternatives(known: Sequence[str], takes: Takes, model: str) -> list[tuple[str, ...]]:
    """What public heads are compared on, the default first, each once.

    Args:
        known: all depths of the network, from the input up.
        takes: of images each of the last three stages is tried with up to two before it, of texts
            each layer beside the last one.
        model: the network's name, for messages.

    Returns:
        Depths of each alternative. The last of them is the last depth alone.
    """
    usual = resolve_layers("auto", known, takes, model)
    stages = [name for name in known if name != LAST]
    choices: list[tuple[str, ...]]
    if takes == "texts":
        choices = [(name, LAST) for name in stages]
    else:
        ends = range(max(1, len(stages) - STAGES + 1), len(stages) + 1)
        choices = [
            tuple(stages[start:end]) for end in ends for start in range(max(0, end - STAGES), end)
        ]
    return list(dict.fromkeys([usual, *choices, (LAST,)]))


def in_words(features: Features) -> str:
    """Which depths features are of, as far as a config tells.

    Args:
        features: whose network need not be at hand. Of one that is not bundled `auto` stays in
            words.
    """
    if features.model in OF_BUNDLED:
        known = OF_BUNDLED[features.model]
        return " + ".join(resolve_layers(features.layers, known, features.takes, features.model))
    if features.layers != "auto":
        return features.layers if features.layers == "last" else " + ".join(features.layers)
    return f"{EMBEDDINGS} + {LAST}" if features.takes == "texts" else f"its last {STAGES} stages"
