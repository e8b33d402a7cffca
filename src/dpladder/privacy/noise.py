"""Secret randomness: a keyed stream for every draw, and the distributions made from it.

Sampling is hardened after Holohan & Braghin 2021 (Secure random sampling in differential privacy): a released value is
a sum over several independent float samples, so its low-order bits no longer give away the one uniform behind it. Ideal
real-valued sampling stays an assumption that the statement names.
"""

from __future__ import annotations

import hmac
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from dpladder.errors import BadInput, Refused
from dpladder.privacy.ledger import Terms
from dpladder.privacy.spend import Job

Floats = NDArray[np.float64]
Shape = tuple[int, ...]

BLOCK = 1 << 13  # samples made at a time: the work arrays stay in cache


@dataclass(frozen=True)
class SecretNoise:
    """The noise of one committed query: PRF(key, job identity, query digest, nonce, name of the draw, index)."""

    key: bytes = field(repr=False)  # home's subkey for this purpose
    job: Job
    query: str
    nonce: str = field(repr=False)

    def stream(self, name: str, index: int) -> bytes:
        """The key of one draw's own stream."""
        job = [self.job.experiment, self.job.rule, self.job.wildcards]
        return hmac.digest(self.key, encode([job, self.query, self.nonce, name, index]), "sha256")


@dataclass(frozen=True)
class DerivedNoise:
    """Streams of a draw's own stream, for a mechanism inside the one that declared it."""

    key: bytes = field(repr=False)

    def stream(self, name: str, index: int) -> bytes:
        """The key of one draw's own stream."""
        return hmac.digest(self.key, encode([name, index]), "sha256")


@dataclass(frozen=True)
class ResearchNoise:
    """Repeatable noise for data declared public. It protects nobody."""

    terms: Terms
    job: Job
    seed: int

    def __post_init__(self) -> None:
        if self.terms.mode != "research":
            raise Refused(
                f"seeded noise is for research only, and lineage {self.terms.lineage} is in mode {self.terms.mode}. "
                "Remove the seed, or declare the data public with mode: research."
            )

    def stream(self, name: str, index: int) -> bytes:
        """The key of one draw's own stream."""
        return SecretNoise(b"research", self.job, "", str(self.seed)).stream(name, index)


def encode(value: object) -> bytes:
    """One byte string for each value, and never the same for two: every element carries its type and length.
    Floats are written out in full."""
    match value:
        case None | bool():
            tag, body = "n", str(value).encode()
        case int():
            tag, body = "i", str(value).encode()
        case float():
            tag, body = "f", float(value).hex().encode()
        case str():
            tag, body = "s", value.encode()
        case bytes():
            tag, body = "b", value
        case Mapping():
            tag, body = "m", b"".join(sorted(encode([key, item]) for key, item in value.items()))
        case Sequence():
            tag, body = "l", b"".join(encode(item) for item in value)
        case _:
            raise BadInput(
                f"a digest takes plain values, not {type(value).__name__}. Convert it to numbers or text."
            )
    return f"{tag}{len(body)}:".encode() + body


def gaussian(stream: bytes, shape: Shape) -> Floats:
    """Standard normals: four independent Box-Muller samples, added and halved (Holohan & Braghin 2021)."""

    def block(u: Floats) -> Floats:
        radius, angle = np.sqrt(-2.0 * np.log(u[:4])), 2.0 * math.pi * u[4:]
        return (
            np.concatenate([(radius * np.cos(angle)).sum(axis=0), (radius * np.sin(angle)).sum(axis=0)]) / 2.0
        )

    return _fill(stream, shape, block, uniforms=8, samples=2)


def laplace(stream: bytes, shape: Shape) -> Floats:
    """Laplace of scale 1 from four uniforms (Holohan & Braghin 2021).

    For a Box-Muller pair, (N1² - N2²)/2 = -ln(u)·cos(2a) with a uniform angle a. Two of them add to half the difference
    of two chi-squares with two degrees of freedom each: the difference of two exponentials, which is Laplace.
    """

    def block(u: Floats) -> Floats:
        radius, angle = -np.log(u[:2]), 2.0 * math.pi * u[2:]
        total: Floats = (radius * np.cos(angle)).sum(axis=0)
        return total

    return _fill(stream, shape, block, uniforms=4, samples=1)


def uniform(stream: bytes, shape: Shape) -> Floats:
    """Uniforms on (0, 1], multiples of 2⁻⁵³."""
    return _fill(stream, shape, lambda u: u[0], uniforms=1, samples=1)


def mask(stream: bytes, probability: float, ids: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Who is in the sample: each 128-bit id on its own, wherever it stands. Equal ids share their fate.

    AES is a pseudorandom permutation, so under a key of this draw alone distinct ids give independent-looking blocks.
    The probability is met from below, within 2⁻⁵³.
    """
    if ids.dtype != np.uint8 or ids.ndim != 2 or ids.shape[1] != 16:
        raise BadInput("a mask needs its ids as rows of 16 bytes (uint8).")
    encryptor = Cipher(algorithms.AES(stream), modes.ECB()).encryptor()
    blocks = np.frombuffer(encryptor.update(np.ascontiguousarray(ids).tobytes()), dtype="<u8")[::2]
    return (blocks >> 11) < np.uint64(probability * 2.0**53)


def _fill(
    stream: bytes, shape: Shape, block: Callable[[Floats], Floats], uniforms: int, samples: int
) -> Floats:
    """An array of `shape` made block by block; each block turns (uniforms, m) into samples·m values."""
    out = np.empty(math.prod(shape))
    # The key belongs to this draw alone, so the counter may start at zero.
    encryptor = Cipher(algorithms.AES(stream), modes.CTR(bytes(16))).encryptor()
    width = (min(BLOCK, out.size) + samples - 1) // samples
    zeros = bytes(8 * uniforms * width)
    for start in range(0, out.size, BLOCK):
        bits = np.frombuffer(encryptor.update(zeros), dtype="<u8").reshape(uniforms, width)
        # 53 bits, never zero: the logarithm stays finite.
        values = block(((bits >> 11) + 1).astype(np.float64) * 2.0**-53)
        out[start : start + BLOCK] = values[: out.size - start]
    return out.reshape(shape)
