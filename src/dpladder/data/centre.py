"""The public map from a record's stored features to what a training sees: less a mean, at one
public length.

Pooled features are mostly positive, so much of a record's length is a mean that tells no class from
another. Noise is added in proportion to length. The mean may be a public sample's, the network's
own by its last norm, or the data's with noise (Sun et al. 2023). It had served as a bias, so a
constant feature takes its place. The length makes kappa exact (search/space.py): a unit of the
noise in a logit needs to know how long a record is.

Each record is mapped by itself, so all of this costs nothing beside the noised mean.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpladder.config.curves import Curves, curves_of, width_of_block
from dpladder.config.dataset_sections import Chosen, Cross
from dpladder.config.depths import in_words
from dpladder.config.features_sections import LAST, Features, Length, Mean
from dpladder.data.depths import (
    DepthKeys,
    Depths,
    Known,
    MeanFile,
    depths_taken,
)
from dpladder.errors import BadInput
from dpladder.privacy.arrays import Floats, curves_width, map_rows, with_curves

BLOCK = 8192  # rows held in float64 at a time


@dataclass(frozen=True, eq=False)
class Map:
    """From stored rows to those that a training sees, each row by itself.

    Exported models map records by the same function (use/standalone.py). A new field goes also into
    `map_of`.

    Attributes:
        mean: that rows lose, public or released; None where they lose none.
        radius: of the ball that rows are scaled into before a noised mean is taken away. So the
            mean is that of the rows that lose it.
        length: that rows are scaled to at last; None leaves them as they are.
        constant: the share of a centred row's length that is a constant feature's.
        exact: whether rows are all scaled to `radius`, and not only those beyond it.
        depths: the columns that are taken, before all else; None where all are.
        curves: of a table's numbers, which stand beside them before all that follows.
    """

    mean: NDArray[np.float64] | None = None
    radius: float | None = None
    length: float | None = None
    constant: float = 0.0
    exact: bool = False
    depths: Depths | None = None
    curves: Curves = ()

    @property
    def facts(self) -> dict[str, Any]:
        """What a model's file says of it, beside the mean."""
        facts = {field.name: getattr(self, field.name) for field in fields(self)}
        depths = None if self.depths is None else self.depths.facts
        absent = {"mean"} if self.curves else {"mean", "curves"}
        return {key: facts[key] for key in facts if key not in absent} | {"depths": depths}

    def width(self, stored: int) -> int:
        """Numbers of a mapped row.

        Args:
            stored: numbers of a stored row.
        """
        return self.centred_width(stored) + (self.mean is not None and self.constant > 0)

    def centred_width(self, stored: int) -> int:
        """Numbers of a row that loses a mean, before a constant feature stands beside it."""
        width = stored if self.depths is None else self.depths.width
        return width + curves_width(self.curves)

    def __call__(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        x = np.asarray(rows, np.float64) if self.depths is None else self.depths(rows)
        if self.curves:
            x = with_curves(x, self.curves)
        mapped = map_rows(x, self.mean, self.radius, self.exact, self.length, self.constant)
        return np.asarray(mapped, np.float32)


@dataclass(frozen=True, eq=False)
class Mapped:
    """Features as a training sees them, mapped when they are read: what does not fit into memory is
    never copied."""

    stored: NDArray[Any]
    map: Map

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.stored.shape[:-1], self.map.width(self.stored.shape[-1]))

    @property
    def ndim(self) -> int:
        return self.stored.ndim

    def __len__(self) -> int:
        return len(self.stored)

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        return self.map(self.stored[rows])

    @property
    def loses(self) -> NDArray[np.float64] | None:
        """What all rows lose that are zero nearly everywhere before (learn/thin_rows.py); None of
        rows that are not so."""
        by = self.map
        if not by.curves or by.depths is not None or by.length is not None:
            return None
        if by.mean is None:
            return np.zeros(self.shape[-1])
        return by.mean if by.constant == 0 else None

    @property
    def sums_of_hats(self) -> dict[int, tuple[int, Floats]]:
        """Numbers that are told by their hats, whose knots reach over the whole range: where each
        stands, where its hats begin, and the knots. Hats times knots sum up to the number."""
        starts = np.cumsum([self.stored.shape[-1], *map(width_of_block, self.map.curves)])
        return {
            bases[0][0]: (int(start), np.array(bases[0][1]))
            for start, bases in zip(starts, self.map.curves, strict=False)
            if len(bases) == 1
        }

    @property
    def most(self) -> int:
        """How many numbers of a row are not zero, before it loses that, nor told by others: of each
        basis two are."""
        alone = int(self.stored.shape[-1]) - len(self.sums_of_hats)
        return alone + sum(2 ** len(bases) for bases in self.map.curves)

    def before_loss(self, rows: Any) -> NDArray[np.float32]:
        """Rows before they lose it."""
        return replace(self.map, mean=None)(self.stored[rows])


class MapKeys(DepthKeys, Protocol):
    """What a config says of the map, as a rule reads it.

    Attributes:
        mean: of the section, where a noised mean is bought.
        constant: the share of a centred row's length that is a constant feature's.
        columns, curves, crosses: of a table, which of them are curves, and which are multiplied.
    """

    @property
    def columns(self) -> tuple[Chosen, ...]: ...
    @property
    def curves(self) -> int: ...
    @property
    def crosses(self) -> tuple[Cross, ...]: ...
    @property
    def mean(self) -> Mean | None: ...
    @property
    def constant(self) -> float: ...


def map_of(keys: MapKeys, known: Known, mean_file: MeanFile) -> Map:
    """The map from a cache's rows to those that a training sees.

    Args:
        keys: what the config says of it.
        known: the depths that the cache holds.
        mean_file: the mean that rows lose, and the sd of its noise where it is a release.
    """
    depths = depths_taken(keys, known, mean_file)
    mean, noise = mean_file.get("mean"), float(mean_file.get("noise", [0.0])[0])
    if mean is not None and noise:
        mean = shrink_mean(mean, noise)
    bought, length = keys.mean, None if isinstance(keys.length, str) else keys.length
    radius, exact = None, False
    if bought is not None and mean is not None:
        radius, exact = ball(bought.radius, keys.length)
    elif keys.length == "at_most":
        radius = keys.typical
    curves = curves_of(keys.columns, keys.curves, keys.crosses)
    return Map(mean, radius, length, keys.constant, exact, depths, curves)


def ball(radius: float | None, length: Length) -> tuple[float, bool]:
    """Where records are scaled to before their mean is noised: into a ball of their own, or all to
    the public length. The radius is the mean's sensitivity, and public.

    Args:
        radius: of the config's `features.mean`; None where it has none.
        length: of the config's `features.length`.

    Returns:
        The radius, and whether all records are scaled to it.
    """
    if radius is not None:
        return radius, False
    if isinstance(length, str):
        raise BadInput(f"features.mean needs a radius where features.length is {length}.")
    return length, True


def shrink_mean(mean: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """A released mean, moved towards zero by as much of its squared length as noise is expected to
    add.

    It is the positive-part James-Stein estimate (James and Stein 1961; Efron and Morris 1973, eq.
    1.2 with d in place of d - 2). It follows from the release, so it costs nothing.

    Args:
        mean: released, of shape (dimension,).
        noise: sd of its noise in each coordinate.

    Returns:
        The mean times max(0, 1 - dimension noise^2 / |mean|^2).
    """
    squared = float(mean @ mean)
    share = 1.0 - len(mean) * noise**2 / squared if squared > 0 else 0.0
    return mean * max(0.0, share)


def plain_mean(features: NDArray[Any] | Mapped) -> NDArray[np.float64]:
    """The plain mean of a sample that is declared public, exact, of shape (dimension,).

    No noise is added: of private records it would be a leak.
    """
    total = np.zeros(features.shape[1])
    for start in range(0, len(features), BLOCK):
        total += np.asarray(features[start : start + BLOCK], np.float64).sum(axis=0)
    return total / max(len(features), 1)


def network_mean(features: Features) -> NDArray[np.float64]:
    """The mean of the pooled features as the network itself knows it, without an image.

    A batch norm's outputs have mean beta and deviation gamma in each channel. They have them over
    the images that it was trained on (Ioffe & Szegedy 2015, section 3). So the mean behind it and
    its activation is E[act(z)], z ~ N(beta, gamma^2). A layer norm's have mean beta, where inputs
    are spread evenly around theirs (Ba et al. 2016).
    """
    import torch
    from timm.layers import BatchNormAct2d
    from torch import nn

    from dpladder.network.public import model_of

    known_mean = model_of(features)
    if features.layers == LAST:
        norms = [m for m in known_mean.modules() if isinstance(m, nn.BatchNorm2d | nn.LayerNorm)]
        last = norms[-1] if norms else None
        if isinstance(last, BatchNormAct2d):
            place = torch.linspace(-8.0, 8.0, 4001, dtype=torch.float64)[:, None]
            weight = torch.softmax(-(place**2) / 2, dim=0)
            with torch.inference_mode():
                seen = last.act(last.bias.double() + last.weight.double().abs() * place)
                mean: NDArray[np.float64] = (weight * seen).sum(dim=0).numpy()
            return mean
        if isinstance(last, nn.LayerNorm) and last.bias is not None:
            beta: NDArray[np.float64] = last.bias.detach().double().numpy()
            return beta
    raise BadInput(
        f"features.centre is network, and {in_words(features)} of {features.model} ends in no "
        "batch or layer norm that tells a mean. Name dataset.public_sample, or set "
        "features.centre: none."
    )
