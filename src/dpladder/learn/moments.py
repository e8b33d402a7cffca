"""Sums of private second moments, and solving with noised ones.

Records are scaled into a ball and multiplied in float32 chunks; sums over chunks, noise and
solutions are float64. All that happens after a release is post-processing, projections included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpladder.config.model import Resources
from dpladder.learn.interface import Constants, Data, Publish, Weights
from dpladder.learn.records import Records, Rows, load, prepare

CHUNK = 1024
Conclusion = TypeVar("Conclusion")
# of a weight: times the largest radius, float64 still tells probabilities apart by such logits
LARGEST = 1e7


def load_records(data: Data, constants: Constants, resources: Resources) -> Records:
    """The records, and from here on one thread for each operation: classes and chunks share out the
    cores, and neither eigenvalues nor small products gain by sharing."""
    records = load(data, constants, prepare(resources), chunk=CHUNK, memory_mb=resources.mem_mb)
    torch.set_num_threads(1)
    return records


def threads_of(records: Records, resources: Resources) -> int:
    return 1 if records.device.type == "cuda" else resources.threads


def class_by_class(
    classes: int,
    threads: int,
    observe: Callable[[int], Mapping[str, Tensor]],
    release: Publish,
    conclude: Callable[[int, Mapping[str, Tensor]], Conclusion],
) -> list[Conclusion]:
    """What is concluded of each class from its released sums. Sums and conclusions of as many
    classes as there are threads run side by side, and no more are held; releases keep the order of
    the classes."""
    observe, conclude = torch.inference_mode()(observe), torch.inference_mode()(conclude)
    concluded: list[Conclusion] = []
    with ThreadPoolExecutor(threads) as pool:
        each = pool.map if threads > 1 else map
        for first in range(0, classes, threads):
            group = range(first, min(first + threads, classes))
            released = [
                {name: release(name, total) for name, total in sums.items()}
                for sums in each(observe, group)
            ]
            concluded += each(conclude, group, released)
    return concluded


def in_ball(records: Records, rows: Rows, radius: float) -> Tensor:
    """Some records scaled into the ball, as (rows, dimension); zero where they contribute
    nothing."""
    factors = (radius * (1.0 - records.slack) / records.gram[rows, 0, 0].sqrt()).clamp_(max=1.0)
    scaled: Tensor = records.block(rows)[:, 0] * factors.float()[:, None]
    return scaled


def weighed_sums(records: Records, radius: float, weights: Tensor) -> Tensor:
    """Of records in the ball, one sum for each row of weights, which are (sums, records). A record
    moves all sums together by the radius times its column's length."""
    shape = (len(weights), records.features.shape[-1])
    total = torch.zeros(shape, dtype=torch.float64, device=records.device)
    for rows in records.chunks():
        total += records.summed(weights[:, rows].float()) @ records.summed(
            in_ball(records, rows, radius)
        )
    return total


def second_moment(
    records: Records,
    radius: float,
    rows: Sequence[Rows],
    weigh: Callable[[Rows, Tensor], Tensor] | None = None,
) -> Tensor:
    """Coordinates of the sum of w x x^T over some records in the ball; without `weigh` every w is
    1."""
    dimension = records.features.shape[-1]
    total = torch.zeros(dimension, dimension, dtype=torch.float64, device=records.device)
    for chunk in rows:
        x = in_ball(records, chunk, radius)
        weighed = x if weigh is None else x * weigh(chunk, x)[:, None]
        total += records.summed(x).T @ records.summed(weighed)
    return to_coordinates(total)


def noised_covariance(
    data: Data, radius: float, constants: Constants, release: Publish, resources: Resources
) -> NDArray[np.float64]:
    """Coordinates of the noised sum of x x^T over all records."""
    records = load_records(data, constants, resources)
    total = second_moment(records, radius, records.chunks())
    return release("covariance", total).cpu().numpy()


def to_coordinates(matrix: Tensor) -> Tensor:
    """A symmetric matrix in the orthonormal basis that second_order.py speaks of."""
    row, column = torch.triu_indices(len(matrix), len(matrix), device=matrix.device)
    return matrix[row, column] * _lengths(row, column)


def to_matrix(coordinates: Tensor) -> Tensor:
    dimension = round(((8 * len(coordinates) + 1) ** 0.5 - 1) / 2)
    row, column = torch.triu_indices(dimension, dimension, device=coordinates.device)
    matrix = coordinates.new_zeros(dimension, dimension)
    matrix[row, column] = matrix[column, row] = coordinates / _lengths(row, column)
    return matrix


def _lengths(row: Tensor, column: Tensor) -> Tensor:
    """Of the basis before it is made orthonormal: an entry off the diagonal stands twice."""
    return (1.0 + (row != column).double()).sqrt()


def eigen(matrix: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    """Eigenvalues and vectors of P + ridge I, where P is the nearest positive semidefinite matrix:
    noise makes sums indefinite, and singular without the ridge."""
    values, vectors = torch.linalg.eigh(matrix)
    return values.clamp(min=0.0) + ridge, vectors


def solve(matrix: Tensor, ridge: float, right: Tensor) -> Tensor:
    """(P + ridge I)^-1 right."""
    values, vectors = eigen(matrix, ridge)
    return vectors @ ((vectors.T @ right) / values)


def finite(weights: Tensor) -> Tensor:
    """Weights that every later step, and float32, can hold. Looks at releases alone."""
    return weights.nan_to_num(nan=0.0).clamp(-LARGEST, LARGEST)


def as_weights(weights: Tensor) -> Weights:
    return (finite(weights).float().cpu().numpy(),)
