"""The meter: the one door through which randomness reaches a private job. What was declared is drawn, exactly."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn, Protocol, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from dpladder.errors import BadInput, Refused
from dpladder.privacy import noise
from dpladder.privacy.noise import Floats, Shape

Distribution = Literal["gaussian", "laplace", "uniform", "mask", "seed", "within"]
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True)
class Draw:
    """`count` draws under one name. `scale` is the noise's own (a mask's probability; 1 where there is none).
    A mask covers whatever records there are, so its shape stays ()."""

    name: str
    distribution: Distribution
    scale: float = 1.0
    shape: Shape = ()
    count: int = 1

    def __post_init__(self) -> None:
        if self.distribution not in get_args(Distribution):
            known = ", ".join(get_args(Distribution))
            raise BadInput(
                f"draw {self.name}: {self.distribution} is no distribution here. Known are {known}."
            )
        if not (self.scale > 0.0 and math.isfinite(self.scale)):
            raise BadInput(f"draw {self.name}: scale {self.scale} must be positive and finite.")
        if self.distribution == "mask" and self.scale > 1.0:
            raise BadInput(f"draw {self.name}: probability {self.scale} must be at most 1.")
        if self.count < 1 or any(length < 0 for length in self.shape):
            raise BadInput(f"draw {self.name}: count {self.count} and shape {self.shape} must be positive.")


@dataclass(frozen=True)
class Used:
    """One draw that was made. Private: an audit compares the digests, nobody publishes them."""

    name: str
    index: int
    sha256: str | None


class Source(Protocol):
    def stream(self, name: str, index: int) -> bytes: ...


class Meter:
    """Hands out the declared draws, each from a stream of its own, and refuses any other."""

    def __init__(self, draws: Sequence[Draw], source: Source, audit: bool = False) -> None:
        self._declared = {draw.name: draw for draw in draws}
        if len(self._declared) != len(draws):
            raise BadInput("two draws share a name. Give each draw of a job its own.")
        self._made = dict.fromkeys(self._declared, 0)
        self._source = source
        self._audit = audit
        self._closed = False
        self.used: list[Used] = []

    def gaussian(self, name: str, scale: float, shape: Shape) -> Floats:
        stream = self._take(name, "gaussian", scale, shape)
        return self._note(name, noise.gaussian(stream, shape) * scale)

    def laplace(self, name: str, scale: float, shape: Shape) -> Floats:
        stream = self._take(name, "laplace", scale, shape)
        return self._note(name, noise.laplace(stream, shape) * scale)

    def uniform(self, name: str, shape: Shape) -> Floats:
        """Uniforms on (0, 1]."""
        stream = self._take(name, "uniform", 1.0, shape)
        return self._note(name, noise.uniform(stream, shape))

    def mask(self, name: str, probability: float, ids: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Poisson sampling by 128-bit unit id."""
        stream = self._take(name, "mask", probability, ())
        return self._note(name, noise.mask(stream, probability, ids))

    def seed(self, name: str) -> int:
        """64 bits for another library's generator: dropout, initialisation, batch order. Not for noise that privacy
        rests on: such generators are predictable."""
        seed = np.frombuffer(self._take(name, "seed", 1.0, ())[:8], dtype="<u8")
        return int(self._note(name, seed)[0])

    def within(self, name: str) -> noise.DerivedNoise:
        """A source for the meters of mechanisms inside this one, whose own draws may hang on secret ones made here."""
        return noise.DerivedNoise(self._take(name, "within", 1.0, ()))

    def close(self) -> None:
        """Refuse unless everything declared was drawn, and nothing else was tried."""
        fewer = [name for name, draw in self._declared.items() if self._made[name] < draw.count]
        if fewer:
            self._refuse(
                f"draw {fewer[0]} was made fewer times than the declared {self._declared[fewer[0]].count}"
            )
        if self._closed:
            self._refuse("a draw outside the declaration was tried")
        self._closed = True

    def _take(self, name: str, distribution: Distribution, scale: float, shape: Shape) -> bytes:
        """The next stream under `name`, if it is declared just so."""
        draw = self._declared.get(name)
        if draw is None:
            self._refuse(f"draw {name} is not declared")
        if self._closed or (distribution, scale, shape) != (draw.distribution, draw.scale, draw.shape):
            self._refuse(
                f"draw {name} differs from the declared {draw.distribution} {draw.scale} {draw.shape}"
            )
        index = self._made[name]
        if index == draw.count:
            self._refuse(f"draw {name} was made more often than the declared {draw.count} times")
        self._made[name] = index + 1
        return self._source.stream(name, index)

    def _refuse(self, what: str) -> NoReturn:
        # Only declared figures are named: those asked for may depend on private data. Closed for good, so that a job
        # that catches this error still publishes nothing.
        self._closed = True
        raise Refused(
            f"{what}. Nothing was published: make the job draw what it declares, or declare what it draws."
        )

    def _note(self, name: str, values: NDArray[Number]) -> NDArray[Number]:
        digest = hashlib.sha256(values.tobytes()).hexdigest() if self._audit else None
        self.used.append(Used(name, self._made[name] - 1, digest))
        return values
