"""What second-order learners declare: noised sums of gradients and of second moments, and how far a
unit moves them.

A symmetric matrix is released by its coordinates in an orthonormal basis of the symmetric matrices:
its diagonal, and sqrt(2) times what lies above it. Their L2 norm is the matrix's Frobenius norm, so
noise on the coordinates is the Gaussian mechanism at the Frobenius sensitivity, and an entry and
its mirror share one draw.
"""

from __future__ import annotations

from dpladder.learn.interface import Constants, Declaration
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import Draw, gaussian
from dpladder.privacy.accounting.events import Counted, Gaussian


def coordinates(dimension: int) -> int:
    """How many there are of a symmetric matrix."""
    return dimension * (dimension + 1) // 2


def covariance_draw(sigma: float, radius: float, constants: Constants) -> Draw:
    """The noise on the sum of x x^T over records in a ball: |x x^T| = |x|^2."""
    moves = constants.moves_apart(radius**2)
    return gaussian("covariance", sigma, moves, (coordinates(constants.dimension),))


def declare_covariance(mu: float, radius: float, constants: Constants) -> Declaration:
    """A noised covariance released on its own."""
    sigma = gdp.sigma(mu, 1)
    return Declaration((Counted(Gaussian(sigma)),), (covariance_draw(sigma, radius, constants),))
