"""Private records on their way into a training: resident on the device, or streamed from where they
lie."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from dpladder.config.label_sets import label_number_limit
from dpladder.config.model import Resources
from dpladder.errors import BadInput, Refused
from dpladder.learn import thin_rows
from dpladder.learn.bounds import ROOM_FACTOR, SLACK, Scale, slack
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.learn.thin_rows import ThinRows

Rows = slice | Tensor


# a squared norm; what is longer counts as nothing, for float32 cannot scale it back into a small
# ball
LONGEST = 1e30
LONGEST_SINGLE = 1024  # records whose sum float32 may take: the slack was measured with so many


@dataclass(frozen=True)
class Records:
    """What a record contributes depends on its own row of each of these, and on nothing else.

    Chunks are all of one size, the last ones filled up with rows that count as nothing. A matrix
    product rounds a row in another way where the number of rows differs: a record would change its
    contribution when a neighbour comes.

    Attributes:
        features: a tensor (rows, views, width) once resident, or thin rows; before, as they are
            stored, without the rows that fill up chunks.
        labels: (rows,).
        gram: (rows, views, views) float64, inner products of a record's views, the bias included.
        counted: (rows,), whether a record contributes at all.
        bias: whether a last feature is 1 everywhere.
        chunk: records computed at a time.
        slack: by how much each is kept inside its bound (bounds.py), from public figures alone.
        exact: whether there are more records than that leaves room for.
    """

    features: Any
    labels: Tensor
    gram: Tensor
    counted: Tensor
    bias: bool
    chunk: int
    slack: float = SLACK
    exact: bool = False

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def device(self) -> torch.device:
        """Where the records are computed."""
        return self.labels.device

    def chunks(self) -> list[Rows]:
        """All rows, in a fixed order."""
        return [*_slices(len(self), self.chunk)]

    def select_rows(self, mask: NDArray[np.bool_]) -> list[Rows]:
        """The rows that a mask names, and the last row, which counts as nothing, until their chunks
        are full."""
        rows = torch.from_numpy(np.flatnonzero(mask)).to(self.device)
        filled = pad(rows, (0, -len(rows) % self.chunk), value=len(self) - 1)
        return [filled[part] for part in _slices(len(filled), self.chunk)]

    def as_summable(self, factor: Tensor) -> Tensor:
        """A factor of a product that adds up records, in the type that it is added up in.

        It is float64 on a GPU, which rounds in its own way, and for chunks that are longer than the
        slack was measured with. It is float64 too where there are more records than the slack
        leaves room for. A unit that joins at that line moves the sum by what float32 rounded until
        then, which the slack pays for.
        """
        long = self.chunk > LONGEST_SINGLE
        return factor.double() if self.exact or long or factor.is_cuda else factor

    def block(self, rows: Rows) -> Tensor:
        """Some records' features as float32 of shape (rows, views, width)."""
        if isinstance(self.features, Tensor):
            return self.features[rows]
        if isinstance(self.features, ThinRows):
            return self.features.dense(rows)
        if isinstance(rows, slice):
            x = _read_views(self.features, rows, self.device)
            x = pad(x, (0, 0, 0, 0, 0, rows.stop - rows.start - len(x)))
        else:
            chosen = rows.cpu().numpy().clip(max=len(self.features) - 1)
            _expect(self.features, chosen)
            x = _read_views(self.features, chosen, self.device)
        x.index_fill_(0, (~self.counted[rows]).nonzero()[:, 0], 0.0)
        return pad(x, (0, 1), value=1.0) if self.bias else x


ClippedSum = Callable[[Tensor, float, list[Rows], Scale], Tensor]
"""Sum of gradients, each scaled to a bound, over some rows, for each of several trainings' weights.
"""

Bounded = Callable[[Tensor], Tensor]
"""What is summed up, of each record's losses under several weights: (weights, records) to (sums,
records)."""

SummedLosses = Callable[[Tensor, Bounded, list[Rows]], Tensor]


def no_losses(*_: Any) -> Tensor:
    """In place of losses, for a model of which no query asks them."""
    raise Refused("nothing asks for the losses of this model.")


@dataclass(frozen=True, eq=False)
class Sums:
    """Records, and what is summed up of them for one kind of model.

    Attributes:
        records: private, or a public sample's.
        gradients: sums of gradients, each kept within a bound.
        losses: sums of what a public rule makes of losses.
    """

    records: Records
    gradients: ClippedSum
    losses: SummedLosses


@dataclass(frozen=True, eq=False)
class Guide:
    """Public records whose gradients join each step's (learn/guide.py). What they answer is free.

    Attributes:
        batches: their rows, which steps take in turn.
        directions: how many their features take up.
        units: how many public units count.
    """

    gradients: ClippedSum
    batches: Sequence[list[Rows]]
    directions: float
    units: int

    def mean(self, weights: Tensor, bound: float, step: int, scale: Scale) -> Tensor:
        """The mean clipped gradient of one step's batch, for each of several trainings' weights.

        Args:
            weights: (trainings, ...).
            bound: length that each gradient is kept within, as private ones are.
            step: number of the step; its batch follows from it.
            scale: how gradients are kept within the bound.
        """
        rows = self.batches[step % len(self.batches)]
        return self.gradients(weights, bound, rows, scale) / (self.units / len(self.batches))


OVERRULING = (
    "NVIDIA_TF32_OVERRIDE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "DNNL_DEFAULT_FPMATH_MODE",
)
"""Variables by which the environment makes products of float32 less exact."""
PLAIN = ("", "0", "strict")


def prepare(resources: Resources) -> torch.device:
    """Pin what the arithmetic depends on, for the whole process, and choose the device.

    Raises:
        Refused: the environment overrules what is pinned here.
    """
    torch.set_num_threads(resources.threads)
    torch.set_float32_matmul_precision("highest")  # no TF32 in products
    torch.backends.cudnn.allow_tf32 = False  # nor in convolutions, where it is on by default
    overruled = [name for name in OVERRULING if os.environ.get(name, "").lower() not in PLAIN]
    if overruled:
        raise Refused(
            f"{', '.join(overruled)} makes products round records to fewer bits than the room for "
            "rounding pays for, whatever a training asks for. Unset it, and start the job again."
        )
    if not (resources.gpu and torch.cuda.is_available()):
        return torch.device("cpu")
    # A job that is resumed computes the same bits. cuBLAS wants a workspace of a fixed size for it.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True)
    # nothing reads such memory here
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    return torch.device("cuda")


def load(
    data: Data,
    constants: Constants,
    device: torch.device,
    *,
    chunk: int,
    memory_mb: int,
    views: int = 1,
    bias: bool = False,
    thin: bool = False,
) -> Records:
    """Records ready to train on. Those that contribute nothing are found here, each from itself
    alone. Such a one has an unknown label, features all zero, no finite length, or one that float32
    cannot scale.

    They become resident where so many as are declared fit into half of the memory, so that a step
    reads nothing but float32. How many there are decides nothing that a stranger could see.

    Args:
        data: features as they are stored.
        constants: declared sizes, which decide what fits.
        device: where records become resident.
        chunk: records computed at a time.
        memory_mb: in MB, of the job; on a GPU its free memory counts instead.
        views: of each record.
        bias: whether a feature of 1 is added.
        thin: whether rows are kept thin, where these fit (`fits_as_thin`).

    Raises:
        BadInput: features, labels and units do not fit together.
    """
    features = _features_with_views(data, views, constants.dimension)
    count, width = len(features), constants.dimension + bias
    labels = torch.tensor(np.asarray(data.labels), dtype=torch.int64, device=device)
    more = chunk - count % chunk  # at least one row that counts as nothing
    gram = torch.empty(count, views, views, dtype=torch.float64, device=device)
    declared = constants.n0 * constants.cap
    resident = rows_as_thin = None
    if thin:
        rows_as_thin = _thin_rows(features, np.append(features.loses, [-1.0] * bias), more, gram)
    elif 8 * declared * views * width <= _memory(memory_mb, device):
        resident = torch.zeros(count + more, views, width, device=device)
    for rows in _slices(count if rows_as_thin is None else 0, chunk):
        x = _read_views(features, rows, device)
        exact = x.double()
        gram[rows] = exact @ exact.mT
        if resident is not None:
            resident[rows, :, : constants.dimension] = x
    known = (labels >= 0) & (labels < label_number_limit(constants.classes, constants.labels))
    squares = gram.diagonal(dim1=1, dim2=2)
    counted = known & (squares > 0).any(1) & (squares <= LONGEST).all(1)
    gram[~counted] = 0.0
    if resident is not None:
        resident[:count][~counted] = 0.0
        resident[:, :, constants.dimension :] = 1.0  # the bias, where there is one
    return Records(
        rows_as_thin or (features if resident is None else resident),
        pad(labels * counted, (0, more)),
        pad(gram + bias, (0, 0, 0, 0, 0, more)),
        pad(counted, (0, more)),
        bias,
        chunk,
        slack(ROOM_FACTOR * declared * views),
        exact=count > ROOM_FACTOR * declared,
    )


def fits_as_thin(features: Any, constants: Constants, memory_mb: int) -> bool:
    """Whether rows are zero nearly everywhere, and so many as are declared fit into half of a job's
    memory, with where each number stands. Public facts alone decide it."""
    if getattr(features, "loses", None) is None:
        return False
    numbers = 2 * constants.n0 * constants.cap * features.most
    return bool(8 * numbers <= memory_mb * 1_000_000)


def _thin_rows(features: Any, loses: NDArray[np.float64], more: int, gram: Tensor) -> ThinRows:
    """Rows of which only what is not zero is kept; rows that are too long have nothing, nor have
    those with more numbers than there is room for: an error would tell of them.

    Args:
        features: as `Mapped` has them (data/centre.py).
        loses: what each row loses, -1 for a bias among it.
        more: rows of zeros behind them.
        gram: gets the rows' squared lengths, the bias left out.
    """

    sums, width, most = features.sums_of_hats, features.shape[-1], features.most
    to_whole, summed = thin_rows.matrix_to_whole(sums, len(loses)), [*sums]
    lines = to_whole[:width, summed]

    def blocks() -> Iterator[NDArray[np.float32]]:
        for rows in _slices(len(features), LONGEST_SINGLE):  # in full for a moment
            x = features.before_loss(rows)
            finite = np.isfinite(x[:, summed]).all(axis=1)
            x[:, summed] = 0.0
            full = x.astype(np.float64)
            full[:, summed] = x @ lines
            full -= loses[:width]
            squares = (full**2).sum(axis=1)
            squares[~finite | (np.count_nonzero(x, axis=1) > most)] = np.inf
            gram[rows] = torch.from_numpy(squares)[:, None, None]
            x[~(squares <= LONGEST)] = 0.0  # no number among them
            yield x

    return thin_rows.gather(blocks(), len(features) + more, most, loses, to_whole)


def _slices(count: int, size: int) -> list[slice]:
    """Rows from 0 to the count, so many at a time; the last slice may be shorter."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def _features_with_views(data: Data, views: int, dimension: int) -> Any:
    """The features, which are read as (records, views, dimension)."""
    features = data.features
    shape = (1, *features.shape[1:]) if features.ndim == 2 else features.shape[1:]
    if shape != (views, dimension):
        raise BadInput(
            f"features hold {' x '.join(map(str, shape))} values per record, and learner.augment = "
            f"{views} needs {views} x {dimension}. Extract the features again, or correct "
            "learner.augment."
        )
    if len(data.labels) != len(features) or (
        data.units is not None and len(data.units) != len(features)
    ):
        raise BadInput(
            "features, labels and units need one row per record each. Extract the features again."
        )
    return features


def _read_views(features: Any, rows: slice | NDArray[np.int64], device: torch.device) -> Tensor:
    """As (rows, views, width)."""
    rows_read = torch.from_numpy(np.array(features[rows])).to(device).float()
    return rows_read[:, None] if rows_read.ndim == 2 else rows_read


def _expect(features: Any, rows: NDArray[np.int64]) -> None:
    """Ask for the pages of these rows of a memory map at once. Met one by one, each would bring its
    neighbours along, and a sample of a twentieth would read the whole file."""
    stored = getattr(features, "stored", features)  # below a map (data/centre.py)
    if not isinstance(stored, np.memmap) or not isinstance(stored.base, mmap.mmap):
        return
    size, first = stored.strides[0], stored.offset % mmap.ALLOCATIONGRANULARITY
    for start in (first + rows * size).tolist():
        page = start - start % mmap.PAGESIZE
        stored.base.madvise(mmap.MADV_WILLNEED, page, start + size - page)


def _memory(memory_mb: int, device: torch.device) -> int:
    """Bytes that records may fill, half of which they take."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else memory_mb * 1_000_000
