"""A run's end: what is said there, and the hook that a config may have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import Workspace

from dpladder.config.load import load
from dpladder.plan.dag import build_dag
from dpladder.plan.ending import conclude, logs
from dpladder.plan.plan import make_plan
from dpladder.plan.resolve import resolve_defaults
from dpladder.plan.startup import Parsed, known_states

FAILED = "train_final (target 1.0): ValueError: no such bound"


def end_run(finished: Workspace, hook: str, failed: bool = False, reason: str = "") -> None:
    finished.configure({"on_end": hook})
    project = resolve_defaults(load(["config.yaml"]))
    dag = build_dag(project)
    before = logs()
    Path("logs/train_final.log").write_text(f"begun\n{reason}\n", "utf-8")
    conclude(Parsed(dag, make_plan(dag, known_states(project)), {}), before, failed)


@pytest.mark.parametrize("failed", [False, True])
def test_a_hook_is_told_the_outcome_and_the_lines_that_a_run_ends_with(
    finished: Workspace, capfd: pytest.CaptureFixture[str], failed: bool
) -> None:
    end_run(finished, "cat > told.json", failed, FAILED if failed else "")
    told = json.loads(Path("told.json").read_text("utf-8"))
    assert told["outcome"] == ("failed" if failed else "succeeded")
    assert told["text"].splitlines() == capfd.readouterr().err.splitlines()
    assert FAILED in told["text"] if failed else "epsilon = 1.0000 of the limit" in told["text"]


@pytest.mark.ci
def test_a_real_run_calls_its_hook_and_asks_nothing_anew(finished: Workspace) -> None:
    before = finished.held()
    finished.configure({"on_end": "cat > told.json; exit 3"})
    Path("results/report.html").unlink()
    ended = finished.finish()
    assert json.loads(Path("told.json").read_text("utf-8"))["outcome"] == "succeeded"
    assert "on_end ended with 3" in ended.stderr
    assert finished.held() == before


@pytest.mark.ci
def test_a_real_run_that_fails_calls_its_hook(finished: Workspace) -> None:
    finished.configure({"on_end": "cat > told.json"})
    next(Path("results/main").rglob("fit.json")).write_text("{}", "utf-8")
    Path("results/report.html").unlink()
    ended = finished.run()
    assert ended.returncode != 0
    told = json.loads(Path("told.json").read_text("utf-8"))
    assert told["outcome"] == "failed"
    assert "dpladder: " in told["text"]
