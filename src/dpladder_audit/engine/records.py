"""Made-up records that tempt a clip, and units of them as a curator holds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpladder.config.label_sets import (
    ABSENT,
    MANY,
    NUMBER,
    PRESENT,
    STATES,
    TARGET_STEPS,
    UNKNOWN,
    Labels,
    number_of,
    number_of_findings,
)
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.privacy.accounting.events import Relation

Record = tuple[tuple[float, ...], int]  # features and label

CLASSES, N0 = 2, 50
ZERO_RECORD: Record = ((0.0, 0.0, 0.0), 0)
CANARIES: tuple[Record, ...] = (
    ZERO_RECORD,
    ((1e6, 0.0, 0.0), 0),
    ((-1e6, 0.0, 0.0), 0),  # the opposite: a replaced unit moves a sum twice as far
    ((-1e6, 1e6, 1e6), 1),
    ((1e6, -1e6, 1e6), 1),  # nearly the opposite, which a model may be as wrong about
    ((3e38, -3e38, 3e38), 1),
    ((1e-30, 0.0, 0.0), 0),
    ((1.0, 2.0, 3.0), -1),
    ((0.5, 0.5, 0.5), 7),
)
SEVERAL: tuple[Record, ...] = (
    ZERO_RECORD,
    *(
        ((pull, 0.0, 0.0), number_of(classes, 3))
        for pull in (1e6, -1e6)
        for classes in ((1,), (0, 2), (0, 1, 2))
    ),
)
"""Records of one, two and three classes out of 3."""
FINDINGS: tuple[Record, ...] = (
    ZERO_RECORD,
    *(
        ((pull, *[pull * across] * 2), number_of_findings(states))
        for pull in (1e6, -1e6)
        for across in (0.0, 1.0)
        for states in ((PRESENT, PRESENT), (PRESENT, ABSENT), (UNKNOWN, PRESENT))
    ),
    ((1.0, 2.0, 3.0), number_of_findings((UNKNOWN, UNKNOWN))),
    ((0.5, 0.5, 0.5), len(STATES) ** CLASSES),
)
"""Records of which two findings are known, one, none, and whose number is no record's."""
NUMBERS: tuple[Record, ...] = (
    ZERO_RECORD,
    *(
        ((pull, *[pull * across] * 2), number)
        for pull in (1e6, -1e6)
        for across in (0.0, 1.0)
        for number in (0, TARGET_STEPS)
    ),
    ((1.0, 2.0, 3.0), TARGET_STEPS // 3),
    ((0.5, 0.5, 0.5), TARGET_STEPS + 1),
)
"""Records at both ends of a target's range, between them, and whose number is no record's."""
GUIDES: tuple[Record, ...] = (((1.0, 2.0, 3.0), 0), ((0.5, -1.0, 0.0), 1), ((4.0, 0.0, 1.0), 1))
"""Public records, of which no neighbour has others."""


def canaries_of(labels: Labels) -> tuple[Record, ...]:
    """The records that tempt a clip, for labels of this kind. The first one contributes nothing."""
    if labels == MANY:
        return FINDINGS
    if labels == NUMBER:
        return NUMBERS
    return SEVERAL if labels > 1 else CANARIES


def constants_of(section: Any, relation: Relation = "add_remove", cap: int = 1) -> Constants:
    """Public sizes for a learner, by what its section says that it predicts.

    Args:
        section: of the learner's keys, or one with values.
        relation, cap: what neighbours are, and records of a unit.
    """
    classes, labels = (1, NUMBER) if not section.classes else (CLASSES, 1)
    width = len(ZERO_RECORD[0])
    return Constants(N0, classes, width, relation, cap=cap, labels=labels)


def data_of(
    units: Sequence[Record], views: int = 1, width: int = len(ZERO_RECORD[0]), cap: int = 1
) -> Data:
    """Units as a curator holds them.

    A unit's records are all alike, for nothing pulls a sum further; so are a record's views.
    Records' numbers come over and over where they have to be more.

    Args:
        units: a record for each.
        views: of each record.
        width: numbers of a record.
        cap: records of a unit.

    Returns:
        float32 features (units cap, width), or (units cap, views, width), with labels and units.
    """
    records = [record for record in units for _ in range(cap)]
    features = np.array([np.resize(record[0], width) for record in records], np.float32)
    features = features.reshape(len(records), width)
    if views > 1:
        features = np.repeat(features[:, None], views, axis=1)
    numbers = np.repeat(np.arange(len(units), dtype=np.uint64), cap)
    ids = np.stack([numbers, numbers], axis=1).view(np.uint8)
    return Data(features, np.array([record[1] for record in records], np.int64), ids)
