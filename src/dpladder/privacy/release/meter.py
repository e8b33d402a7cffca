"""The meter: the one door through which randomness reaches a private job. What was declared is
drawn, exactly.

A job declares its draws before it reads data, and the ledger charges it for just those
(accounting/draws.py). So what a job may do with its noise is to ask for the next draw by its name.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NoReturn, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting import selection
from dpladder.privacy.accounting.draws import EQUAL, Distribution, Draw, Shape, cost
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release import noise
from dpladder.privacy.release.grid import COMPARED, FINENESS, Noise

__all__ = ["Draw", "Meter", "Streams", "Used", "Within"]

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True)
class Used:
    """One draw that was made. Private: an audit compares the digests, nobody publishes them.

    Attributes:
        name: of the declared draw.
        index: which of the draws of this name it is, from 0.
        sha256: of the bytes that were drawn, or None where the meter does not audit.
    """

    name: str
    index: int
    sha256: str | None


class Streams(Protocol):
    """Where a meter's randomness comes from: home's key, research's seed, or another draw."""

    def stream(self, name: str, index: int) -> bytes:
        """The 32-byte key of the draw of this name and number; no two draws share one."""
        ...


class Meter:
    """Hands out the declared draws, each from a stream of its own, and refuses any other.

    Guarantee: a job that closes its meter drew exactly what was charged: names, number, shape,
    distribution and scale. After one refusal the meter refuses everything.

    Args:
        draws: all that the job declares.
        source: where streams come from: home's key, or research's seed.
        audit: keeps a digest of each draw, which nobody publishes.
    """

    def __init__(self, draws: Sequence[Draw], source: Streams, audit: bool = False) -> None:
        self._declared = {draw.name: draw for draw in draws}
        if len(self._declared) != len(draws):
            raise BadInput("two draws share a name. Give each draw of a job its own.")
        self._made = dict.fromkeys(self._declared, 0)
        self.source = source
        self._audit = audit
        self._refused = False  # once true, nothing more is drawn
        self.used: list[Used] = []

    def publish(self, name: str, total: ArrayLike) -> Floats:
        """`total` with its declared noise, on the public grid.

        Everything leaves a mechanism this way or, from a tensor on a device, by `noise` and its
        `add_to`.

        Guarantee: the release costs what the ledger charged for this draw, and `grid.slack` beside
        it. That holds if a unit moves `total` by the draw's declared sensitivity at most, which is
        the caller's part.

        Args:
            name: of the declared draw.
            total: the exact sum, in float64, of the draw's shape.

        Returns:
            The release: multiples of the grid's step.

        Raises:
            Refused: as `noise` does.
        """
        exact = np.asarray(total, np.float64)
        published: Floats = self.noise(name, exact.shape).add_to(exact)
        return published

    def noise(self, name: str, shape: Shape) -> Noise:
        """The declared noise for a sum on another device; add it by `add_to` alone.

        Args:
            name: of the declared draw.
            shape: of the sum; it must be the declared one.

        Returns:
            Noise of unit scale, with the scale that was declared: no caller can lower it.

        Raises:
            Refused: the draw is not declared, is no Gaussian or Laplace of this shape, or was made
                as often as it was declared.
        """
        draw = self._declared.get(name)  # _take refuses a name that is not declared
        kind: Distribution = (
            "laplace" if draw is not None and draw.distribution == "laplace" else "gaussian"
        )
        stream = self._take_stream(name, kind, shape)
        values = (noise.laplace if kind == "laplace" else noise.gaussian)(stream, shape)
        declared = self._declared[name]
        # rounds of tests compare what they noise, and lie under no draw (accounting/draws.py)
        compared = declared.under not in ("", *self._declared)
        fineness = COMPARED if compared else FINENESS
        return Noise(self._note(name, values), declared.scale, fineness=fineness)

    def declares(self, draw: Draw) -> bool:
        """Whether exactly this draw was declared."""
        return self._declared.get(draw.name) == draw

    def uniform(self, name: str) -> Floats:
        """Uniforms on (0, 1], as many as were declared. Secret randomness that costs nothing by
        itself, such as places of trials; numbers of runs come from `runs` alone."""
        stream = self._take_stream(name, "uniform")
        if self._declared[name].law is not None:
            self._refuse(f"draw {name} is a number of runs by a declared law, and no uniform")
        return self._note(name, noise.uniform(stream, self._declared[name].shape))

    def runs(self, name: str) -> int:
        """A secret number of runs, by the declared law. It must never be published: the price of a
        private selection rests on nobody knowing it (accounting/selection.py)."""
        law = self._declared[name].law if name in self._declared else None
        stream = self._take_stream(name, "uniform", ())
        if law is None:
            self._refuse(f"draw {name} has no declared law of a number of runs")
        mean, shape, limit = law
        uniform = self._note(name, noise.uniform(stream, ()))
        return selection.number(float(uniform), selection.Runs(mean, shape), limit)

    def mask(self, name: str, ids: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Poisson sampling by 128-bit unit id, at the declared probability.

        Args:
            name: of the declared draw.
            ids: uint8 of shape (units, 16).

        Returns:
            bool of shape (units,): who is in the sample. It is secret.
        """
        stream = self._take_stream(name, "mask")
        return self._note(name, noise.mask(stream, self._declared[name].scale, ids))

    def inner_meters(self, name: str) -> Within:
        """Meters for trainings inside this mechanism, whose own draws may hang on secret ones made
        here, and so cannot be declared one by one. `Within` holds them to their mu."""
        stream, draw = self._take_stream(name, "within"), self._declared[name]
        over = self._declared.get(draw.under)
        runs = 1 if over is None or over.law is None else over.law[2]
        return Within(noise.DerivedNoise(stream), draw.mu_of_each, math.prod(draw.shape) * runs)

    def close(self) -> None:
        """Refuse unless everything declared was drawn, and nothing else was tried.

        A draw that was charged and not made is no loss of privacy. It is refused all the same, for
        what a job leaves undone may depend on its data.
        """
        fewer = [name for name, draw in self._declared.items() if self._made[name] < draw.count]
        if fewer:
            self._refuse(
                f"draw {fewer[0]} was made fewer times than the declared "
                f"{self._declared[fewer[0]].count}"
            )
        if self._refused:
            self._refuse("a draw outside the declaration was tried")

    def _take_stream(
        self, name: str, distribution: Distribution, shape: Shape | None = None
    ) -> bytes:
        """The next stream under `name`, if it is declared just so."""
        draw = self._declared.get(name)
        if draw is None:
            self._refuse(f"draw {name} is not declared")
        if self._refused or distribution != draw.distribution or shape not in (None, draw.shape):
            self._refuse(
                f"draw {name} differs from the declared {draw.distribution} {draw.scale} "
                f"{draw.shape}"
            )
        index = self._made[name]
        if index == draw.count:
            self._refuse(f"draw {name} was made more often than the declared {draw.count} times")
        self._made[name] = index + 1
        return self.source.stream(name, index)

    def _refuse(self, what: str) -> NoReturn:
        # Only declared figures are named: those asked for may depend on private data. Refused
        # for good, so that a job that catches this error still publishes nothing.
        self._refused = True
        raise Refused(
            f"{what}. Nothing was published: make the job draw what it declares, or declare what "
            "it draws."
        )

    def _note(self, name: str, values: NDArray[Number]) -> NDArray[Number]:
        digest = hashlib.sha256(values.tobytes()).hexdigest() if self._audit else None
        self.used.append(Used(name, self._made[name] - 1, digest))
        return values


@dataclass(frozen=True)
class Within:
    """Gives each training inside a mechanism a meter of its own.

    Guarantee: no two trainings share a stream. Where trainings cost something by themselves, there
    are no more of them than were declared, each at just the mu that was declared for one.

    Attributes:
        source: streams of the draw that declared the trainings.
        mu: of one training; 0 where its answers cost nothing by themselves, as in rounds of tests.
        most: trainings; under a secret number of runs, as many as there may ever be.
        numbers: counts the trainings that asked for a meter, over all threads.
        names: of the trainings so far. Each keeps its first caller, so that a second one is
            refused.
    """

    source: noise.DerivedNoise = field(repr=False)
    mu: float
    most: int
    numbers: Iterator[int] = field(default_factory=count, repr=False)  # one for each, in any thread
    names: dict[str, object] = field(default_factory=dict, repr=False)

    def meter(self, name: str, draws: Sequence[Draw]) -> Meter:
        """A meter for one more training.

        Args:
            name: of the training. Its streams follow from the name, whichever thread comes first.
            draws: all that the training declares.

        Raises:
            Refused: for another mu than was declared, a training too many, or a name again. No
                message names a training: how many there are may be secret.
        """
        beside = any(draw.under for draw in draws)  # what lies under anything is not in its cost
        if self.mu and (beside or not math.isclose(cost(draws), self.mu, rel_tol=EQUAL)):
            raise Refused(
                "a training inside a search declares noise for another mu than the search declared "
                "for it. Nothing was published."
            )
        if self.mu and next(self.numbers) >= self.most:
            raise Refused(
                f"a search makes more trainings than the declared {self.most}. Nothing was "
                "published."
            )
        training = object()
        # one step, so that of two threads with one name the second is refused
        if self.names.setdefault(name, training) is not training:
            raise Refused(
                "two trainings inside a search share a name, and would share their noise. Nothing "
                "was published: give each a name of its own."
            )
        return Meter(draws, noise.DerivedNoise(self.source.stream(name, 0)))
