"""Everything that leaves a mechanism is rounded to a public grid, so that no low bit of it can tell
what was added up.

Floats are a lattice, finer near zero. Where a sum and its noise nearly cancel, the bits of
`sum + noise` show the lattice of `released - sum`. With it they show which sums are possible at all
(Mironov 2012; Holohan & Braghin 2021). So a release is

    g * round((total + noise) / g),   g the largest power of two not above scale / 8,

a multiple of g whatever the total was, and every multiple near it is possible whatever the total
was.

**What then holds.** With ideal noise, rounding is post-processing: the release costs what the
Gaussian (or Laplace) mechanism costs. Noise is computed, so say how far it can be from ideal. Each
computed z lies within a distance of an ideal z* that is made from the same random bits continued
for ever. In noise.py's units of u = 2^-50, a normal is within 54 u. A Laplace is within 178 u
unless one of its exponentials is above 35, which has a probability of 2 e^-35. A total is cut into
a multiple of g and a rest, exactly. Adding the rest and z s/g, which are below 2^9 and 2^11 in
size, rounds twice: by 2^-44 and 2^-42 of a cell. A cell is w = g/s in (1/16, 1/8] of the noise's
scale s, so that is 8 u and 32 u of the scale. Together

    TAU = 62 u for normals, 210 u for Laplace.

The probability of a cell is that of an interval whose ends are off by TAU at most. Over a cell at a
distance of x scales from the total, a normal's density varies by exp(w x + w^2/2). A Laplace's
varies by exp(w) wherever the cell lies. So the probability of a cell is off by a factor of
exp(+-rho),

    rho <= (2 TAU / w) exp(w x + w^2/2) < 2^-38  of normals, for x <= 8,
    rho <= (2 TAU / w) exp(w)           < 2^-37  of Laplace,

largest at w = 1/16. What is left out, cells beyond 8 deviations and exponentials above 35, has a
probability below 2^-49. So M released numbers cost (epsilon + 2 M rho, delta + 2 M 2^-49) where
ideal ones cost (epsilon, delta). For ten million numbers that is less than 2e-4 in epsilon and 4e-8
in delta. The former is the worst case of every sign, which no data can bring about. `slack` gives
the figure for the statement.

The grid costs g^2/12 <= s^2/768 of variance: noise that is 0.07 % larger.

**Where noised numbers are compared**, and the outcome alone leaves, rounding is no post-processing:
the numbers themselves would cost more. A unit moves each utility by D at most. The proof of
AboveThreshold moves a level L by D and one utility's noise by 2 D (Dwork & Roth 2014, Theorem
3.23). On grids of steps g_L and g_U a rounded utility moves by up to D + g_U. So the level has to
move by a multiple of g_L, of at least D + g_U. It moves by at most D + g_U + g_L, and the one
utility's noise by at most 2 D + 2 g_U + g_L. That costs (g_U + g_L) / s_L + (2 g_U + g_L) / s_U
more, with s_U = 2 s_L. On steps of an eighth of a scale a round of epsilon 0.02 really costs
0.0200337 at the least (tests/privacy/release/test_grid.py). So numbers that are compared lie on
steps of 2^-38 of their scale, where it is 5.5 * 2^-38 = 2.0e-11 a round at most. Cells are narrower
than TAU allows for there, but only the two numbers that move count. For computed noise rises with
the ideal one but for 2 TAU. So the level moves by 2 TAU s_L more. The one utility moves by as much
and 2 TAU s_U more. That costs 5 TAU = 1e-12. Both are less than 2.9e-11, the slack of two numbers.
Nothing of them leaves, so no low bit can tell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpladder.privacy.arrays import Floats

FINENESS = 8  # grid steps in a noise deviation, at least
COMPARED = 2.0**38  # the same, of numbers that are compared, and do not leave
# Totals and releases are cut off this many cells away from 0. Up to there whole numbers of cells
# are exact in float64.
LARGEST_CELL = 2.0**52
RHO = 2.0**-37  # how far a cell's probability may be off, as a logarithm
TAIL = 2.0**-49  # the probability of what that leaves out


@dataclass(frozen=True)
class Noise:
    """Noise of unit scale, and the scale that it is declared at. `add_to` is the one way to use it:
    noise that is added elsewhere would leave off the grid.

    Attributes:
        values: the draw, float64 of scale 1, in the shape of the total. Secret: who knows it knows
            the exact total.
        scale: the sd of a Gaussian, or the scale of a Laplace, in the total's unit.
        fineness: grid steps in a scale, at least: `FINENESS` for what is released, `COMPARED` for
            what is only compared.
    """

    values: Floats
    scale: float
    fineness: float = field(default=FINENESS, kw_only=True)

    def add_to(self, total: Any, values: Any = None) -> Any:
        """`total` with this noise, on the public grid.

        Args:
            total: a float64 NumPy array, or a tensor.
            values: for a tensor, the noise on the tensor's device; None for NumPy.

        Returns:
            Multiples of the grid's step, in the shape of `total`.
        """
        drawn = self.values if values is None else values
        return add_noise_on_grid(total, drawn, self.scale, self.fineness)


def grid(scale: float, fineness: float = FINENESS) -> float:
    """The public step: the largest power of two not above the noise's scale over `fineness`.

    A power of two, so that dividing by it is exact. It follows from declared figures alone, so it
    tells nothing of the data.

    Args:
        scale: of the noise, above 0: the sd of a Gaussian, or the scale of a Laplace.
        fineness: steps in a scale, at least.
    """
    return 2.0 ** math.floor(math.log2(scale / fineness))


def add_noise_on_grid(total: Any, noise: Any, scale: float, fineness: float = FINENESS) -> Any:
    """`total + scale * noise`, rounded to the grid of this scale.

    Guarantee: the release costs what the ideal mechanism costs, and `slack` beside it. An infinite
    total counts as the outermost cell, and one that is no number as 0: noise hides neither.

    Args:
        total: float64, a NumPy array or a tensor. A tensor stays on its device.
        noise: of unit scale, of the same shape and kind.
        scale: the sd of a Gaussian, or the scale of a Laplace.
        fineness: grid steps in a scale, at least.

    Returns:
        Multiples of `grid(scale, fineness)`, in the shape and kind of `total`, at most
        `LARGEST_CELL` steps from 0.
    """
    step = grid(scale, fineness)
    # Cutting off moves no two totals apart, and keeps an infinite one from becoming nan below.
    cells = (total / step).clip(-LARGEST_CELL, LARGEST_CELL)
    cells = cells.nan_to_num() if hasattr(cells, "nan_to_num") else np.nan_to_num(cells)
    whole = cells.round()
    return (whole + (cells - whole + noise * (scale / step)).round()).clip(
        -LARGEST_CELL, LARGEST_CELL
    ) * step


def slack(numbers: int) -> tuple[float, float]:
    """What float64 arithmetic adds to the guarantee, at most.

    Args:
        numbers: how many numbers were released.

    Returns:
        What is added to epsilon, and what is added to delta.
    """
    return 2 * numbers * RHO, 2 * numbers * TAIL
