"""Each kind of query moves by no other figure than its docstring says."""

from __future__ import annotations

import math

import pytest

from dpladder.learn.interface import Constants
from dpladder.learn.queries import (
    Cells,
    Curvatures,
    GradientSum,
    LinearHead,
    LossDifference,
    LossSums,
    Query,
    RecordSum,
    ResidualSum,
    RightCount,
    SecondMoments,
    UnitMean,
    UnitsByClass,
    WeighedSums,
)

HEAD, ROOT2, CAP, CLIP, RADIUS = LinearHead(), math.sqrt(2.0), 3, 0.7, 0.5
THIRDS = 3**0.5 * (1 / 3) * (2 / 3)  # |p (1 - p)| at three equal probabilities, softmax's largest
NAMED = {"name": "query", "multiplier": 1.0}
ADDED: list[tuple[Query, float, float]] = [  # a query, one unit more or less, one unit replaced
    (GradientSum(**NAMED, model=HEAD, clip=CLIP), CLIP, 2 * CLIP),
    (LossSums(**NAMED, model=HEAD, points=4), 2 * CAP, 2 * CAP),
    (LossSums(**NAMED, model=HEAD, points=4, sampling_rate=0.5), 2 * CAP, 4 * CAP),
    (LossDifference(**NAMED, model=HEAD, clip=CLIP), CLIP, 2 * CLIP),
    (WeighedSums(**NAMED, radius=RADIUS), CAP * RADIUS, 2 * CAP * RADIUS),
    (
        WeighedSums(**NAMED, radius=RADIUS, by="number", constant=1.0),
        ROOT2 * CAP * RADIUS,
        2 * ROOT2 * 1.5,
    ),
    (SecondMoments(**NAMED, radius=RADIUS), CAP * RADIUS**2, ROOT2 * CAP * RADIUS**2),
    (
        SecondMoments(**NAMED, radius=RADIUS, constant=0.5),
        *(1.25 * CAP * RADIUS**2 * law for law in (1, ROOT2)),
    ),
    (ResidualSum(**NAMED, radius=RADIUS), ROOT2 * CAP * RADIUS, 2 * ROOT2 * CAP * RADIUS),
    (ResidualSum(**NAMED, radius=RADIUS, link="sigmoid"), 2 * CAP * RADIUS, 4 * CAP * RADIUS),
    (Curvatures(**NAMED, radius=RADIUS), *(CAP * THIRDS * RADIUS**2 * law for law in (1, ROOT2))),
    (
        Curvatures(**NAMED, radius=RADIUS, link="sigmoid"),
        *(CAP * 2 / 4 * RADIUS**2 * law for law in (1, ROOT2)),
    ),
    (RightCount(**NAMED), CAP, CAP),
    (Cells(**NAMED, cells=(2,), each=4), 2 * CAP, 2 * ROOT2 * CAP),
    (UnitsByClass(**NAMED, classes=4), ROOT2 * CAP, ROOT2 * CAP),
    (UnitMean(**NAMED, radius=RADIUS, width=3), RADIUS, 2 * RADIUS),
    (RecordSum(**NAMED, of=abs, of_shape=(), clip=CLIP), CLIP, 2 * CLIP),
]


@pytest.mark.parametrize(
    ("query", "added", "replaced"), ADDED, ids=[type(query).__name__ for query, *_ in ADDED]
)
def test_a_unit_moves_an_answer_as_far_as_the_docstring_says(
    query: Query, added: float, replaced: float
) -> None:
    for relation, wanted in (("add_remove", added), ("replace_one", replaced)):
        constants = Constants(100, 4, 3, relation, cap=CAP)
        together = query.sensitivity(constants) * math.sqrt(query.numbers)
        assert together == pytest.approx(wanted)
