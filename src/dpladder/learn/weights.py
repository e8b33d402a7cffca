"""Weights as safetensors files, with the config and the statement they belong to in the metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from dpladder.errors import BadInput
from dpladder.learn.interface import Weights

KEY = "dpladder"  # one metadata entry, because the library writes several in no fixed order


def save(path: Path, weights: Weights, metadata: Mapping[str, Any]) -> None:
    # The library writes the bytes as they lie, whatever the strides are.
    layers = {f"layers.{depth}": np.ascontiguousarray(layer) for depth, layer in enumerate(weights)}
    save_file(layers, path, {KEY: json.dumps(metadata, sort_keys=True, allow_nan=False)})


def load(path: Path) -> tuple[Weights, dict[str, Any]]:
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = json.loads((file.metadata() or {})[KEY])
            return tuple(file.get_tensor(f"layers.{depth}") for depth in range(len(file.keys()))), metadata
    except (SafetensorError, KeyError, OSError) as error:
        raise BadInput(f"{path} holds no weights of dpladder. Give a file that train_final wrote.") from error
