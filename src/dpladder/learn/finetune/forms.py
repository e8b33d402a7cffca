"""The forms that records' gradients of a layer come in: factors of a matrix product, rows of a
table, or the gradients themselves. Each tells their norms, and their sum with a factor for each
record.

A matrix product's weights have the gradient sum_t g_t a_t^T over positions t, whose norm needs no
gradient (Li et al. 2022, Eq. 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dpladder.learn.bounds import scale_rows, without_infinities

# What it takes to write and read a number of a record's gradient, and to copy one of its factors.
# In multiplications of float32, measured on a CPU at 1 to 200 positions and 200 to 2 million
# numbers.
PASSES, COPIES = 64, 16


@dataclass(frozen=True, eq=False)
class Product:
    """Factors of records' gradients of one matrix.

    Attributes:
        gradients: of what the layer puts out, g, (records, positions, outputs).
        inputs: of the layer, a, (records, positions, inputs).
        bias: whether the layer's bias is trained too.
        turned: whether the matrix has a row for each input.
    """

    gradients: Tensor
    inputs: Tensor
    bias: bool
    turned: bool

    @property
    def tensors(self) -> list[Tensor]:
        """All that a record's gradient is made of, to compare bit by bit (probing.py)."""
        return [self.gradients, self.inputs]

    def squares(self) -> Tensor:
        """|sum_p g_p a_p^T|^2 = sum_(p, q) (a_p . a_q)(g_p . g_q), of each record."""
        a, g = self.inputs.double(), self.gradients.double()
        products = ((a @ a.mT) * (g @ g.mT)).sum((1, 2))
        return products + g.sum(1).square().sum(1) if self.bias else products

    def terms(self) -> Tensor:
        """The square of the sum of the terms' norms: what the norm would be if nothing cancelled
        (LOOSE)."""
        a, g = _lengths(self.inputs), _lengths(self.gradients)
        squares = (a * g).sum(1).square()
        return squares + g.sum(1).square() if self.bias else squares

    @property
    def is_cheap(self) -> bool:
        """Whether norm and sum take less of these factors than of the gradients themselves.

        Over P positions a number of the gradient takes P multiplications in float32, and some
        passes over memory. The factors take two P x P products for the norm and P for the sum, all
        in float64, which is twice as slow. To compare P^2 with the gradient's size (Bu et al. 2022)
        is to weigh memory alone, and a chunk has room for either.
        """
        positions, rows, columns = *self.gradients.shape[1:], self.inputs.shape[2]
        share = positions * (rows + columns) / (rows * columns)
        return positions + (2 * positions + COPIES) * share <= PASSES

    def as_matrices(self) -> SummedGradients:
        """The sums as gradients, in the order of `sums`. A record's terms may overflow: then it
        counts as nothing."""
        a, g = self.inputs, self.gradients
        matrices = a.mT @ g if self.turned else g.mT @ a
        lengths = _lengths(a), _lengths(g)
        terms = (lengths[0] * lengths[1]).sum(1).square()
        if not self.bias:
            return SummedGradients([matrices.flatten(1)], terms)
        return SummedGradients([matrices.flatten(1), g.sum(1)], terms + lengths[1].sum(1).square())

    def sums(self, factor: Tensor) -> list[Tensor]:
        """The sum over records of their gradients, each times its factor, in float64: the matrix's
        and, where there is one, the bias's."""
        g = scale_rows(self.gradients, factor[:, None, None]).flatten(0, 1)
        a = without_infinities(self.inputs).flatten(0, 1).double()
        matrix = a.mT @ g if self.turned else g.mT @ a
        return [matrix.flatten(), g.sum(0)] if self.bias else [matrix.flatten()]


@dataclass(frozen=True, eq=False)
class Looked:
    """Records' gradients of a table that rows are looked up in.

    Attributes:
        gradients: of the rows that were looked up, (records, positions, width).
        rows: which they are, (records, positions).
        count: rows of the table.
    """

    gradients: Tensor
    rows: Tensor
    count: int

    @property
    def tensors(self) -> list[Tensor]:
        """All that a record's gradient is made of."""
        return [self.gradients, self.rows]

    def squares(self) -> Tensor:
        """The square of each record's norm, as of a matrix product whose inputs are 1 in one place.

        A row that a record looks up twice is added up before its norm is taken.
        """
        g, same = self.gradients.double(), self.rows[:, :, None] == self.rows[:, None]
        return (same * (g @ g.mT)).sum((1, 2))

    def terms(self) -> Tensor:
        """The square of the sum of the terms' norms, of each record."""
        return _lengths(self.gradients).sum(1).square()

    def sums(self, factor: Tensor) -> list[Tensor]:
        """The sum over records of their gradients, each times its factor: the whole table, in
        float64."""
        g = scale_rows(self.gradients, factor[:, None, None])
        table = g.new_zeros(self.count, g.shape[2])
        return [table.index_add_(0, self.rows.flatten(), g.flatten(0, 1)).flatten()]


@dataclass(frozen=True, eq=False)
class SummedGradients:
    """Records' gradients of some tensors, made one by one.

    Attributes:
        gradients: of each tensor, (records, numbers).
        added: the squared sum of the lengths of what each record's gradient was added up from,
            where that is known (`terms`).
    """

    gradients: Sequence[Tensor]
    added: Tensor | None = None

    @property
    def tensors(self) -> list[Tensor]:
        """The gradients themselves."""
        return [*self.gradients]

    def squares(self) -> Tensor:
        """The square of each record's norm, over all of these tensors, in float64."""
        norms = [
            torch.linalg.vector_norm(gradient, dim=1, dtype=torch.float64)
            for gradient in self.gradients
        ]
        return torch.stack(norms).square().sum(0)

    def terms(self) -> Tensor:
        """The square of the sum of the terms' norms; where these are not known, the square of the
        norm."""
        return self.squares() if self.added is None else self.added

    def sums(self, factor: Tensor) -> list[Tensor]:
        """The sum over records of their gradients, each times its factor, for each tensor in
        float64."""
        return [
            factor.double() @ without_infinities(gradient).double() for gradient in self.gradients
        ]


LayerGradients = Product | Looked | SummedGradients


def _lengths(rows: Tensor) -> Tensor:
    """The length of each position's numbers, (records, positions), which float64 tells of any
    float32."""
    return torch.linalg.vector_norm(rows, dim=2, dtype=torch.float64)
