"""A job looks its reservation up, and runs no other code than that which the reservation was made
for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dpladder.errors import Refused
from dpladder.jobs.release import release_once
from dpladder.jobs.reservation import find_reservation, ledger_of
from dpladder.jobs.run_trial import _prepare_trial, _produce
from dpladder.jobs.task import read_json
from dpladder.jobs.train_final import release_of
from dpladder.plan import follows, package
from dpladder.privacy.ledger import anchors, book
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.state import Item
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.release.noise import DerivedNoise
from dpladder.privacy.release.store import Work
from dpladder_audit.scene import LINEAGE, SceneFolder, Units, job_environment, scene_folder

UNITS: Units = tuple((((1.0, 0.5, place / 20), place % 2),) for place in range(20))


@pytest.fixture
def made():
    with scene_folder(b"the key of tests of a reservation"[:32]) as found:
        yield found


def test_a_job_that_spends_runs_only_the_code_that_was_planned(
    made: SceneFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = made.scene()
    task = scene.task("train_final", {"target": f"{scene.project.main.privacy.epsilon:g}"}, UNITS)
    with job_environment(scene.folder, scene.home):
        with monkeypatch.context() as edited:
            edited.setattr(package, "digest", lambda: "of files edited since")
            with pytest.raises(Refused, match="code changed after the workflow was started"):
                release_once(release_of(task))
        state = book.load(Ledger(scene.home, LINEAGE))
        assert {held.status for held in state.charges.values()} == {"RESERVED"}
        release_once(release_of(task))
        assert anchors.read(Path(follows.RESULTS)) == [book.head(Ledger(scene.home, LINEAGE))]


def test_a_reservation_for_other_code_is_made_anew(made: SceneFolder) -> None:
    scene = made.scene()
    ledger = Ledger(scene.home, LINEAGE)
    before = next(iter(book.load(ledger).charges.values()))
    item = Item(before.job, before.question, before.declared, "of files that were edited")
    (after,) = book.reserve(ledger, [item])
    assert (after.token == before.token, after.code) == (False, item.code)
    assert ledger.state.charges[before.token].status == "REFUNDED"


def test_a_reservation_that_another_run_gave_back_is_told_as_that(made: SceneFolder) -> None:
    """Two teams in one home, each with an experiment of this name: no mount is to blame."""
    scene = made.scene()
    task = scene.task("train_final", {"target": f"{scene.project.main.privacy.epsilon:g}"}, UNITS)
    with job_environment(scene.folder, scene.home):
        ledger = Ledger(scene.home, LINEAGE)
        book.refund(ledger, [*book.load(ledger).charges])
        with pytest.raises(Refused, match="gave its reservation back") as refused:
            release_once(release_of(task))
    assert "experiments names of their own" in str(refused.value)
    assert "mounted" not in str(refused.value)


def test_a_job_in_a_home_put_back_in_time_spends_nothing(made: SceneFolder) -> None:
    scene = made.scene()
    task = scene.task("train_final", {"target": f"{scene.project.main.privacy.epsilon:g}"}, UNITS)
    results, ledger = Path(follows.RESULTS), Ledger(scene.home, LINEAGE)
    with job_environment(scene.folder, scene.home):
        at = book.head(ledger)
        anchors.save_anchors(results, [replace(at, lineage="another", seq=9)])
        assert find_reservation(task).spends  # another lineage's ledger is nothing to this job
        anchors.save_anchors(results, [replace(at, seq=at.seq + 1)])
        with pytest.raises(Refused, match="Nothing was spent"):
            release_once(release_of(task))
        assert book.head(ledger) == at


def test_a_job_on_a_release_that_was_edited_spends_nothing(made: SceneFolder) -> None:
    scene = made.scene()
    task = scene.task("train_final", {"target": f"{scene.project.main.privacy.epsilon:g}"}, UNITS)
    edited = scene.folder / "sums.npz"
    edited.write_bytes(b"not what was released")
    with job_environment(scene.folder, scene.home):
        task.input["sums"] = str(edited)
        with pytest.raises(Refused, match="is not what was released under lineage"):
            find_reservation(task)


def test_trials_scored_on_other_public_records_ask_another_query(made: SceneFolder) -> None:
    """Their file may be another one without an edit: an old score would answer for it."""
    public = {"dataset": {"public_validation": f"npz:{made.folder}/public.npz"}}
    rungs = {"sweep": {"select": {"by": "public"}, "rungs": [{"epsilon": 0.5, "trials": 1}]}}
    scene = made.scene(public, rungs)
    task = scene.task("run_trial", {"rung": "0", "trial": "0"}, UNITS)
    with job_environment(scene.folder, scene.home):
        first = _prepare_trial(task, ledger_of(task))
        elsewhere = replace(first.scored.part, name="of other records")
        other = replace(first, scored=replace(first.scored, part=elsewhere))
        queries = {one.question()[0].query for one in (first, other)}
    assert len(queries) == 2


def test_a_trial_beside_restored_ones_is_not_one_of_those_once_more(made: SceneFolder) -> None:
    scene = made.scene({"sweep": {"rungs": [{"epsilon": 4.0, "trials": 3}]}})
    tasks = [scene.task("run_trial", {"rung": "0", "trial": f"{of}"}, UNITS) for of in range(3)]
    with job_environment(scene.folder, scene.home):
        trials = [_prepare_trial(task, ledger_of(task)) for task in tasks]
        meter = Meter(trials[2].question()[0].draws, DerivedNoise(b"key" * 10 + b"of"))
        _produce(trials, [Work(tasks[2].job, meter, scene.folder)])
    assert read_json(scene.folder / "score.json")["trial"]["trial"] == 2
