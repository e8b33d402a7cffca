"""The learners, and the mechanisms that need none, as `dpladder audit` attacks them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, get_args

from dpladder.audit.engine.built_in import built_in
from dpladder.audit.engine.cells import GridCell, LeftOut, grid
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import (
    clipped_losses,
    right_and_wrong,
    right_answers,
    shared_covariance,
    shares_of_findings,
)
from dpladder.audit.scene import SceneFolder
from dpladder.config.learner_sections import OTHERS, section_of
from dpladder.errors import BadInput
from dpladder.learn.registry import LEARNERS
from dpladder.privacy.accounting.events import Relation

BUILT_IN = "built in"
ATTACKED = (BUILT_IN, *LEARNERS)


def attacks(_: SceneFolder, name: str) -> tuple[Mechanism, ...]:
    return shared() if name == BUILT_IN else mechanisms(name)


def shared() -> tuple[Mechanism, ...]:
    """What no learner alone has."""
    shares = (
        of_shares(relation)
        for of_shares in (clipped_losses, right_answers, shares_of_findings)
        for relation in get_args(Relation)
    )
    return (*built_in(), right_and_wrong(), *shares, shared_covariance())


def mechanisms(name: str) -> tuple[Mechanism, ...]:
    """Return how a learner is attacked: in all cells of the grid that a config can ask for, and
    besides."""
    room = _room(name)
    return (*in_cells(name), *(room.others() if hasattr(room, "others") else ()))


def in_cells(name: str) -> tuple[Mechanism, ...]:
    """Return the attack in each cell that a config can ask for. One that runs another cell than it
    should is an error."""
    room = _room(name)
    wanted = [cell for cell in grid(name) if not why_not(cell)]
    found = tuple(room.in_cell(cell) for cell in wanted)
    for cell, mechanism in zip(wanted, found, strict=True):
        if mechanism.cell != cell:
            raise BadInput(
                f"the attack on {cell} runs {mechanism.cell}. Mend in_cell in {room.__name__}."
            )
    return found


def _room(name: str) -> Any:
    other = OTHERS.get(name)
    module = f"{other.room}.audit" if other else f"dpladder.audit.methods.{name}"
    try:
        room = import_module(module)
    except ModuleNotFoundError as error:
        if not module.startswith(str(error.name)):
            raise
        room = None
    if not hasattr(room, "in_cell"):
        raise BadInput(
            f"learner {name} has no audit. It needs a module {module} whose in_cell(cell) attacks "
            "it in a cell of the grid."
        )
    return room


def left_out(name: str) -> tuple[LeftOut, ...]:
    """Return the cells of a learner that no config can ask for."""
    if name == BUILT_IN:
        return ()
    return tuple(LeftOut(str(cell), why) for cell in grid(name) if (why := why_not(cell)))


def why_not(cell: GridCell) -> str:
    """Return why no config can ask for a cell; nothing where one can."""
    known = section_of(cell.learner).model_fields
    if cell.sampled and "sampling_rate" not in known:
        return f"{cell.learner} on samples: it has no learner.sampling_rate, and sees everybody"
    if cell.views > 1 and "augment" not in known:
        return f"{cell.learner} with views: it has no learner.augment, and sees each record once"
    return ""
