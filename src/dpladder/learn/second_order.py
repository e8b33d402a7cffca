"""What second-order learners declare: noised sums of gradients and of second moments, and how far a unit moves them.

A symmetric matrix is released by its coordinates in an orthonormal basis of the symmetric matrices: its diagonal, and
sqrt(2) times what lies above it. Their L2 norm is the matrix's Frobenius norm, so noise on the coordinates is the
Gaussian mechanism at the Frobenius sensitivity, and an entry and its mirror share one draw.
"""

from __future__ import annotations

import math

from dpladder.learn.interface import Constants, Declaration
from dpladder.privacy import gdp
from dpladder.privacy.meter import Draw
from dpladder.privacy.spend import Counted, Gaussian


def coordinates(dimension: int) -> int:
    """How many there are of a symmetric matrix."""
    return dimension * (dimension + 1) // 2


def moment_sensitivity(bound: float, constants: Constants) -> float:
    """How far a unit moves a sum, or a stack of sums, of positive semidefinite matrices of norm `bound` per record.

    Replaced, it takes one such matrix P away and adds another, Q. Their inner product is never negative, so
    |P - Q|^2 <= |P|^2 + |Q|^2: sqrt(2) times as far, where vectors may go twice as far.
    """
    return bound * constants.cap * math.sqrt(constants.doubling)


def vector_sensitivity(bound: float, constants: Constants) -> float:
    """How far a unit moves a sum of vectors of norm `bound` per record."""
    return bound * constants.cap * constants.doubling


def covariance_draw(sigma: float, radius: float, constants: Constants) -> Draw:
    """The noise on the sum of x x^T over records in a ball: |x x^T| = |x|^2."""
    scale = sigma * moment_sensitivity(radius**2, constants)
    return Draw("covariance", "gaussian", scale, (coordinates(constants.dimension),))


def declare_covariance(mu: float, radius: float, constants: Constants) -> Declaration:
    """A noised covariance released on its own."""
    sigma = gdp.sigma(mu, 1)
    return Declaration((Counted(Gaussian(sigma)),), (covariance_draw(sigma, radius, constants),))
