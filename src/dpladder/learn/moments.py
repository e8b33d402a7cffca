"""Sums of private second moments, and solving with noised ones.

Records are scaled into a ball and multiplied in float32 chunks; sums over chunks, noise and
solutions are float64. All that happens after a release is post-processing, projections included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.func import vmap

from dpladder.config.label_sets import labels_in_turn, states_by_finding
from dpladder.errors import Refused
from dpladder.learn.bounds import clip, keep_within, scale_rows
from dpladder.learn.interface import Constants, Shape, Weights
from dpladder.learn.links import Link, place_of_target
from dpladder.learn.queries import curvature_length, residual_length
from dpladder.learn.records import Records, Rows

OfRecord = Callable[..., Tensor]
"""A function of one record, its features and its label, or of a chunk of them, row by row."""

LARGEST = 1e7  # of a logit, and of a released weight: float64 tells probabilities apart by such


def scale_into_ball(records: Records, rows: Rows, radius: float) -> Tensor:
    """Some records scaled into the ball, as (rows, dimension); zero where they contribute nothing.

    Sensitivity: each has length radius (1 - slack) at most; the slack pays for float32.
    """
    norms = records.gram[rows, 0, 0].sqrt()
    factors = clip(norms, radius * (1.0 - records.slack)) * records.counted[rows]
    return scale_rows(records.block(rows)[:, 0], factors.float()[:, None])


def with_constant(records: Records, rows: Rows, x: Tensor, radius: float, share: float) -> Tensor:
    """Records in the ball with one more column, this share of the radius, and 0 where a record
    counts as nothing; as they are without a share.

    Sensitivity: each is sqrt(1 + share^2) radius (1 - slack) long at most.
    """
    if not share:
        return x
    constant = records.counted[rows].to(x) * (share * radius * (1.0 - records.slack))
    return torch.cat([x, constant[:, None]], dim=1)


def weighed_sums(records: Records, radius: float, weights: Tensor, constant: float = 0.0) -> Tensor:
    """Sums of w x over records in the ball, one for each row of weights.

    Sensitivity: the radius, for a record's weights are cut to length 1 together; sqrt(1 + c^2)
    times that with a constant c.

    Args:
        records: of `dimension` numbers each.
        radius: of the ball.
        weights: (sums, records).
        constant: how long one more column of x is, as a share of the radius; 0 for none.

    Returns:
        float64 of shape (sums, dimension), or a column more.
    """
    shape = (len(weights), records.features.shape[-1] + bool(constant))
    total = torch.zeros(shape, dtype=torch.float64, device=records.device)
    for rows in records.chunks():
        x = scale_into_ball(records, rows, radius)
        x = with_constant(records, rows, x, radius, constant)
        w = keep_within(weights[:, rows].T, 1.0, records.counted[rows])
        total += records.as_summable(w.float()).T @ records.as_summable(x)
    return total


def second_moment(
    records: Records,
    radius: float,
    rows: Sequence[Rows],
    weigh: Callable[[Rows, Tensor], Tensor] | None = None,
    constant: float = 0.0,
) -> Tensor:
    """The sum of w x x^T over some records in the ball, as coordinates.

    Sensitivity: radius^2 times the largest w, in L2, which is the matrix's Frobenius norm; 1 + c^2
    times that with a constant c.

    Args:
        records: of `dimension` numbers each.
        radius: of the ball.
        rows: the chunks to add up.
        weigh: w of a chunk's records; without it every w is 1.
        constant: how long one more column of x is, as a share of the radius; 0 for none.

    Returns:
        float64 of shape (dimension (dimension + 1) / 2,).
    """
    dimension = records.features.shape[-1] + bool(constant)
    total = torch.zeros(dimension, dimension, dtype=torch.float64, device=records.device)
    for chunk in rows:
        x = scale_into_ball(records, chunk, radius)
        x = with_constant(records, chunk, x, radius, constant)
        weighed = x if weigh is None else x * weigh(chunk, x)[:, None]
        total += records.as_summable(x).T @ records.as_summable(weighed)
    return to_coordinates(total)


def class_labels(records: Records, constants: Constants) -> Tensor:
    """The classes of each record, as (classes of one, records), filled up with -1."""
    return torch.stack([*labels_in_turn(records.labels, constants.classes)])


def rows_of_class(records: Records, labels: Tensor, label: int) -> tuple[list[Rows], Tensor]:
    """The rows of one class's records, and what each record weighs in its class's sums.

    A record of k classes weighs 1/sqrt(k) in each of them. The squares of its weights add up to 1.
    So it moves the sums of all classes together no further than a record of one class moves its
    own.

    Args:
        records: those that count are looked at.
        labels: the classes of each, (classes of one, records), filled up with -1.
        label: the class.

    Returns:
        Chunks of rows, and float32 weights of all records.
    """
    rows = records.select_rows((records.counted & (labels == label).any(0)).cpu().numpy())
    return rows, (labels >= 0).sum(0).double().rsqrt().float()


def class_sum(records: Records, radius: float, labels: Tensor, label: int) -> Tensor:
    """The sum of w x over one class's records in the ball, w being 1/sqrt(classes of the record).

    Sensitivity: the radius, over the sums of all classes together.

    Returns:
        float64 of shape (dimension,).
    """
    rows, weights = rows_of_class(records, labels, label)
    total = torch.zeros(records.features.shape[-1], dtype=torch.float64, device=records.device)
    for chunk in rows:
        x = scale_into_ball(records, chunk, radius) * weights[chunk, None]
        total += x.sum(0, dtype=torch.float64)
    return total


def class_moment(records: Records, radius: float, labels: Tensor, label: int) -> Tensor:
    """Coordinates of the sum of w x x^T over one class's records in the ball.

    Sensitivity: radius^2, over all classes together; w is 1/sqrt(classes of the record).
    """
    rows, weights = rows_of_class(records, labels, label)
    return second_moment(records, radius, rows, lambda chunk, _: weights[chunk])


def presence_weights(labels: Tensor, classes: int) -> Tensor:
    """What each record weighs in the sum of each finding that it has, and then of each that it
    lacks.

    Those that it has share its weight out evenly: 1/sqrt(k) each of k, whose squares add up to 1.
    So do those that it lacks. Where it has both, `weighed_sums` cuts both halves to length 1
    together: each is divided by sqrt(2).

    Returns:
        float64 (2 findings, records).
    """
    present, known = map(torch.stack, zip(*states_by_finding(labels, classes), strict=True))
    both = torch.stack([present, known & ~present]).double()
    return (both / both.sum(1, keepdim=True).clamp(min=1.0).sqrt()).flatten(0, 1)


def absence_weights(labels: Tensor, classes: int) -> Tensor:
    """What each record weighs in the target of each finding: what the finding's public share 1/m
    lacks, over 1 - 1/m.

    It is 1 where the finding is present, -1/(m - 1) where not, and nothing where it is unknown.
    `weighed_sums` cuts a record's weights to length 1 together. So it moves all targets no further
    than a record of one class moves its own.

    Returns:
        (classes, records).
    """
    absent = -1.0 / max(classes - 1, 1)
    findings = states_by_finding(labels, classes)
    return torch.stack([known * torch.where(present, 1.0, absent) for present, known in findings])


def number_weights(labels: Tensor) -> Tensor:
    """What each record weighs in the sum of targets: where its number lies in the public range,
    from -1 to 1. (1, records)."""
    return place_of_target(labels)[None]


@dataclass(frozen=True, eq=False)
class Levels:
    """What makes a record's curvature of one class from that class's logit alone.

    Attributes:
        logs: of each record the log of the softmax's denominator, (records,).
        factors: that cut its curvatures of all classes together to their bound, (records,).
    """

    logs: Tensor
    factors: Tensor


def residual_sum(
    records: Records, weights: Tensor, radius: float, link: Link
) -> tuple[Tensor, Levels]:
    """The gradient of logistic regression: the sum of (p - y) x^T over records in the ball.

    Sensitivity: sqrt(2) radius for the softmax, sqrt(classes) radius for sigmoids (`ResidualSum` in
    queries.py has the proof). A record's residuals are cut to that, whatever rounding makes of its
    probabilities.

    Args:
        records: of `dimension` numbers each.
        weights: (classes, dimension), of `tame_weights`.
        radius: of the ball.
        link: softmax or sigmoids.

    Returns:
        The sum, float64 of shape (classes, dimension), and the levels at these weights.
    """
    total = torch.zeros_like(weights)
    logs = torch.zeros(len(records), dtype=torch.float64, device=records.device)
    factors = torch.zeros_like(logs)
    for rows in records.chunks():
        x = scale_into_ball(records, rows, radius)
        logits = x.double() @ weights.T
        if link.name == "softmax":
            logs[rows] = logits.logsumexp(1)
        residual = _probability(logits, logs[rows][:, None], link)
        curved = (residual * (1.0 - residual)).norm(dim=1)
        factors[rows] = clip(curved, curvature_length(link.name, link.classes))
        residual.scatter_add_(
            1, records.labels[rows][:, None], residual.new_full((len(x), 1), -1.0)
        )
        longest = residual_length(link.name, link.classes)
        residual = keep_within(residual, longest, records.counted[rows]).float()
        total += records.as_summable(residual).T @ records.as_summable(x)
    return total, Levels(logs, factors)


def curvature(
    records: Records, weights: Tensor, levels: Levels, radius: float, link: Link, label: int
) -> Tensor:
    """Coordinates of one class's sum of p (1 - p) x x^T over records in the ball.

    Sensitivity: 2 radius^2 / (3 sqrt(3)) for the softmax, over all classes together, and
    sqrt(classes) radius^2 / 4 for sigmoids (`Curvatures` in queries.py has the proof).

    Args:
        records: of `dimension` numbers each.
        weights: (classes, dimension), of `tame_weights`.
        levels: of `residual_sum` at the same weights.
        radius: of the ball.
        link: softmax or sigmoids.
        label: the class.
    """

    def weigh(rows: Rows, x: Tensor) -> Tensor:
        p = _probability(x.double() @ weights[label], levels.logs[rows], link)
        return scale_rows(p * (1.0 - p), levels.factors[rows]).float()

    return second_moment(records, radius, records.chunks(), weigh)


def tame_weights(weights: Tensor, radius: float) -> Tensor:
    """The weights that logistic regression is asked about: a class's, shortened to where no logit
    of a record in the ball exceeds LARGEST.

    Beyond it, float64 does not tell a record's probabilities, which then depend on its place among
    others. Weights are public, so this is too; a class whose weights are not finite has none.
    """
    return keep_within(weights, LARGEST / radius, torch.ones(len(weights)).to(weights))


def _probability(logits: Tensor, levels: Tensor, link: Link) -> Tensor:
    if link.name == "sigmoid":
        return link.probabilities(logits, dim=-1)
    return (logits - levels).exp().clamp_(max=1.0)


def sums_weighed_per_record(
    records: Records, radius: float, each: OfRecord, constant: float
) -> Tensor:
    """Sums of w x by any weights of single records.

    Sensitivity: a record's weights are cut to length 1 together. So it moves all sums by the
    radius, and by sqrt(1 + c^2) times that with a constant c. It counts as nothing where its
    weights are not finite.

    Args:
        records: of `dimension` numbers each.
        radius: of the ball.
        each: the traced function, from a chunk of records in the ball and their labels to weights.
        constant: how long one more column of x is, as a share of the radius; 0 for none.

    Returns:
        float64 (sums, dimension), or a column more.
    """
    parts = []
    for rows in records.chunks():
        x = scale_into_ball(records, rows, radius)
        weights = keep_within(each(x, records.labels[rows]), 1.0, records.counted[rows])
        x = with_constant(records, rows, x, radius, constant)
        parts.append(weights.T @ x.double())
    return torch.stack(parts).sum(0)


def sum_of_records(
    records: Records, each: OfRecord, arguments: Sequence[Any], shape: Shape, bound: float
) -> Tensor:
    """The sum of any function of single records, each value cut to the bound.

    Sensitivity: the bound. A value that is not finite, or that float64 cannot square, is nothing.

    Args:
        records: that the function is applied to, one by one.
        each: the traced function, of a chunk of records and the arguments.
        arguments: public ones, such as weights.
        shape: of one value.
        bound: the largest L2 length of a value.

    Returns:
        float64 of this shape.
    """
    total = torch.zeros(shape, dtype=torch.float64, device=records.device)
    for rows in records.chunks():
        values = each(records.block(rows)[:, 0], records.labels[rows], *arguments)
        flat = values.reshape(len(values), -1)
        total += keep_within(flat, bound, records.counted[rows]).sum(0).view(shape)
    return total


def trace_per_record(records: Records, of: OfRecord, *arguments: Any) -> OfRecord:
    """A function of one record for a chunk of them, record by record.

    Guarantee: no record meets another one, nor is rounded by where it stands, and no value of a
    record decides what is computed. For the function is traced on zeros, and what runs on records
    is the trace. What else it does, such as writing a file, it does to zeros. A record for which it
    raises counts as nothing. It runs on the CPU, for an index out of range ends all work of a GPU.

    Args:
        records: whose shapes the trace has.
        of: a function of a record, its label and the arguments, in torch.
        arguments: public ones, not mapped over.

    Raises:
        Refused: something in the function rounds public noise by its place.
    """
    from torch.fx.experimental.proxy_tensor import make_fx

    rows = records.chunks()[0]
    x = torch.zeros_like(records.block(rows)[:, 0], device="cpu")
    labels = torch.zeros_like(records.labels[rows], device="cpu")
    arguments = tuple(_to_cpu(argument) for argument in arguments)
    each = vmap(of, (0, 0, *[None] * len(arguments)))
    traced: OfRecord = make_fx(each, _products_of_rows())(x, labels, *arguments)
    noise = torch.randn(1, x.shape[1], generator=torch.Generator().manual_seed(0)).to(x)
    values = _values_of_each(traced, noise.repeat(len(x), 1), labels, *arguments)
    if not torch.equal(values.nan_to_num(), values[:1].expand_as(values).nan_to_num()):
        raise Refused(
            "a function of a plug-in rounds a record by its place among others, so that one record "
            "could move what all others add. Nothing was answered. Write its products as sums of "
            "elementwise ones."
        )
    return partial(_values_of_each, traced)


def _values_of_each(traced: OfRecord, x: Tensor, labels: Tensor, *arguments: Any) -> Tensor:
    """What a traced function makes of each record; NaN, which counts as nothing, of one for which
    it raises. Such records are found by halves, where zeros stand in for all other records: a
    record keeps its place, and what it adds follows from its own row.

    Raises:
        Exception: the function's own, where zeros alone make it raise.
    """
    device, cpu = x.device, [_to_cpu(one) for one in (x, labels, *arguments)]
    x, labels, *rest = cpu
    try:
        return traced(*cpu).to(device)
    except Exception:
        blank = torch.zeros_like(x), torch.zeros_like(labels)
        values = torch.full_like(traced(*blank, *rest), math.nan, dtype=torch.float64)
    untried = [torch.arange(len(x))]
    while untried:
        rows = untried.pop()
        some = blank[0].index_copy(0, rows, x[rows]), blank[1].index_copy(0, rows, labels[rows])
        try:
            values[rows] = traced(*some, *rest)[rows].double()
        except Exception:
            untried += rows.chunk(2) if len(rows) > 1 else ()
    return values.to(device)


def _to_cpu(argument: Any) -> Any:
    return argument.cpu() if isinstance(argument, Tensor) else argument


def _products_of_rows() -> dict[Any, Callable[..., Tensor]]:
    """Matrix products as sums along memory, one for each number: a library adds up some rows in
    another order than others."""
    aten = torch.ops.aten

    def product(left: Tensor, right: Tensor) -> Tensor:
        return (left.unsqueeze(-2) * right.mT.unsqueeze(-3)).contiguous().sum(-1)

    def product_and_sum(
        added: Tensor, left: Tensor, right: Tensor, *, beta: float = 1, alpha: float = 1
    ) -> Tensor:
        return beta * added + alpha * product(left, right)

    products = dict.fromkeys([aten.mm.default, aten.bmm.default], product)
    return {**products, aten.addmm.default: product_and_sum, aten.baddbmm.default: product_and_sum}


def to_coordinates(matrix: Tensor) -> Tensor:
    """A symmetric matrix in the orthonormal basis of `queries.coordinates`: its diagonal, and
    sqrt(2) times what lies above it. Lengths are kept, so noise on coordinates is noise on the
    matrix."""
    row, column = torch.triu_indices(len(matrix), len(matrix), device=matrix.device)
    return matrix[row, column] * _lengths(row, column)


def to_matrix(coordinates: Tensor) -> Tensor:
    """The symmetric matrix of coordinates, (dimension, dimension): `to_coordinates` turned
    around."""
    dimension = round(((8 * len(coordinates) + 1) ** 0.5 - 1) / 2)
    row, column = torch.triu_indices(dimension, dimension, device=coordinates.device)
    matrix = coordinates.new_zeros(dimension, dimension)
    matrix[row, column] = matrix[column, row] = coordinates / _lengths(row, column)
    return matrix


def _lengths(row: Tensor, column: Tensor) -> Tensor:
    """Lengths of the basis before it is orthonormal: an entry off the diagonal stands twice."""
    return (1.0 + (row != column).double()).sqrt()


def eigen(matrix: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    """Eigenvalues and vectors of P + ridge I, where P is the nearest positive semidefinite matrix.

    It is post-processing of a release: noise makes sums indefinite, and singular without the ridge.

    Args:
        matrix: symmetric (dimension, dimension), released.
        ridge: above 0.

    Returns:
        (dimension,) in rising order, and the vectors as columns.
    """
    values, vectors = torch.linalg.eigh(matrix)
    return values.clamp(min=0.0) + ridge, vectors


def solve(matrix: Tensor, ridge: float, right: Tensor) -> Tensor:
    """(P + ridge I)^-1 right, with P the nearest positive semidefinite matrix (`eigen`).

    Args:
        matrix: symmetric (dimension, dimension), released.
        ridge: above 0.
        right: (dimension, ...).
    """
    values, vectors = eigen(matrix, ridge)
    return vectors @ ((vectors.T @ right) / values)


def finite(weights: Tensor) -> Tensor:
    """Weights that every later step, and float32, can hold. Looks at releases alone."""
    return weights.nan_to_num(nan=0.0).clamp(-LARGEST, LARGEST)


def as_weights(weights: Tensor) -> Weights:
    """Weights as they are released: float32, of one linear layer."""
    return (finite(weights).float().cpu().numpy(),)
