"""What every encoder of records is, whatever it reads: a map of each record by itself, in batches
of one shape."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.config.features_sections import Features
from dpladder.data.parallel import ordered_map
from dpladder.errors import Refused

Rows = NDArray[Any]
Forward = Callable[[Iterable[Rows]], Iterator[Rows]]

# larger batches fall out of a CPU's caches: EfficientNet-Lite0 at 96 px is 1.5 x slower at 64
CPU_BATCH = 32


@dataclass(frozen=True)
class Encoder:
    """How records become rows: each by itself, whatever else is in its batch.

    Attributes:
        width: numbers of a row.
        batch: records that are encoded at a time, always as many.
        blank: what stands in for a record that is missing or bad.
        load: turns one view of a record into an array of fixed shape, or raises. View 0 is the
            record itself; of a text a view is the number of a span.
        encode: maps batches of exactly `batch` such arrays to rows.
        facts: name all that the rows follow from.
        on_gpu: whether rows are made there.
    """

    width: int
    batch: int
    blank: Rows
    load: Callable[[Any, int], Rows]
    encode: Callable[[Iterable[Rows]], Iterator[Rows]]
    facts: Mapping[str, str | int]
    on_gpu: bool = False


def device_of() -> Any:
    """Where networks run, set to give the same bits every time.

    A GPU rounds the factors of products to TF32's 10 bits. Features then differ from a CPU's by 3
    in 10,000 (ResNet-50) to 3 in 1,000 (EfficientNet-Lite0), a tenth of what bfloat16 does to them.
    A ViT-B runs at four times the speed of float32 (docs/measurements/gpu.md).
    """
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def batch_of(features: Features, device: Any) -> int:
    """Records that go through a network at a time: the config's number, and no more than a CPU's
    caches hold."""
    return min(features.batch_size, CPU_BATCH) if device.type == "cpu" else features.batch_size


def arithmetic(device: Any) -> str:
    """How a device rounds products, as a cache notes it."""
    return "float32" if device.type == "cpu" else "tf32"


def batch_stream(run: Callable[[Any], Any], device: Any, threads: int) -> Forward:
    """A pass over batches, in order.

    On a CPU every thread takes whole batches through the network by itself. Nobody waits at
    barriers inside a layer, and rows do not depend on how many threads a job has. On a GPU the
    network's work on one shape of batches is recorded once and then started as a whole. And the
    next batch is sent while one is computed.

    Args:
        run: from a batch on the device to its rows there: (batch, ...) to (batch, width).
        device: where it runs.
        threads: on a CPU, how many batches are on their way at once.
    """
    import torch

    from dpladder.network.graphs import record

    def alone(batch: Rows) -> Rows:
        torch.set_num_threads(1)  # of the calling thread
        with torch.inference_mode():
            return run(torch.from_numpy(batch)).numpy()

    if device.type == "cpu":
        return lambda batches: ordered_map(alone, batches, threads)
    recorded: dict[tuple[int, ...], Callable[[Any], Any]] = {}

    def start(batch: Rows) -> tuple[Any, Any]:
        """Begin a batch; its rows are there once the event has come."""
        sent = torch.empty(batch.shape, dtype=torch.from_numpy(batch).dtype, pin_memory=True)
        sent.numpy()[:] = batch  # PyTorch's threads would wait for cores that load images
        with torch.inference_mode():
            if sent.shape not in recorded:
                recorded[sent.shape] = record(run, sent)
            rows = recorded[sent.shape](sent)
            arrived = torch.empty(rows.shape, dtype=rows.dtype, pin_memory=True)
            arrived.copy_(rows, non_blocking=True)
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record()
        return arrived, event

    def finish(rows: Any, event: Any) -> Rows:
        event.synchronize()
        return rows.numpy()

    def overlapped(batches: Iterable[Rows]) -> Iterator[Rows]:
        running: deque[tuple[Any, Any]] = deque()
        for batch in batches:
            running.append(start(batch))
            if len(running) > 1:
                yield finish(*running.popleft())
        while running:
            yield finish(*running.popleft())

    return overlapped


def check_independence(
    forward: Forward, draw: Callable[[np.random.Generator], Rows], name: str
) -> None:
    """Refuse a network in which a row follows from more than its own record.

    Privacy rests on that, so see it on this machine with public noise. Reordered and among other
    neighbours, every row comes out the same to the last bit. A network that fails would let one
    person move other people's features, which no clipping bounds.

    Args:
        forward: the pass over batches.
        draw: makes a batch of public noise.
        name: of the network, for the message.

    Raises:
        Refused: a row depends on its neighbours, or on its place.
    """
    random = np.random.default_rng(0)
    records, neighbours = draw(random), draw(random)
    order = random.permutation(len(records))
    half = len(records) // 2
    mixed = np.concatenate([records[:half], neighbours[half:]])
    rows, moved, among = forward([records, records[order], mixed])
    if not (np.array_equal(rows[order], moved) and np.array_equal(rows[:half], among[:half])):
        raise Refused(
            f"features.model: with {name} at batch_size {len(records)} a record's features depend "
            "on the other records of its batch on this machine, which no privacy guarantee allows. "
            "Set features.batch_size: 1."
        )
