"""Weights as safetensors files, with the config and the statement they belong to in the
metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from dpladder import formats
from dpladder.errors import BadInput
from dpladder.formats import FORMATS
from dpladder.learn.interface import Weights
from dpladder.public_files import open_file, parse_json

KEY = "dpladder"  # one metadata entry, because the library writes several in no fixed order
MEAN = "mean"
TENSORS = "tensors"  # names in their order, where weights are no layers in a row


def save(
    path: Path,
    weights: Weights,
    metadata: Mapping[str, Any],
    mean: NDArray[np.float64] | None = None,
    names: Sequence[str] = (),
) -> None:
    """Write released weights as safetensors.

    Args:
        path: of the file.
        weights: layers in a row, or named tensors; float32.
        metadata: public facts that a model needs: classes, network, learner.
        mean: what is taken away from records before they meet the weights, (dimension,).
        names: of the weights, where they are no layers in a row.
    """
    metadata = {
        **metadata,
        **({TENSORS: [*names]} if names else {}),
        formats.KEY: FORMATS["weights"],
    }
    layers = names or [f"layers.{depth}" for depth in range(len(weights))]
    tensors: dict[str, NDArray[Any]] = dict(zip(layers, weights, strict=True))
    if mean is not None:
        tensors[MEAN] = mean
    # The library writes the bytes as they lie, whatever the strides are.
    whole = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    save_file(whole, path, {KEY: json.dumps(metadata, sort_keys=True, allow_nan=False)})


def load(path: Path) -> tuple[Weights, dict[str, Any]]:
    """Released weights and their metadata. No code in the file is run: safetensors holds none.

    Raises:
        BadInput: there is no such file, or it holds no weights of dpladder.
    """
    layers, _, metadata = load_with_mean(path)
    return layers, metadata


def load_with_mean(path: Path) -> tuple[Weights, NDArray[np.float64] | None, dict[str, Any]]:
    """Released weights, the mean that records lose first, and the metadata. No code in the file is
    run.

    Returns:
        The layers; the mean, float64 (dimension,), or None; and the metadata.

    Raises:
        BadInput: there is no such file, or it holds no weights of dpladder.
        Newer: a later dpladder wrote it.
    """
    try:
        open_file(path).close()  # the library would wait for a pipe
        with safe_open(path, framework="numpy") as file:
            metadata = parse_json((file.metadata() or {})[KEY])
            formats.check("weights", path, metadata.get(formats.KEY))
            stored = set(file.keys())
            names = metadata.get(TENSORS) or [
                f"layers.{depth}" for depth in range(len(stored - {MEAN}))
            ]
            layers = tuple(file.get_tensor(name) for name in names)
            return layers, file.get_tensor(MEAN) if MEAN in stored else None, metadata
    except FileNotFoundError:
        raise BadInput(
            f"{path} does not exist. Start dpladder run first, which makes a model, or give "
            "the path of one, results/<experiment>/final/<epsilon>/weights.safetensors."
        ) from None
    except (SafetensorError, LookupError, OSError, ValueError, TypeError, AttributeError) as error:
        raise BadInput(
            f"{path} holds no weights of dpladder. Give a file that train_final wrote."
        ) from error
