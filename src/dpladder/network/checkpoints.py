"""Checkpoints of others: a network's tensors, whatever they are called and whatever stands beside
them.

timm's names are one dialect. A checkpoint may hold the network below a prefix, in a box beside
other networks, with heads of its own training, or under its authors' names, which timm's filter of
that architecture translates. Whatever is read, each tensor of the network comes from the
checkpoint, none is left over at its level but a head's, and two networks that fit are told, not
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


def loaded(name: str, state: Mapping[str, Any], origin: str) -> Any:
    """timm's network without its head, with the tensors of a checkpoint that are its own."""
    import timm

    model = timm.create_model(name, num_classes=0)
    found = [*_readings(_flat(state), model)]
    if len(found) > 1:
        raise BadInput(
            f"features.weights: {origin} holds {len(found)} networks that fit {name}, below "
            f"{', '.join(where for where, _ in found)}. Save the one that is meant by itself."
        )
    if not found:
        raise BadInput(
            f"features.weights: {origin} does not fit {name} tensor by tensor. Check that the "
            "checkpoint is of this model; names of its own are understood where timm has a filter "
            "for the architecture, or else save it under timm's names."
        )
    [(_, tensors)] = found
    model.load_state_dict(tensors, strict=True)
    if not all(weight.isfinite().all() for weight in model.parameters()):
        raise BadInput(
            f"features.weights: {origin} holds weights that are not finite. Save the checkpoint "
            "again, from before its training went wrong."
        )
    return model


def read_state(path: Path) -> Mapping[str, Any]:
    """A checkpoint's tensors. Never its code: pickled objects are refused."""
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
        found: Mapping[str, Any] = load_state_dict(os.fspath(path), device="cpu", weights_only=True)
    except Exception as error:
        raise BadInput(
            f"features.weights: {path} cannot be read as plain tensors. Save a state_dict, best as "
            ".safetensors."
        ) from error
    return found


def _readings(state: Mapping[str, Any], model: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every way to find all of the network in a checkpoint: as it stands, below a prefix, or
    translated by timm."""
    wanted, heads = model.state_dict(), _own_heads(model)
    first = next(iter(wanted))
    prefixes = [
        key.removesuffix(first) for key in state if key == first or key.endswith(f".{first}")
    ]
    within = [(prefix, _below(state, prefix)) for prefix in prefixes]
    found = [(prefix, own) for prefix, own in within if _fits(own, wanted, heads)]
    if found:
        yield from ((prefix or "no prefix", _body(own, wanted)) for prefix, own in found)
        return
    translated = _translated(state, model)
    if translated is not None and _fits(translated, wanted, heads):
        yield "no prefix", _body(translated, wanted)


def _own_heads(model: Any) -> tuple[str, ...]:
    """What timm calls the heads of this architecture: last_linear, head_dist, ..."""
    named = model.pretrained_cfg.get("classifier") or ()
    return tuple(f"{name}." for name in ((named,) if isinstance(named, str) else named))


def _fits(state: Mapping[str, Any], wanted: Mapping[str, Any], heads: tuple[str, ...]) -> bool:
    own = all(_holds(state, key, tensor) for key, tensor in wanted.items())
    return own and all(key in wanted or HEADS.match(key) or key.startswith(heads) for key in state)


def _holds(state: Mapping[str, Any], key: str, wanted: Any) -> bool:
    """Batches are counted for training alone, and older checkpoints do not. Whole numbers are no
    weights, but what a scale elsewhere makes weights of."""
    if key not in state:
        return key.endswith("num_batches_tracked")
    found = state[key]
    dense = found.layout == wanted.layout and not found.is_meta
    number = found.is_floating_point() or not wanted.is_floating_point()
    return bool(dense and number and found.shape == wanted.shape)


def _body(state: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {key: state[key] for key in wanted if key in state}


def _below(state: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {
        key.removeprefix(prefix): tensor for key, tensor in state.items() if key.startswith(prefix)
    }


def _flat(state: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Tensors alone, those of boxes under the box's name."""
    found: dict[str, Any] = {}
    for key, held in state.items():
        if isinstance(held, Mapping):
            found |= _flat(held, f"{prefix}{key}.")
        elif hasattr(held, "shape"):
            found[f"{prefix}{key}"] = held
    return found


def _translated(state: Mapping[str, Any], model: Any) -> Mapping[str, Any] | None:
    """By timm's filter for checkpoints of this architecture, where it has one and knows these
    names. A filter would also make patches and positions of one size from those of another, which
    is another network."""
    translate = getattr(sys.modules[type(model).__module__], "checkpoint_filter_fn", None)
    try:
        found: Mapping[str, Any] | None = (
            None if translate is None else translate(dict(state), model)
        )
    except Exception:  # names that it does not know
        return None
    sized = [key for key in found or () if key.endswith(SIZED) and key in state]
    return (
        found if found and all(found[key].numel() == state[key].numel() for key in sized) else None
    )
