"""The learners' audits, short: as sharp as ever in what makes no noise, sensitivities and
refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dpladder.audit import learners as audits
from dpladder.audit.engine import attack
from dpladder.audit.engine.attack import run_audit
from dpladder.audit.engine.findings import table
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import clipped_losses, right_answers, shares_of_findings
from dpladder.audit.methods import dp_gd
from dpladder.learn.registry import LEARNERS
from dpladder.privacy.accounting.draws import Draw
from dpladder.privacy.accounting.events import Relation
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.release.noise import SecretNoise

KEY = b"a public key for audits in tests"
# Whole networks: too slow for an audit at full strength, which all others pass in
# tests/statistical.
BRIEF = ("dp_finetune", "hyfree_finetune", "prodigy_finetune")


@pytest.fixture(name="short")
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attack, "ROUNDS", 40)
    monkeypatch.setattr(attack, "RUNS", 1500)
    monkeypatch.setattr(attack, "FEW_RUNS", 100)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("of_shares", [clipped_losses, right_answers, shares_of_findings])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_shares_pass_a_short_audit(
    relation: Relation, of_shares: Callable[[Relation], Mechanism]
) -> None:
    report = run_audit([of_shares(relation)], KEY, among=50)
    assert report.ok, table(report)


@pytest.mark.weaker
@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in BRIEF])
def test_every_learner_passes_a_short_audit_at_both_ends_of_its_grid(name: str) -> None:
    """One record to a unit and one view of it, and as many of both as the grid has."""
    cells = {one.cell: one for one in audits.in_cells(name) if one.cell}
    most = max(cell.views for cell in cells)
    ends = [one for cell, one in cells.items() if (cell.cap, cell.views) in ((1, 1), (2, most))]
    report = run_audit(ends, KEY, among=50)
    assert report.ok, table(report)


@pytest.mark.long
@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_passes_a_short_audit(name: str) -> None:
    report = run_audit(audits.mechanisms(name), KEY, among=50)
    assert report.ok, table(report)


@pytest.mark.ci
@pytest.mark.usefixtures("short")
def test_what_guides_a_descent_passes_a_short_audit() -> None:
    found = [one for one in dp_gd.others() if "guided" in one.name or "look" in one.name]
    assert len(found) == 4
    report = run_audit(found, KEY, among=50)
    assert report.ok, table(report)


@pytest.mark.few(1)
@pytest.mark.ci
@pytest.mark.parametrize("name", BRIEF)
def test_a_whole_network_passes_a_brief_audit_in_every_cell(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hardly any noise is drawn: what moves sums is seen as sharply as ever."""
    monkeypatch.setattr(attack, "ROUNDS", 30)
    monkeypatch.setattr(attack, "FEW_RUNS", 20)
    cells = [replace(one, effort=0.2) for one in audits.in_cells(name)]
    report = run_audit(cells, KEY, among=50)
    assert report.ok, table(report)


@pytest.mark.ci
@pytest.mark.parametrize("name", ["dp_gd", "dp_adam", "dp_prodigy", "one_step"])
def test_trainings_of_one_pass_release_what_each_releases_alone(name: str) -> None:
    together_too = [one for one in audits.mechanisms(name) if hasattr(one.run, "many")]
    assert together_too
    for mechanism in together_too:

        def meters(draws: tuple[Draw, ...] = mechanism.draws) -> list[Meter]:
            return [Meter(draws, SecretNoise(KEY, "query", str(run))) for run in range(3)]

        for data in mechanism.neighbours[2]:
            together = mechanism.run.many(data, meters())
            alone = [mechanism.run(data, meter) for meter in meters()]
            for one, other in zip(together, alone, strict=True):
                assert np.allclose(one.ravel(), other, rtol=1e-6, atol=1e-9)
