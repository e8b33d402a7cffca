"""The learners, as `dpladder audit` looks at them: each by its blind check, and those of other
packages by attacks on what they ask too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from dpladder.audit.engine.findings import LeftOut
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.records import constants_of
from dpladder.audit.kinds import Asking, GridCell
from dpladder.audit.scene import SceneFolder
from dpladder.config.learners import METHODS, method
from dpladder.learn.interface import Hyper
from dpladder.privacy.accounting.events import Relation

ATTACKED = METHODS


def attacks(_: SceneFolder, name: str) -> tuple[Mechanism, ...]:
    """On the very queries of a plug-in. Those of dpladder's own are attacked as kinds."""
    return tuple(default_queries(name)) if not method(name).built_in else ()


def default_queries(name: str) -> Iterator[Mechanism]:
    """What a learner asks by default, under both relations and with both caps."""
    learner = method(name).section(name=name)
    for relation in get_args(Relation):
        for cap in (1, 2):
            constants = constants_of(learner, relation, cap)
            queries = method(name).queries(learner, Hyper(0.5, 2, 2.0, 1e-7), constants)
            yield Asking(queries, constants).mechanism(f"{name} {GridCell(relation, cap=cap)}")


def skipped_combinations(_: str) -> tuple[LeftOut, ...]:
    """None: a plug-in is attacked under both relations and both caps."""
    return ()
