"""Rows that are zero nearly everywhere, but for a vector that all of them lose: a table's curves.

Of a number's hats two are above 0 at most (privacy/arrays.py), and then rows lose their mean. So
only what is not zero is kept, and the mean is left to the sums: (h - m) w = h w - m w, and the sum
of r (h - m) is that of r h, less m times that of r. The number itself is a sum of its hats, so it
is left to the sums, too.

A row is multiplied by itself, number after number, so it is rounded alike wherever it stands. What
it adds to a sum is rounded in float64 alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, lil_array
from torch import Tensor

from dpladder.privacy.arrays import Floats

MOST_COLUMNS = 2**16


@dataclass(frozen=True, eq=False)
class ThinRows:
    """Records of one or two outputs a head, on a CPU.

    Attributes:
        numbers, columns: what is not zero, row after row, and where in its row each stands.
        ends: int64 (records + 1,), where each row begins, and the last one ends.
        loses: float64 (width,), what every row loses: the mean, and -1 for a bias.
        to_whole: float64 (width, width), what makes a whole row of the numbers that are kept.
    """

    numbers: NDArray[np.float32]
    columns: NDArray[np.uint16]
    ends: NDArray[np.int64]
    loses: Floats
    to_whole: csr_array

    @property
    def shape(self) -> tuple[int, int, int]:
        """As a tensor of resident rows has it: records, views, width."""
        return len(self.ends) - 1, 1, len(self.loses)

    def read(self, rows: slice | Tensor) -> csr_array:
        """What is not zero of some rows. Of a slice nothing is copied."""
        if isinstance(rows, slice):
            ends = self.ends[rows.start : rows.stop + 1]
            part: slice | NDArray[np.int64] = slice(ends[0], ends[-1])
        else:
            chosen = rows.numpy()
            counts = self.ends[chosen + 1] - self.ends[chosen]
            ends = np.concatenate([[0], counts.cumsum()])
            part = np.arange(ends[-1]) + np.repeat(self.ends[chosen] - ends[:-1], counts)
        shape = (len(ends) - 1, len(self.loses))
        start = (ends - ends[0]).astype(np.int32)
        values = (self.numbers[part], self.columns[part].astype(np.int32), start)
        return csr_array(values, shape=shape, copy=False)

    def dense(self, rows: slice | Tensor) -> Tensor:
        """Some rows in full, float32 (rows, 1, width)."""
        full = (self.read(rows) @ self.to_whole).toarray() - self.loses
        return torch.from_numpy(full.astype(np.float32))[:, None]


@dataclass(frozen=True, eq=False)
class ThinProducts:
    """Logits of thin rows under some heads, and sums of such rows.

    Attributes:
        rows: all of them.
        heads: float32 (heads, width), of the numbers that are kept.
        lost: float32 (heads, 1), what each loses by what every row loses.
        opposite: whether a head is the difference of two, and their residuals are opposite: those
            of a softmax of two classes.
    """

    rows: ThinRows
    heads: NDArray[np.float32]
    lost: NDArray[np.float32]
    opposite: bool

    def read(self, chunk: slice | Tensor) -> csr_array:
        """What is not zero of some rows."""
        return self.rows.read(chunk)

    def logits(self, x: csr_array) -> Tensor:
        """float32 (outputs, records)."""
        logits = np.stack([x @ head for head in self.heads])
        outputs = torch.from_numpy(logits - self.lost)
        return _pairs(torch.zeros_like(outputs), outputs) if self.opposite else outputs

    def added_up(self, residual: Tensor, x: csr_array) -> Tensor:
        """The sum over records of residual times row, float64 (outputs, width)."""
        factors = (residual[1::2] if self.opposite else residual).double().numpy()
        wide = csr_array((x.data.astype(np.float64), x.indices, x.indptr), shape=x.shape).T
        sums = np.stack([wide @ factor for factor in factors]) @ self.rows.to_whole
        total = torch.from_numpy(sums - factors.sum(1, keepdims=True) * self.rows.loses)
        return _pairs(-total, total) if self.opposite else total


def products_with(rows: ThinRows, weights: Tensor, opposite: bool) -> ThinProducts:
    """Products with heads, float64 (trainings, outputs, width)."""
    heads = weights.numpy()
    heads = heads[:, 1:] - heads[:, :1] if opposite else heads
    heads = heads.reshape(-1, heads.shape[2])
    folded, lost = heads @ rows.to_whole.T, heads @ rows.loses[:, None]
    return ThinProducts(rows, folded.astype(np.float32), lost.astype(np.float32), opposite)


def matrix_to_whole(sums_of_hats: Mapping[int, tuple[int, Floats]], width: int) -> csr_array:
    """What makes a whole row of the numbers that are kept: float64 (width, width).

    Args:
        sums_of_hats: numbers that hats tell, as `Mapped` has them (data/centre.py).
        width: of a row.
    """
    matrix = lil_array((width, width))
    matrix.setdiag(1.0)
    for number, (first, knots) in sums_of_hats.items():
        matrix[number, number] = 0.0
        matrix[first : first + len(knots), number] = knots
    return csr_array(matrix)


def gather(
    blocks: Iterable[NDArray[np.float32]], rows: int, most: int, loses: Floats, to_whole: csr_array
) -> ThinRows:
    """Rows of which only what is not zero is ever in memory.

    Args:
        blocks: rows before they lose anything, less the numbers that hats tell, in order.
        rows: how many there are to be; those behind the blocks' own are zeros.
        most: numbers of a row that are not zero.
        loses, to_whole: as `ThinRows` has them.
    """
    numbers, columns = np.empty(rows * most, np.float32), np.empty(rows * most, np.uint16)
    ends = np.zeros(rows + 1, np.int64)
    done, used = 0, 0
    for block in blocks:
        row, column = np.nonzero(block)
        here = slice(used, used + len(row))
        numbers[here], columns[here] = block[row, column], column
        behind = done + len(block)
        ends[done + 1 : behind + 1] = used + np.bincount(row, minlength=len(block)).cumsum()
        done, used = behind, here.stop
    ends[done + 1 :] = used
    return ThinRows(numbers[:used], columns[:used], ends, loses, to_whole)


def _pairs(first: Tensor, second: Tensor) -> Tensor:
    """Rows of both in turn: the two outputs of each training."""
    return torch.stack([first, second], 1).flatten(0, 1)
