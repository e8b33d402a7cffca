"""The depths that a training sees, of all that were kept of each record: each a range of
columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpladder.config.depths import resolve_layers
from dpladder.config.features_sections import Features, Layers, Length, row_length
from dpladder.config.sources import Takes
from dpladder.privacy.arrays import to_length

Known = tuple[tuple[str, int], ...]
"""The depths that were kept, in the order of their columns: each one's name and width. None of
records that are features, or of activations at a cut."""
LAYERS = "layers"  # in the file of a public sample's mean: the places of the depths that it chose

MeanFile = Mapping[str, NDArray[Any]]
"""The file of the mean that features are less of; empty where they are less of none."""
NO_MEANS: MeanFile = {}


class DepthKeys(Protocol):
    """What a config says of depths, as a rule reads it (plan/reads.py).

    Attributes:
        model: the network's name.
        layers: those that a training takes.
        length: that whole rows are scaled to.
        typical: a row's length where rows stay as they are.
    """

    @property
    def model(self) -> str: ...
    @property
    def layers(self) -> Layers: ...
    @property
    def length(self) -> Length: ...
    @property
    def typical(self) -> float: ...


@dataclass(frozen=True)
class Depths:
    """Which columns features are of.

    Several depths are scaled to one length each, record by record, so that none drowns the others.
    One alone stays as it is.

    Attributes:
        names: in the order in which they are laid side by side.
        spans: the columns of each among the stored ones, from and to.
        length: of all together.
    """

    names: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    length: float

    @property
    def width(self) -> int:
        """Numbers of a row of these depths."""
        return sum(end - start for start, end in self.spans)

    @property
    def length_of_each(self) -> float | None:
        """The length of each depth; None of one alone."""
        return self.length / len(self.names) ** 0.5 if len(self.names) > 1 else None

    @property
    def facts(self) -> dict[str, Any]:
        """What a model's file says of them."""
        return {"layers": [*self.names], "length": self.length}

    def __call__(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        parts = [np.asarray(rows[..., start:end], np.float64) for start, end in self.spans]
        if self.length_of_each is None:
            return parts[0]
        return np.concatenate([to_length(part, self.length_of_each) for part in parts], axis=-1)


def stored_depths(facts: Mapping[str, Any]) -> Known:
    """The depths that a cache or a model's file says were kept."""
    return tuple((name, width) for name, width in json.loads(str(facts.get("depths", "[]"))))


def to_json(known: Known) -> str:
    """The depths that were kept as text, for a cache: `stored_depths` turned around."""
    return json.dumps(known)


def spans_of(known: Known) -> list[tuple[int, int]]:
    """The columns of each depth, from and to, in order."""
    ends = np.cumsum([width for _, width in known]).tolist()
    return [(end - width, end) for (_, width), end in zip(known, ends, strict=True)]


def depths_by_name(names: Sequence[str], known: Known, length: float) -> Depths:
    """These depths of a network, as they are laid side by side.

    Args:
        names: in the order in which their outputs stand.
        known: all depths that a cache holds.
        length: of all together, which they share evenly.
    """
    spans = dict(zip((name for name, _ in known), spans_of(known), strict=True))
    return Depths(tuple(names), tuple(spans[name] for name in names), length)


def depths_for(
    layers: Layers, known: Known, length: float, takes: Takes, model: str
) -> Depths | None:
    """The depths that a config asks for; None where there is nothing to choose from.

    Args:
        layers: of the config: names, or words that stand for some.
        known: what was kept of the network, with widths.
        length: of a whole row, which depths share evenly.
        takes, model: what the network is, for what words stand for.
    """
    if not known:
        return None
    return depths_by_name(
        resolve_layers(layers, [name for name, _ in known], takes, model), known, length
    )


def depths_taken(keys: DepthKeys, known: Known, mean_file: MeanFile) -> Depths | None:
    """The depths that trainings take, of those that a cache holds: those that a public sample
    chose, where one did."""
    if LAYERS in mean_file:
        names = [known[place][0] for place in mean_file[LAYERS]]
        return depths_by_name(names, known, row_length(keys.length, keys.typical))
    takes = Features(model=keys.model).takes
    return depths_for(keys.layers, known, row_length(keys.length, keys.typical), takes, keys.model)
