"""The part of a public network that a training may go on from, by the facts that it follows from.
No torch here."""

from __future__ import annotations

from dataclasses import dataclass

from dpladder.config.features_sections import Pooling

# a cut before the whole network: what is kept are decoded pixels, or a text's tokens
INPUT = "input"


@dataclass(frozen=True)
class Network:
    """A public network, cut.

    Attributes:
        model: its name.
        weights: bundled, pretrained, or a checkpoint's path.
        sha256: of all its tensors.
        image_size: in pixels; None of texts.
        until: the last layer below the cut.
        shape: of one record's activations at the cut, which a cache holds flattened.
        pooling: of a network for texts, what becomes of its last layer's tokens. `none`: each is
            followed by the next, by a causal model. `each`: whether an answer starts or ends there.
    """

    model: str
    weights: str
    sha256: str
    image_size: int | None
    until: str
    shape: tuple[int, ...]
    pooling: Pooling | None = None

    @property
    def speaks(self) -> bool:
        """Whether it is a language model itself, and has no head that names classes."""
        return self.pooling == "none"
