"""Secret randomness: a keyed stream for every draw, and the distributions made from it.

Samples follow the method of Box & Muller, four of them added after Holohan & Braghin 2021 (Secure
random sampling in differential privacy). Their logarithms are taken where floats are dense. So each
computed sample lies next to the ideal one that the same bits, continued for ever, would make. What
that means for a release stands in grid.py.

How near follows, in units of u = 2^-50, with 4 units in the last place granted to each logarithm,
cosine and tangent. V below is uniform on (0, 1/2) with 51 bits behind its leading one, so within a
factor 1 +- 2^-52 of its ideal. L = -log V or -log(1 - V), one or the other by a fair bit, is a
standard exponential, within 1.4 u of its own size. An angle is uniform on a circle. That may be
turned so that each of its 2^53 values is the middle of what it stands for. So it is within 2 pi
2^-54. Rounding to 2 pi times it and 2 pi itself add to that, 1.2 u in all. A cosine adds 0.5 u, a
product 0.13 u, so L cos(angle) is within 2.5 u L. Two of them are within 178 u, where both L are 35
at most.

Normals take cosine c and sine s from the tangent of half the angle (`_cosine_and_sine`). It is
within 1 u of its size, which moves c by s^2 u and s by |s c| u. Rounding its square, both sums and
the division adds (0.07 s^2 + 0.38 |c|) u to c and 0.38 |s| u to s. r = sqrt(2 L) <= 9.6 is within
0.9 u of its size. So r c is within (1.4 |c| + 1.2 |s| + 1.07 s^2) u r. And r s is within (1.4 |s| +
1.2 |c| + |s c|) u r. Both are 2.6 u r at the most. Four of them, added and halved, are within 54 u,
the roundings of the additions included.
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
from dpladder.privacy.accounting.draws import Shape
from dpladder.privacy.arrays import Floats
from dpladder.privacy.ledger.state import Terms

Words = NDArray[np.uint64]  # 64 random bits each

EXPONENT = np.uint64(0x7FF << 52)  # of a float64's bits
BLOCK = 1 << 13  # samples made at a time: the work arrays stay in cache


@dataclass(frozen=True)
class SecretNoise:
    """The noise of one committed query: PRF(key, query digest, nonce, name of the draw, index).

    The ledger makes a nonce for each COMMIT, of 128 random bits, and holds none twice. So no two
    answers share a stream, not even two of one query under two charges.
    """

    key: bytes = field(repr=False)  # home's subkey for this purpose
    query: str
    nonce: str = field(repr=False)

    def stream(self, name: str, index: int) -> bytes:
        """The key of one draw's own stream."""
        return hmac.digest(self.key, encode([self.query, self.nonce, name, index]), "sha256")


@dataclass(frozen=True)
class DerivedNoise:
    """Streams of a draw's own stream, for a mechanism inside the one that declared it
    (`meter.Within`)."""

    key: bytes = field(repr=False)

    def stream(self, name: str, index: int) -> bytes:
        """The key of one draw's own stream."""
        return hmac.digest(self.key, encode([name, index]), "sha256")


@dataclass(frozen=True)
class ResearchNoise:
    """Repeatable noise for data declared public: that of a question, whatever bytes it reads, at a
    seed. It protects nobody."""

    terms: Terms
    question: str
    seed: int

    def __post_init__(self) -> None:
        if self.terms.mode != "research":
            raise Refused(
                f"seeded noise is for research only, and lineage {self.terms.lineage} is in mode "
                f"{self.terms.mode}. Remove the seed, or declare the data public with mode: "
                "research."
            )

    def stream(self, name: str, index: int) -> bytes:
        """The key of one draw's own stream."""
        return SecretNoise(b"research", self.question, str(self.seed)).stream(name, index)


def encode(value: object) -> bytes:
    """One byte string for each value, and never the same for two: every element carries its type
    and length. Floats are written out in full. The order of a mapping's keys does not count, that
    of a sequence does.

    Args:
        value: None, a bool, a number, text, bytes, or mappings and sequences of such. Sequences of
            different types that hold the same elements are encoded alike.

    Raises:
        BadInput: for anything else, such as an array or a set.
    """
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
                f"a digest takes plain values, not {type(value).__name__}. Convert it to numbers "
                "or text."
            )
    return f"{tag}{len(body)}:".encode() + body


def gaussian(stream: bytes, shape: Shape) -> Floats:
    """Standard normals: four independent Box-Muller samples, added and halved.

    Args:
        stream: the 32-byte key of one draw's own stream.
        shape: of the array.

    Returns:
        float64, each within 54 units of 2^-50 of an ideal normal (grid.py).
    """

    def block(words: Words) -> Floats:
        radius = np.sqrt(2.0 * _exponential(words[:4], words[4:8]))
        cosine, sine = _cosine_and_sine(_angle(words[8:]))
        return np.concatenate([(radius * cosine).sum(axis=0), (radius * sine).sum(axis=0)]) / 2.0

    return _fill(stream, shape, block, words=12, samples=2)


def laplace(stream: bytes, shape: Shape) -> Floats:
    """Laplace of scale 1 from two exponentials and two angles (Holohan & Braghin 2021).

    For a Box-Muller pair, (N1² - N2²)/2 = -ln(u)·cos(2a) with a uniform angle a. Two of them add to
    half the difference of two chi-squares with two degrees of freedom each: the difference of two
    exponentials, which is Laplace.

    Args:
        stream: the 32-byte key of one draw's own stream.
        shape: of the array.

    Returns:
        float64, each within 178 units of 2^-50 of an ideal one, but for a probability of 2 e^-35
        (grid.py).
    """

    def block(words: Words) -> Floats:
        total: Floats = (_exponential(words[:2], words[2:4]) * np.cos(_angle(words[4:]))).sum(
            axis=0
        )
        return total

    return _fill(stream, shape, block, words=6, samples=1)


def uniform(stream: bytes, shape: Shape) -> Floats:
    """Uniforms on (0, 1], multiples of 2⁻⁵³, from the stream of one draw.

    Args:
        stream: the 32-byte key of one draw's own stream.
        shape: of the array.

    Returns:
        float64. 0 never occurs, so a logarithm of them is finite.
    """
    return _fill(stream, shape, lambda words: _unit(words[0]), words=1, samples=1)


def mask(stream: bytes, probability: float, ids: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which units are in a Poisson sample: each 128-bit id on its own, wherever it stands.

    Guarantee: equal ids share their fate. AES is a pseudorandom permutation, so under a key of this
    draw alone distinct ids give independent-looking blocks. The probability is met from below,
    within 2⁻⁵³.

    Args:
        stream: the 32-byte key of this draw's own stream.
        probability: of each unit, in [0, 1].
        ids: uint8 of shape (units, 16).

    Returns:
        bool of shape (units,).

    Raises:
        BadInput: ids of another shape or kind.
    """
    if ids.dtype != np.uint8 or ids.ndim != 2 or ids.shape[1] != 16:
        raise BadInput("a mask needs its ids as rows of 16 bytes (uint8).")
    encryptor = Cipher(algorithms.AES(stream), modes.ECB()).encryptor()
    blocks = np.frombuffer(encryptor.update(np.ascontiguousarray(ids).tobytes()), dtype="<u8")[::2]
    return (blocks >> 11) < np.uint64(probability * 2.0**53)


def _exponential(words: Words, places: Words) -> Floats:
    """Standard exponentials: -log V or -log(1 - V), whichever a fair bit says, with V uniform on
    (0, 1/2)."""
    v = _normal_tail_uniforms(words, places)
    upper = (words & np.uint64(1)).astype(np.bool_)  # bit 0 is no part of m, and fair
    # both of each, for a choice among elements costs more than their logarithms
    return -np.where(upper, np.log1p(-v), np.log(v))


def _normal_tail_uniforms(words: Words, places: Words) -> Floats:
    """V = m 2^-(k+2), bit by bit. m is in [1, 2): 51 random bits, and a last one that is always 1,
    the middle of the interval that they name. k zeros stand before the first 1 of `places`."""
    # As floats, places have the exponent of their first 1, 63 - k. None rounds up to the next
    # power of two without the bit below it. No 1 at all counts as one more place.
    floats = (places & ~(places >> np.uint64(1))).astype(np.float64)
    exponents = (np.maximum(floats, 0.5).view(np.uint64) & EXPONENT) - np.uint64(65 << 52)
    return (exponents | (words >> np.uint64(12)) | np.uint64(1)).view(np.float64)


def _angle(words: Words) -> Floats:
    """Uniform angles in (0, 2 pi], in radians."""
    return 2.0 * math.pi * _unit(words)


def _cosine_and_sine(angle: Floats) -> tuple[Floats, Floats]:
    """Cosine and sine, from the tangent t of half the angle: (1 - t^2) / (1 + t^2) and 2 t / (1 +
    t^2). NumPy has no fast cosine or sine in double precision, but a fast tangent where there is
    AVX-512."""
    tangent = np.tan(angle / 2.0)
    square = tangent * tangent
    return (1.0 - square) / (1.0 + square), 2.0 * tangent / (1.0 + square)


def _unit(words: Words) -> Floats:
    """53 bits, never zero."""
    return ((words >> np.uint64(11)) + np.uint64(1)).astype(np.float64) * 2.0**-53


def _fill(
    stream: bytes, shape: Shape, block: Callable[[Words], Floats], words: int, samples: int
) -> Floats:
    """An array of `shape` made block by block; each block turns (words, m) into samples·m
    values."""
    out = np.empty(math.prod(shape))
    # The key belongs to this draw alone, so the counter may start at zero.
    encryptor = Cipher(algorithms.AES(stream), modes.CTR(bytes(16))).encryptor()
    width = (min(BLOCK, out.size) + samples - 1) // samples
    zeros = bytes(8 * words * width)
    for start in range(0, out.size, BLOCK):
        values = block(np.frombuffer(encryptor.update(zeros), dtype="<u8").reshape(words, width))
        out[start : start + BLOCK] = values[: out.size - start]
    return out.reshape(shape)
