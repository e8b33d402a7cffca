"""The audit of kinds of queries, short: it passes what is shipped, and fails each curator that was
broken on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
from support import failed

from dpladder.learn import curator, linear, moments, queries
from dpladder.learn.curator import Curator
from dpladder.learn.queries import Query
from dpladder.privacy.accounting.events import Relation
from dpladder_audit import kinds
from dpladder_audit.engine import attack
from dpladder_audit.engine.attack import run_audit
from dpladder_audit.engine.findings import table
from dpladder_audit.engine.mechanism import Mechanism
from dpladder_audit.kinds import Attack, GridCell

KEY = b"a public key for audits in tests"
SLOW = ("class sums", "curvatures", "differences", "losses", "moments", "network", "perceptron")


@pytest.fixture(name="sharp")
def _sharp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hardly any noise is drawn: what moves sums is seen as sharply as ever."""
    monkeypatch.setattr(attack, "ROUNDS", 40)
    monkeypatch.setattr(attack, "RUNS", 1500)
    monkeypatch.setattr(attack, "FEW_RUNS", 100)


@pytest.mark.usefixtures("sharp")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] if name in SLOW else [pytest.mark.weaker])
        for name in kinds.ATTACKED
    ],
)
def test_every_kind_passes_a_short_audit(name: str, made: Any) -> None:
    report = run_audit(kinds.attacks(made, name), KEY, among=50)
    assert report.ok, table(report)


@pytest.mark.long
@pytest.mark.parametrize("name", kinds.ATTACKED)
def test_every_kind_passes(name: str, made: Any) -> None:
    assert not failed(run_audit(kinds.attacks(made, name), KEY))


def test_every_kind_of_query_is_attacked() -> None:
    """Those of counts, the mean and a search are attacked in their rules."""
    elsewhere = {"Cells", "UnitsByClass", "UnitMean", "OfModel", "Utilities"}
    attacked = {
        type(query).__name__
        for name in kinds.ATTACKS
        for mechanism in kinds.attacks(None, name)  # type: ignore[arg-type]
        for query in mechanism.run.queries  # type: ignore[attr-defined]
    }

    def below(kind: type[Query]) -> set[str]:
        of_dpladder = {kind.__name__} if kind.__module__.startswith("dpladder.") else set()
        return of_dpladder.union(*(below(one) for one in kind.__subclasses__())) - {"Query"}

    assert attacked == below(Query) - elsewhere


@pytest.mark.parametrize(
    ("name", "sampled", "views"),
    [
        ("gradients", True, True),
        ("losses", True, False),
        ("differences", False, False),
        ("class sums", False, False),
        ("moments", False, False),
        ("curvatures", False, False),
        ("perceptron", True, True),
        ("network", True, True),
    ],
)
def test_a_kind_is_attacked_in_every_cell_that_a_config_can_ask_for(
    name: str, sampled: bool, views: bool
) -> None:
    """Counted here anew, so that no relation, sample, cap or view can fall out."""
    grid = {
        GridCell(*each)
        for each in product(
            get_args(Relation), (False, True)[: 1 + sampled], (1, 2), (1, 2)[: 1 + views]
        )
    }
    first = kinds.ATTACKS[name][0]
    assert {*first.grid()} == grid


ADDED = GridCell("add_remove")


def of(name: str, note: str = "", cell: GridCell = ADDED) -> Mechanism:
    """One attack of a kind."""
    wanted = f"{name} {cell}{', ' * bool(note)}{note}"
    found: dict[str, Mechanism] = {
        one.name: one
        for one in kinds.attacks(None, name)  # type: ignore[arg-type]
    }
    return found[wanted]


SAMPLED, REPLACED = GridCell("add_remove", sampled=True), GridCell("replace_one", cap=2)
BOUND = "sensitivity over scale of noise"
DECLARED = "sensitivity over its declaration"
Broken = tuple[Any, str, Callable[[Any], Any], Callable[[], Mechanism], str]


def _noise(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same release with another noise on it."""
    return lambda honest: (
        lambda meter, query, total: total + change(honest(meter, query, total) - total)
    )


def _first_noise(honest: Any) -> Any:
    """The first noise again and again, while as much is drawn as was declared."""
    first: dict[int, Any] = {}
    return lambda meter, query, total: (
        total + first.setdefault(id(meter), honest(meter, query, total) - total)
    )


def _own_noise() -> Callable[[Any], Any]:
    random = np.random.default_rng(0)
    return _noise(lambda noise: noise + float(random.normal()))


BROKEN: dict[str, Broken] = {
    "half the noise": (
        curator,
        "_publish_sum",
        _noise(lambda noise: noise / 2),
        lambda: of("gradients", "one step"),
        "scale of noise over its claim",
    ),
    "one noise vector for all classes": (
        curator,
        "_publish_sum",
        _noise(lambda noise: noise[:1].expand_as(noise)),
        lambda: of("gradients", "one step"),
        "largest correlation of noise",
    ),
    "one noise vector for all steps": (
        curator,
        "_publish_sum",
        _first_noise,
        lambda: of("gradients"),
        "largest correlation of noise",
    ),
    "one noise for all classes' moments": (
        curator,
        "_publish_sum",
        _first_noise,
        lambda: of("moments", "class by class"),
        "largest correlation of noise",
    ),
    "noise of its own": (
        curator,
        "_publish_sum",
        lambda honest: _own_noise()(honest),
        lambda: of("gradients", "one step"),
        "randomness outside the meter",
    ),
    "a forgotten clip": (
        linear,
        "clipped_sum",
        lambda honest: (
            lambda records, w, bound, *rest, **others: honest(records, w, 1e9, *rest, **others)
        ),
        lambda: of("gradients", "one step"),
        BOUND,
    ),
    "a sample that everybody is in": (
        curator,
        "_rows",
        lambda honest: lambda records, mask: honest(records, None),
        lambda: of("gradients", cell=SAMPLED),
        "rows outside a sample",
    ),
    "losses that are not cut": (
        curator,
        "SLACK",
        lambda _: -1e6,
        lambda: of("losses", "far", GridCell("replace_one")),
        BOUND,
    ),
    "differences that are not cut": (
        curator,
        "SLACK",
        lambda _: -1e6,
        lambda: of("differences"),
        BOUND,
    ),
    "a record of k classes that counts wholly in each": (
        moments,
        "rows_of_class",
        lambda honest: (
            lambda records, labels, label: (
                honest(records, labels, label)[0],
                0 * honest(records, labels, label)[1] + 1,
            )
        ),
        lambda: of("moments", "up to 3 classes"),
        BOUND,
    ),
    "records outside the ball": (
        moments,
        "scale_into_ball",
        lambda honest: lambda records, rows, radius: honest(records, rows, 2 * radius),
        lambda: of("moments"),
        BOUND,
    ),
    "entries off the diagonal that stand twice": (
        moments,
        "to_coordinates",
        lambda honest: lambda matrix: honest(matrix) * 2**0.5,
        lambda: of("moments"),
        BOUND,
    ),
    "opposite contributions that count as apart": (
        queries.REPLACED,
        "opposite",
        lambda _: 2**0.5,
        lambda: of("gradients", "one step", REPLACED),
        BOUND,
    ),
    "moments that move as counts do": (
        queries.REPLACED,
        "apart",
        lambda _: 1.0,
        lambda: of("moments", cell=REPLACED),
        BOUND,
    ),
    "a curvature off by the root of the classes": (
        queries.Curvatures,
        "bound",
        lambda honest: lambda query, c: honest(query, c) / c.classes**0.5,
        lambda: of("curvatures", "curvatures, softmax"),
        BOUND,
    ),
    "one sigmoid's curvature off by the root of the classes": (
        queries.Curvatures,
        "bound",
        lambda honest: lambda query, c: honest(query, c) / c.classes**0.5,
        lambda: of("curvatures", "curvatures, sigmoid"),
        BOUND,
    ),
    "a residual that is taken for one of a single class": (
        queries.ResidualSum,
        "bound",
        lambda honest: lambda query, c: honest(query, c) / 2**0.5,
        lambda: of("curvatures", "residuals, softmax"),
        BOUND,
    ),
    "sigmoids' residuals off by the root of the classes": (
        queries.ResidualSum,
        "bound",
        lambda honest: lambda query, c: honest(query, c) / c.classes**0.5,
        lambda: of("curvatures", "residuals, sigmoid"),
        BOUND,
    ),
    "residuals that count as apart": (
        queries.ResidualSum,
        "law",
        lambda _: "apart",
        lambda: of("curvatures", "residuals, softmax", REPLACED),
        BOUND,
    ),
    "a plug-in's function of a record that counts as apart": (
        queries.RecordSum,
        "law",
        lambda _: "apart",
        lambda: of("any function", cell=REPLACED),
        BOUND,
    ),
    "a plug-in's weights that are not cut": (
        moments,
        "sums_weighed_per_record",
        lambda honest: (
            lambda records, radius, each, constant: honest(records, radius, each, constant) * 3.0
        ),
        lambda: of("class sums", "weights of a plug-in's"),
        BOUND,
    ),
}


@pytest.mark.ci
@pytest.mark.usefixtures("sharp")
@pytest.mark.parametrize("bug", BROKEN)
def test_a_curator_that_is_broken_on_purpose_is_caught(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, name, change, make, check = BROKEN[bug]
    if isinstance(room, dict):
        monkeypatch.setitem(room, name, change(room[name]))
    else:
        monkeypatch.setattr(room, name, change(getattr(room, name)))
    assert check in failed(run_audit([make()], KEY, among=50))


@pytest.mark.ci
def test_losses_that_move_in_a_sample_as_on_a_full_batch_are_caught_by_what_is_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Charge and draw share this mistake: only the likelihood of what is really released tells."""
    monkeypatch.setattr(attack, "ROUNDS", 40)
    cell = GridCell("replace_one", sampled=True)
    assert not failed(run_audit([of("losses", "far", cell)], KEY))
    honest = Query.sensitivity
    monkeypatch.setattr(
        queries.LossSums,
        "sensitivity",
        lambda query, c: honest(replace(query, sampling_rate=1.0), c),
    )
    report = run_audit([of("losses", "far", cell)], KEY)
    [bound] = [finding for finding in report.findings if finding.check == "lower bound on epsilon"]
    assert bound.measured > bound.claimed + 1.0


@pytest.mark.ci
def test_trainings_of_one_pass_are_answered_as_each_alone() -> None:
    from dpladder.privacy.release.meter import Meter
    from dpladder.privacy.release.noise import SecretNoise

    for mechanism in (of("gradients"), of("losses"), of("differences")):

        def meters(draws: Any = mechanism.draws) -> list[Meter]:
            return [Meter(draws, SecretNoise(KEY, "query", str(run))) for run in range(3)]

        for data in mechanism.neighbours[2]:
            together = mechanism.run.many(data, meters())  # type: ignore[attr-defined]
            alone = [mechanism.run(data, meter) for meter in meters()]
            assert np.allclose(together, alone, rtol=1e-6, atol=1e-9)


def test_what_was_not_declared_is_not_answered(made: Any) -> None:
    del made
    from support import Seeded

    from dpladder.config.model import Resources
    from dpladder.errors import Refused
    from dpladder.learn.interface import Constants
    from dpladder.learn.queries import SecondMoments, declared
    from dpladder.privacy.release.meter import Meter
    from dpladder_audit.engine.records import ZERO_RECORD, data_of

    constants = Constants(9, 2, 3)
    honest = SecondMoments(name="sums", multiplier=1.0, radius=1.0)
    wider = replace(honest, radius=5.0)
    meter = Meter(declared([honest], constants).draws, Seeded())
    about = Curator(data_of([ZERO_RECORD]), constants, Resources(threads=1))

    def asks_another(given: Any, own: Any) -> Any:
        return (yield wider.at())

    with pytest.raises(Refused, match="what it did not declare"):
        about.run(asks_another, [(honest,)], [meter])
    with pytest.raises(Refused, match="is not what was declared"):
        about.ask(wider.at(), meter)


def test_a_query_that_is_asked_again_sees_another_sample() -> None:
    """So that no two answers of one query share one, whatever a method asks first."""
    from support import Silent

    from dpladder.config.model import Resources
    from dpladder.learn.interface import Constants
    from dpladder.learn.queries import GradientSum, LinearHead, LossSums
    from dpladder_audit.engine.records import CANARIES, data_of

    drawn: list[str] = []

    class Counting(Silent):  # type: ignore[misc]
        def mask(self, name: str, ids: Any) -> Any:
            drawn.append(name)
            return super().mask(name, ids)

    constants, head = Constants(9, 2, 3), LinearHead()
    rate = {"multiplier": 1.0, "sampling_rate": 0.5, "model": head}
    gradient = GradientSum(name="noise", count=3, **rate)  # type: ignore[arg-type]
    losses = LossSums(name="losses", count=2, **rate)  # type: ignore[arg-type]

    def method(given: Any, own: Any) -> Any:
        import torch

        weights, most = given.zeros(2, 3), torch.ones(()).double()
        for query in (gradient, losses, gradient, gradient, losses):
            arguments = (weights,) if query is gradient else (weights[None], most)
            yield query.at(*arguments)
        return len(drawn)

    about = Curator(data_of(CANARIES), constants, Resources(threads=1))
    meter: Any = Counting()
    assert about.run(method, [(gradient, losses)], [meter]) == [3]


def test_attacks_name_themselves_apart() -> None:
    names = [
        one.name
        for name in kinds.ATTACKS
        for one in kinds.attacks(None, name)  # type: ignore[arg-type]
    ]
    assert len(names) == len(set(names))
    assert isinstance(kinds.ATTACKS["gradients"][0], Attack)
