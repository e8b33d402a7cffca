"""Checkpoints of others: a network's tensors, whatever they are called and whatever stands beside
them.

timm's names are one dialect. A checkpoint may hold the network below a prefix, in a box beside
other networks, or with heads of its own training. It may have its authors' names, which timm's
filter of that architecture translates. Whatever is read, each tensor of the network comes from the
checkpoint, and none is left over at its level but a head's. Two networks that fit are told, not
guessed between.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dpladder.config.checkpoints import SUFFIXES
from dpladder.errors import BadInput

HEADS = re.compile(r"(head|fc|classifier|projector|predictor|mask_token|decoder\w*)(\.|$)")
"""What a network was trained with and features leave out. More blocks than the network has are
another network."""

SIZED = ("patch_embed.proj.weight", "pos_embed", "relative_position_bias_table")
"""What timm's filters scale to another size of patches, images or windows."""


def load_checkpoint(name: str, state: Mapping[str, Any], origin: str) -> Any:
    """timm's network without its head, with the tensors of a checkpoint that are its own.

    Args:
        name: of timm's network.
        state: the checkpoint, read without running code.
        origin: where it is from, for messages.

    Raises:
        BadInput: no reading of the checkpoint fits the network, more than one does, or a weight is
            not finite.
    """
    import timm

    model = timm.create_model(name, num_classes=0)
    readings = [*_readings(_flat(state), model)]
    if len(readings) > 1:
        raise BadInput(
            f"features.weights: {origin} holds {len(readings)} networks that fit {name}, below "
            f"{', '.join(where for where, _ in readings)}. Save the one that is meant by itself."
        )
    if not readings:
        raise BadInput(
            f"features.weights: {origin} does not fit {name} tensor by tensor. Check that the "
            "checkpoint is of this model; names of its own are understood where timm has a filter "
            "for the architecture, or else save it under timm's names."
        )
    [(_, tensors)] = readings
    model.load_state_dict(tensors, strict=True)
    if not all(weight.isfinite().all() for weight in model.parameters()):
        raise BadInput(
            f"features.weights: {origin} holds weights that are not finite. Save the checkpoint "
            "again, from before its training went wrong."
        )
    return model


def read_state(path: Path) -> Mapping[str, Any]:
    """A checkpoint's tensors. Never its code: pickled objects are refused, for unpickling one may
    run anything.

    Raises:
        BadInput: there is no such file, it has another suffix, or it holds more than tensors.
    """
    from timm.models import load_state_dict

    if path.suffix not in SUFFIXES:
        raise BadInput(
            f"features.weights: {path} must be bundled, pretrained, or a file that ends in "
            f"{', '.join(SUFFIXES)}."
        )
    if not path.is_file():
        raise BadInput(
            f"features.weights: {path} does not exist. Check the path and that its disk is mounted."
        )
    try:
        state: Mapping[str, Any] = load_state_dict(os.fspath(path), device="cpu", weights_only=True)
    except Exception as error:
        raise BadInput(
            f"features.weights: {path} cannot be read as plain tensors. Save a state_dict, best as "
            ".safetensors."
        ) from error
    return state


def _readings(state: Mapping[str, Any], model: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every way to find all of the network in a checkpoint: as it stands, below a prefix, or
    translated by timm."""
    wanted = model.state_dict()
    # what timm calls the heads of this architecture: last_linear, head_dist, ...
    classifier = model.pretrained_cfg.get("classifier") or ()
    names = (classifier,) if isinstance(classifier, str) else classifier
    heads = tuple(f"{name}." for name in names)
    first = next(iter(wanted))
    prefixes = [
        key.removesuffix(first) for key in state if key == first or key.endswith(f".{first}")
    ]
    readings = [
        (prefix, tensors)
        for prefix in prefixes
        for tensors in [
            {key.removeprefix(prefix): state[key] for key in state if key.startswith(prefix)}
        ]
        if _fits(tensors, wanted, heads)
    ]
    if readings:
        yield from ((prefix or "no prefix", _body(tensors, wanted)) for prefix, tensors in readings)
        return
    translated = _translate_checkpoint(state, model)
    if translated is not None and _fits(translated, wanted, heads):
        yield "no prefix", _body(translated, wanted)


def _fits(state: Mapping[str, Any], wanted: Mapping[str, Any], heads: tuple[str, ...]) -> bool:
    """Whether tensors are all of a network, and nothing else but heads."""
    fits = all(_is_same_shape(state, key, tensor) for key, tensor in wanted.items())
    return fits and all(key in wanted or HEADS.match(key) or key.startswith(heads) for key in state)


def _is_same_shape(state: Mapping[str, Any], key: str, wanted: Any) -> bool:
    """Batches are counted for training alone, and older checkpoints do not. Whole numbers are no
    weights, but what a scale elsewhere makes weights of."""
    if key not in state:
        return key.endswith("num_batches_tracked")
    tensor = state[key]
    dense = tensor.layout == wanted.layout and not tensor.is_meta
    number = tensor.is_floating_point() or not wanted.is_floating_point()
    return bool(dense and number and tensor.shape == wanted.shape)


def _body(state: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The tensors that the network has, without heads."""
    return {key: state[key] for key in wanted if key in state}


def _flat(state: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Tensors alone, those of boxes under the box's name."""
    tensors: dict[str, Any] = {}
    for key, value in state.items():
        if isinstance(value, Mapping):
            tensors |= _flat(value, f"{prefix}{key}.")
        elif hasattr(value, "shape"):
            tensors[f"{prefix}{key}"] = value
    return tensors


def _translate_checkpoint(state: Mapping[str, Any], model: Any) -> Mapping[str, Any] | None:
    """By timm's filter for checkpoints of this architecture, where it has one and knows these
    names. A filter would also make patches and positions of one size from those of another, which
    is another network."""
    translate = getattr(sys.modules[type(model).__module__], "checkpoint_filter_fn", None)
    try:
        translated: Mapping[str, Any] | None = (
            None if translate is None else translate(dict(state), model)
        )
    except Exception:  # names that it does not know
        return None
    sized = [key for key in translated or () if key.endswith(SIZED) and key in state]
    return (
        translated
        if translated and all(translated[key].numel() == state[key].numel() for key in sized)
        else None
    )
