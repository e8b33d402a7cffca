"""How it is attacked: `dpladder audit --learner own.nearest_mean`."""

from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import sums
from own_methods.nearest_mean.section import NearestMean


def in_cell(cell: GridCell) -> Mechanism:
    """In one cell of the audit's grid: under its relation, with its cap."""
    return sums(NearestMean(), 1, cell)
