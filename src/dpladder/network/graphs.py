"""Work on a GPU that is recorded once, and then started as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def record(run: Callable[..., Any], *examples: Tensor) -> Callable[..., Any]:
    """`run` as a CUDA graph for tensors of these shapes, where it can be recorded.

    Small batches take longer to start, kernel by kernel, than to compute. A graph starts the same
    kernels at once. What looks at its numbers on the way cannot be recorded, and stays as it is.

    Args:
        run: a function of tensors on the GPU, and of others that stay where they are in memory.
        examples: tensors of the shapes and types that `run` is called with, whatever they hold.

    Returns:
        The same function. What it returned is overwritten by its next call.
    """
    taken = [example.cuda().clone() for example in examples]
    stream: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    graph = torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run(*taken)  # what is made at a first call is no part of the graph
    torch.cuda.current_stream().wait_stream(stream)
    try:
        with torch.cuda.graph(graph):
            results = run(*taken)
    except RuntimeError:
        return lambda *tensors: run(*(one.cuda(non_blocking=True) for one in tensors))

    def replay(*tensors: Tensor) -> Any:
        for place, one in zip(taken, tensors, strict=True):
            place.copy_(one, non_blocking=True)
        graph.replay()
        return results

    return replay
