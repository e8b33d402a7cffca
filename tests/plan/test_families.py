"""What was tuned by hand counts against the family that tuned it, whatever names its experiment
had: on ledgers that are filled without running a job."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import Workspace, commit, enter

from dpladder.jobs.compose_privacy import PACKAGES
from dpladder.plan import startup
from dpladder.plan.kept import assign
from dpladder.plan.plan import artifact_cost, make_plan
from dpladder.plan.startup import Parsed
from dpladder.plan.table import plan_document
from dpladder.privacy.ledger.book import Ledger, finish, head, load
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.statement.build import build
from dpladder.privacy.statement.documents import Origin
from dpladder.privacy.statement.records import record_of

LINEAGE = "tiny"
CHEAP = {
    "privacy": {"epsilon": 9.0, "lifetime": {"epsilon": 99.0}},
    "sweep": {"rungs": [{"epsilon": 0.1, "trials": 1}]},
    "final": {"budget": 0.3},
    "evaluate": {"epsilon": 0.2},
}
JOBS = 3  # of each version: a trial, a training, its test


class Tuned:
    """A project whose experiments differ by their clips."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def run(self, *respend: str, **clips: float) -> dict[str, int]:
        """How many versions each experiment bears beside its own, by the plan and the statement,
        once all that is due was released."""
        told = {name: {"learner": {"clip": clip}} for name, clip in clips.items()}
        self.workspace.configure(CHEAP, {"experiments": told, "respend": [*respend]})
        before = self._parsed()
        startup.reserve(
            before,
            [
                (job.rule, dict(job.wildcards) | {"experiment": job.experiment})
                for job in before.plan.items
                if job not in self.answered
            ],
            "local",
        )
        ledger = Ledger(open_home(), LINEAGE)
        for held in load(ledger).items.values():
            if held.status == "RESERVED":
                commit(ledger, held.token, held.token, held.spends)
                finish(ledger, held.token, "0" * 64)
        return self._looks(ledger)

    def _parsed(self) -> Parsed:
        project = startup.opened(["config.yaml"])
        project, states = assign(project, startup.known_states(project))
        plan = make_plan(project, states)
        document = plan_document(plan, states, project)
        startup.refuse_new(plan, states, project)
        assert document.feasible, document.problems
        self.answered = {
            job: held
            for state in states.values()
            for job, held in state.by_name()
            if held.used and job in plan.items and held.static == plan.items[job].static
        }
        return Parsed(project, plan, document)

    def _looks(self, ledger: Ledger) -> dict[str, int]:
        parsed = self._parsed()
        assert self.answered.keys() == parsed.plan.items.keys()
        records = {
            f"{job}": record_of(
                job.rule,
                dict(job.wildcards) | {"experiment": job.experiment},
                held.spends,
                held.static,
            )
            for job, held in self.answered.items()
        }
        origin = Origin("2026-11-25", "0" * 40, dict.fromkeys(PACKAGES, "1"))
        states, anchors = {LINEAGE: load(ledger)}, [head(ledger)]
        stated = build(parsed.document, records, {}, states, anchors, origin, {})
        models = stated.datasets[LINEAGE].artifacts
        for artifact in parsed.plan.artifacts:
            planned = artifact_cost(parsed.plan, artifact).epsilon
            assert models[artifact.path].epsilon == pytest.approx(planned)
        return {
            artifact.experiment: len(artifact.earlier) // JOBS for artifact in parsed.plan.artifacts
        }


@pytest.fixture
def tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tuned:
    workspace = Workspace(tmp_path, tmp_path / "home")
    workspace.create()
    enter(workspace, monkeypatch)
    return Tuned(workspace)


def test_a_look_counts_also_where_it_gets_a_name_of_its_own(tuned: Tuned) -> None:
    tuned.run(a=0.5)
    assert tuned.run("a", a=0.25) == {"main": 0, "a": 1}
    assert tuned.run(a=0.25, b=0.5) == {"main": 0, "a": 1, "b": 0}
    assert tuned.run("b", a=0.25, b=0.1) == {"main": 0, "a": 1, "b": 2}
    assert tuned.run(a=0.25) == {"main": 0, "a": 1}


def test_a_look_counts_under_a_name_that_another_one_had(tuned: Tuned) -> None:
    """First a goes on as b, then c as a, and as b in the end."""
    tuned.run(a=0.5, c=0.6)
    tuned.run(b=0.5, c=0.6)
    tuned.run(b=0.5, a=0.6)
    assert tuned.run("a", b=0.5, a=0.7) == {"main": 0, "b": 0, "a": 1}
    tuned.run(d=0.5, a=0.7)
    tuned.run(d=0.5, b=0.7)
    assert tuned.run("b", d=0.5, b=0.8) == {"main": 0, "d": 0, "b": 2}


def test_a_look_counts_that_was_undone_under_another_name(tuned: Tuned) -> None:
    tuned.run(a=0.5)
    tuned.run(b=0.5)
    tuned.run("b", b=0.25)
    tuned.run(b=0.5)
    tuned.run(a=0.5)
    assert tuned.run("a", a=0.1) == {"main": 0, "a": 2}


def test_who_gets_a_name_begins_a_family(tuned: Tuned) -> None:
    """Neither bears what the other one is, whatever becomes of that."""
    tuned.run(a=0.5)
    assert tuned.run("a", b=0.5, a=0.25) == {"main": 0, "b": 0, "a": 0}
    assert tuned.run(a=0.25) == {"main": 0, "a": 0}
    assert tuned.run("b", b=0.1, a=0.25) == {"main": 0, "b": 1, "a": 0}
    assert tuned.run("a", b=0.1, a=0.75) == {"main": 0, "b": 1, "a": 1}


def test_who_swaps_names_bears_what_it_tuned_itself(tuned: Tuned) -> None:
    tuned.run(a=0.5, b=0.6)
    tuned.run("a", a=0.25, b=0.6)
    tuned.run(b=0.25, a=0.6)
    assert tuned.run("a", b=0.25, a=0.7) == {"main": 0, "b": 1, "a": 1}
    assert tuned.run("b", b=0.1, a=0.7) == {"main": 0, "b": 2, "a": 1}
