"""The linear head's engine: several independent trials over one pass of the features.

A gradient is an outer product, residual times features, so its norm is the product of two norms and
no per-record gradient is ever formed. Each step reads the features once, in chunks that stay in
cache, forward and backward together. Chunk products are float32; clip factors, sums over chunks,
noise and weights are float64.

A job is bit-identical when it runs again on the same machine. The number of threads comes from the
config. The chunks, the thread that takes each, their order and their shapes do not change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpladder.config.model import Resources
from dpladder.errors import Refused
from dpladder.learn.bounds import Scale, clip, scale_rows
from dpladder.learn.data import Data
from dpladder.learn.interface import MAX_BATCHED_TRAININGS, Constants
from dpladder.learn.links import SOFTMAX, Link
from dpladder.learn.queries import LinearHead
from dpladder.learn.records import (
    LONGEST_SINGLE,
    Bounded,
    Guide,
    Records,
    Rows,
    Sums,
    fits_as_thin,
    load,
    prepare,
)
from dpladder.learn.thin_rows import MOST_COLUMNS, ThinProducts, ThinRows, products_with

# On a GPU a chunk should outlast the launch of its 25 kernels. On a CPU it should stay in cache,
# and where records are narrow it should outlast the calls of 25 functions, between which threads
# wait for each other.
CHUNK = {"cpu": 1024, "cuda": 65536}
NARROW = 48  # numbers of a record, with its views: wider ones are added up no faster
CHUNK_OF_NARROW = 16384
NUMBERS_IN_FULL = 2**22  # of a chunk of thin rows, which losses see in full
TINY = 2.0**-80  # probabilities below are zero: denormal numbers slow many CPUs down
# a squared logit; beyond it float64 does not tell losses that ties leave
LARGEST_SQUARED_LOGIT = 2.0**50
LARGEST_SQUARED_NUMBER = 2.0**25  # the same where a loss is squared itself: half a squared error
CANCELLED = 2.0**-20  # of the lengths of a record's views, which may cancel


def guide_of(model: LinearHead, sample: Data, constants: Constants, resources: Resources) -> Guide:
    """All public records at each step, as they are: no crops, no samples. They cost nothing."""
    records = resident(sample, constants, resources, bias=model.bias)
    link = Link(model.link, constants.classes, constants.labels)
    sums = sums_of(records, threads_of(records, resources), link)
    counted = records.counted[: len(sample.labels)].cpu().numpy()
    return Guide(sums.gradients, [records.chunks()], directions(records), units_of(sample, counted))


def units_of(sample: Data, counted: NDArray[np.bool_]) -> int:
    """How many units have a record in a public sample that counts; 1 at the least, for it is
    divided by."""
    units = counted.sum() if sample.units is None else len(np.unique(sample.units[counted], axis=0))
    return max(1, int(units))


def directions(records: Records) -> float:
    """How many directions features take up, by how alike two records are: the mean of |x|^2 |y|^2
    over that of (x . y)^2, over pairs of records. Of public records alone: it is no release.

    Returns:
        From 1, all along one line, to the number of features, all directions alike.
    """
    return _participation_ratio(_counted_records(records))


def effective_width_of_differences(records: Records) -> float:
    """How many directions the differences of records take up, where features keep their mean: these
    tell classes apart.

    It counts more by how much longer records are than their differences (guide.py). Of public
    records alone: it is no release.
    """
    x = _counted_records(records)
    centred = x - x.mean(0)
    longer = float(x.square().sum() / centred.square().sum()) if len(x) > 1 else 1.0
    return _participation_ratio(centred) * (longer if math.isfinite(longer) else 1.0)


def _counted_records(records: Records) -> Tensor:
    """The records that count, as they are."""
    parts = [records.block(rows)[records.counted[rows], 0].double() for rows in records.chunks()]
    return torch.cat(parts)


def _participation_ratio(x: Tensor) -> float:
    """How many directions the rows of x take up: |x|^2 |y|^2 over (x . y)^2, each the mean over
    pairs of different rows."""
    squares = x.square().sum(1)
    pairs = (x.T @ x).square().sum() - squares.square().sum()  # each of them twice
    whole = squares.sum().square() - squares.square().sum()
    width = float(x.shape[1])
    return min(max(float(whole / pairs), 1.0), width) if len(x) > 1 and pairs > 0 else width


def resident(
    data: Data, constants: Constants, resources: Resources, views: int = 1, bias: bool = False
) -> Records:
    """The records, ready to train a linear head on, in chunks that are rounded alike.

    Args:
        data: features as they are stored.
        constants: declared sizes, from which the chunk follows.
        resources: threads, memory and device.
        views: of each record.
        bias: whether a feature of 1 is added.
    """
    device, width = prepare(resources), views * (constants.dimension + bias)
    # under three outputs a head all of a row is read as fast
    small = constants.classes <= 2 and views == 1 and width <= MOST_COLUMNS
    may_be_thin = small and device.type == "cpu"
    thin = may_be_thin and fits_as_thin(data.features, constants, resources.mem_mb)
    chunk = _chunk(constants, device, NARROW if thin else width)
    if thin:
        whole = NUMBERS_IN_FULL // width // LONGEST_SINGLE * LONGEST_SINGLE
        chunk = min(chunk, max(whole, LONGEST_SINGLE))
    return load(
        data,
        constants,
        device,
        chunk=chunk,
        memory_mb=resources.mem_mb,
        views=views,
        bias=bias,
        thin=thin,
    )


def _chunk(constants: Constants, device: torch.device, numbers: int) -> int:
    """How many records are summed at a time, by declared sizes alone.

    A small data set fits into one chunk, a multiple of 64 rows: 8/7 of the expected number, for the
    real one varies.

    Args:
        constants: declared sizes.
        device: where sums are computed.
        numbers: of a record, with its views.
    """
    rows = 64 * math.ceil(constants.n0 * constants.cap / 56)
    if device.type == "cpu" and numbers <= NARROW and rows > LONGEST_SINGLE:
        whole = LONGEST_SINGLE * math.ceil(rows / LONGEST_SINGLE)
        return min(CHUNK_OF_NARROW, whole)
    return min(CHUNK[device.type], rows)


def _chunks_up_to(whole: int) -> list[int]:
    """All sizes that a chunk on a CPU may have where it is no larger than `whole`."""
    long = range(2 * LONGEST_SINGLE, whole + 1, LONGEST_SINGLE)
    return [*range(64, min(whole, LONGEST_SINGLE) + 1, 64), *long]


def refuse_places(
    constants: Constants,
    resources: Resources,
    bias: bool = False,
    views: int = 1,
    trainings: int = 1,
    parts: bool = False,
) -> None:
    """Refuse a machine that rounds a record's logits by its place among others.

    Where logits are huge, the last bit of one decides on a gradient's direction, and whoever joins
    moves those behind by a place. Then one unit would move more than its own contribution, and no
    sensitivity would hold. Products by the libraries that are known round alike at every place
    (`logits_by`). This sees it on this very machine, on public noise, to the last bit, of each
    product that a training may ask for.

    Args:
        constants: shapes that a training will have.
        resources: threads and device.
        bias: whether a feature of 1 is added.
        views: of each record.
        trainings: how many may share a pass. Those with fewer steps leave it one by one.
        parts: whether trainings on parts of the records come too. Their chunks are smaller; on a
            GPU, which has a thousand sizes, those are not tried.

    Raises:
        Refused: a record's logits differ from one place to another. Nothing was charged yet.
    """
    device = prepare(resources)
    width = constants.dimension + bias
    whole = _chunk(constants, device, views * width)
    torch.set_num_threads(1)  # as in the threads of a step
    for chunk in _chunks_up_to(whole) if parts and device.type == "cpu" else [whole]:
        for together in range(1, min(trainings, MAX_BATCHED_TRAININGS) + 1):
            _refuse_places(constants.classes * together, width, chunk, views, device)
    torch.set_num_threads(resources.threads)


@cache
def _refuse_places(rows: int, width: int, chunk: int, views: int, device: torch.device) -> None:
    """The check of one shape, once in a process: the machine stays the same."""
    random = torch.Generator().manual_seed(0)
    records = torch.randn(1, width, generator=random).to(device).repeat(chunk * views, 1)
    heads = torch.randn(rows, width, generator=random).to(device)
    logits = logits_by(heads, chunk)(records)
    if not torch.equal(logits, logits[:, :1].expand_as(logits)):
        raise Refused(
            "on this machine a product rounds a record by its place among others, so that one "
            "record could move what all others add. Nothing was charged. Install PyTorch in "
            "the version that dpladder was tested with (envs/), or train on another machine."
        )


def threads_of(records: Records, resources: Resources) -> int:
    """By how many threads chunks are shared out, once each works alone inside an operation."""
    return 1 if records.device.type == "cuda" else resources.threads


def sums_of(records: Records, threads: int, link: Link) -> Sums:
    """Gradients and losses of linear heads, of shape (trainings, classes, width)."""
    gradients = partial(clipped_sum, records, threads=threads, link=link)
    losses = partial(summed_losses, records, threads=threads, link=link)
    return Sums(records, gradients, losses)


def clipped_sum(
    records: Records,
    weights: Tensor,
    bound: float,
    rows: Sequence[Rows],
    scale: Scale = clip,
    threads: int = 1,
    link: Link = SOFTMAX,
) -> Tensor:
    """The sum of the records' gradients, each kept within `bound`.

    Sensitivity: the bound, for each head. A gradient is an outer product, so its norm follows from
    two norms, and none is ever formed.

    Args:
        records: of `width` numbers each, with their views.
        weights: heads of shape (trials, classes, width).
        bound: the largest L2 length of one record's gradient, the mean over its views.
        rows: the chunks to add up.
        scale: `clip` or `normalise` (learn/bounds.py).
        threads: that share out the chunks.
        link: from logits to the loss.

    Returns:
        float64 of shape (trials, classes, width).
    """
    return _sum_over_threads(
        lambda rows_of_thread: _sum(records, weights, bound, rows_of_thread, scale, link),
        rows,
        threads,
    )


def summed_losses(
    records: Records,
    weights: Tensor,
    bounded: Bounded,
    rows: Sequence[Rows],
    threads: int = 1,
    link: Link = SOFTMAX,
) -> Tensor:
    """Sums of what `bounded` makes of the records' losses under several heads.

    Sensitivity: what `bounded` cuts a record's loss to. Losses are float64 from the features on.
    For the rounding of other records' losses may change when a neighbour enters their chunk, and
    that is nothing to a bound.

    Args:
        records: of `width` numbers each.
        weights: heads of shape (heads, classes, width).
        bounded: from losses of shape (heads, records) to numbers within a public bound.
        rows: the chunks to add up.
        threads: that share out the chunks.
        link: from logits to the loss.

    Returns:
        float64 of shape (sums,).
    """
    return _sum_over_threads(
        lambda rows_of_thread: _losses(records, weights, bounded, rows_of_thread, link),
        rows,
        threads,
    )


def _sum_over_threads(
    work: Callable[[Sequence[Rows]], Tensor], rows: Sequence[Rows], threads: int
) -> Tensor:
    """Threads take every so many-th chunk each, which leaves the order of every addition fixed."""
    threads = max(1, min(threads, len(rows)))
    if threads == 1:
        return work(rows)
    slices = [rows[first::threads] for first in range(threads)]
    return torch.stack([*_pool(threads).map(work, slices)]).sum(0)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Kept from step to step. Each of its threads works alone inside an operation."""
    return ThreadPoolExecutor(threads, "sums", torch.set_num_threads, (1,))


@torch.inference_mode()  # a thread does not inherit it
def _sum(
    records: Records, weights: Tensor, bound: float, rows: Sequence[Rows], scale: Scale, link: Link
) -> Tensor:
    """The sum over records of their clipped gradients, of several trainings at once.

    A record's gradient in the weights is residual x^T, summed over its views. Its norm needs the
    residuals and the views' products among themselves (`gram`). So no record's gradient is ever
    made, and two matrix products for each chunk are nearly all of the work. Sums over records are
    taken in float64 where there is no room for rounding (`Records.as_summable`).

    Returns:
        (trainings, classes, width), in float64.
    """
    trials, classes, width = weights.shape
    products = _products(records, weights, link)
    total = torch.zeros(trials * classes, width, dtype=torch.float64, device=weights.device)
    for chunk in rows:
        x = products.read(chunk)
        logits = products.logits(x)
        # As (trials, classes, records, views), softmax and norms run along memory.
        logits = logits.view(trials, classes, len(records.labels[chunk]), -1)
        residual = link.probabilities(logits, dim=1)
        if link.name != "identity":
            torch.threshold_(residual, TINY, 0.0)
        link.subtract_targets(residual, records.labels[chunk])
        if products.opposite:  # float32 rounds either by itself, and the sum takes one of them
            torch.neg(residual[:, 1], out=residual[:, 0])
        norms = gradient_norms(residual, records.gram[chunk])
        factor = scale(norms, bound).mul_(records.counted[chunk]).div_(residual.shape[3])
        # a record whose logits overflow has no gradient: a rule that looks at this record alone
        scale_rows(residual, factor.float()[:, None, :, None], out=residual)
        total += products.added_up(residual.flatten(2).flatten(0, 1), x)
    return total.view(trials, classes, width)


def _products(records: Records, weights: Tensor, link: Link) -> FullProducts | ThinProducts:
    """Products with heads, float64 (trainings, classes, width)."""
    _, classes, width = weights.shape
    if isinstance(records.features, ThinRows):
        opposite = link.name == "softmax" and classes == 2
        return products_with(records.features, weights, opposite)
    logits = logits_by(weights.float().view(-1, width), records.chunk)
    return FullProducts(records, logits)


@dataclass(frozen=True, eq=False)
class FullProducts:
    """Logits of whole rows under some heads, and sums of such rows.

    Attributes:
        records: all of them.
        logits: float32 (outputs, records) of rows that were read.
        opposite: as `ThinProducts` has it.
    """

    records: Records
    logits: Callable[[Tensor], Tensor]
    opposite: bool = False

    def read(self, chunk: Rows) -> Tensor:
        """Some records with their views, (rows, width)."""
        return self.records.block(chunk).flatten(0, 1)

    def added_up(self, residual: Tensor, x: Tensor) -> Tensor:
        """The sum over records of residual times row, in the type that a chunk may be added up
        in."""
        if self.records.chunk <= LONGEST_SINGLE or self.records.exact or x.is_cuda:
            summable = self.records.as_summable
            return product(summable(residual), summable(x).T)
        # pieces of a long chunk in float32, as many records each as the slack was measured with
        pieces = residual.view(len(residual), -1, LONGEST_SINGLE).transpose(0, 1)
        return torch.bmm(pieces, x.view(-1, LONGEST_SINGLE, x.shape[1])).double().sum(0)


@torch.inference_mode()
def _losses(
    records: Records,
    weights: Tensor,
    bounded: Bounded,
    rows: Sequence[Rows],
    link: Link,
) -> Tensor:
    """The sum over records of their losses, each bounded by itself, for each of several heads.

    A record that is too long for a head's weights loses nothing under them. Where its logits
    nearly tie, its loss would hang on the order in which a product adds up its row. That order
    hangs on its place.
    """
    heads, classes, width = weights.shape
    longest = weights.double().square().sum(dim=2).amax(dim=1).clamp(min=1.0)
    most = LARGEST_SQUARED_NUMBER if link.name == "identity" else LARGEST_SQUARED_LOGIT
    # of a sample that may have nobody in it
    parts = [bounded(weights.new_empty(heads, 0)).sum(dim=1)]
    for chunk in rows:
        x = records.block(chunk).double()
        count, views, _ = x.shape
        logits = (x.view(count * views, width) @ weights.view(heads * classes, width).T).view(
            count, views, heads, classes
        )
        labels = records.labels[chunk].view(count, 1, 1, 1).expand(count, views, heads, 1)
        losses = link.losses(logits, labels, dim=3).mean(dim=1).T
        squared = records.gram[chunk].diagonal(dim1=1, dim2=2).amax(dim=1).double()
        losses = losses.where(longest[:, None] * squared <= most, 0.0)
        parts.append((bounded(losses) * records.counted[chunk]).sum(dim=1))
    return torch.stack(parts).sum(0)


def logits_by(flat: Tensor, chunk: int) -> Callable[[Tensor], Tensor]:
    """A product that makes logits of chunks of records, in float32.

    All ways round a record alike wherever it stands (network/layers.py): a chunk holds a multiple
    of 64. Weights that oneDNN lays out for itself are laid out once.

    Args:
        flat: weights of all heads, (heads * classes, width).
        chunk: records in a chunk.

    Returns:
        From records (records, width) to flat @ records^T, (heads * classes, records).
    """
    if flat.is_cuda or not _onednn_is_faster():
        return lambda x: flat @ x.T
    ready = torch.ops.mkldnn._reorder_linear_weight(flat, chunk)
    return lambda x: _onednn(x, ready).T.contiguous()


def product(left: Tensor, right: Tensor) -> Tensor:
    """left @ right^T, by what is fastest where left has few rows."""
    plain = left.is_cuda or left.dtype == torch.float64 or not _onednn_is_faster()
    return left @ right.T if plain else _onednn(left, right)


def _onednn(left: Tensor, right: Tensor) -> Tensor:
    """PyTorch offers it for dense tensors only under this name."""
    return torch.ops.mkldnn._linear_pointwise(left, right, None, "none", [], "")


@cache
def _onednn_is_faster() -> bool:
    """Whether oneDNN may use AVX-512, or what equals it. There it is up to twice as fast as a plain
    product, and a fifth slower on AVX2.

    It is told by the processor and never by a clock, so that a training that runs again is the same
    to the last bit. PyTorch asks about AVX-512 by the name of a type that needs it.
    """
    known = ("_linear_pointwise", "_reorder_linear_weight", "_is_mkldnn_bf16_supported")
    onednn = torch.ops.mkldnn
    return all(hasattr(onednn, name) for name in known) and onednn._is_mkldnn_bf16_supported()


def gradient_norms(residual: Tensor, gram: Tensor) -> Tensor:
    """Norm of each record's gradient, the mean over its views of r_v x_v^T.

    The squared norm of the sum is the sum over pairs of views of (r_v . r_w)(x_v . x_w), for
    <r x^T, s y^T> = (r . s)(x . y).

    Args:
        residual: r, float32 (trials, classes, records, views).
        gram: x_v . x_w, float64 (records, views, views).

    Returns:
        float64 (trials, records), never below the norm of what float32 makes of the gradient.
    """
    squared = residual.to(torch.float64, copy=True).square_()
    # each view's own
    lengths = squared.sum(1).mul_(gram.diagonal(dim1=1, dim2=2)).sqrt_()
    views = residual.shape[3]
    if views == 1:
        return lengths[..., 0]
    by_record = residual.double().permute(0, 2, 3, 1)
    squares = (by_record @ by_record.mT * gram).sum((2, 3))
    # Where views cancel, what is left of them is rounded as what cancelled was: by 2^-24 of each
    # view's length in float32. 16 times that keeps it within its bound, its rounding included.
    return (squares.clamp_(min=0.0).sqrt_() + CANCELLED * lengths.sum(2)) / views
