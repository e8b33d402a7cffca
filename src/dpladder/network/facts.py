"""The part of a public network that a training may go on from, by the facts that it follows from. No torch here."""

from __future__ import annotations

from dataclasses import dataclass

INPUT = "input"  # a cut before the whole network: what is kept are decoded pixels


@dataclass(frozen=True)
class Network:
    """A public network, cut. `shape`: of one record's activations at the cut, which a cache holds flattened."""

    model: str
    weights: str  # bundled, pretrained, or a checkpoint's path
    sha256: str  # of all its tensors
    image_size: int | None
    until: str
    shape: tuple[int, ...]
