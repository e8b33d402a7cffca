"""Running again: what was released comes back byte for byte and free, however the work was lost;
only new work is charged."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from mutation.planting import planted
from support import Workspace, enter, wait_until

from dpladder.cli import main
from dpladder.config.load import load
from dpladder.plan.dag import build_dag
from dpladder.plan.ending import conclude, logs
from dpladder.plan.plan import make_plan
from dpladder.plan.resolve import resolve_defaults
from dpladder.plan.startup import Parsed, known_states
from dpladder.privacy.ledger import book as ledgers
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.ledger.state import LedgerCharge

SOURCE = Path(__file__).parents[2] / "src"
TRIAL = "results/main/rungs/0/trials/0/score.json"
STATEMENT = "results/privacy.json"
CHEAP = {"final": {"budget": 0.3}}  # leaves room in the total to pay for something twice
LONG = {"sweep": {"search": {"steps": [4_000, 4_001]}}}  # a second or two
RELEASES = ("weights.safetensors", "score.json", "metrics.json", "fit.json", "best.json")


def released(workspace) -> dict[str, bytes]:
    return {
        path: data for path, data in workspace.public_bytes().items() if Path(path).name in RELEASES
    }


def test_a_finished_project_has_nothing_to_do_and_says_what_it_guarantees(finished):
    before = finished.held()
    ended = finished.finish()
    assert "Nothing to be done" in ended.stderr + ended.stdout
    assert finished.held() == before
    assert {held.status for held in before} == {"DONE"}


@pytest.mark.ci
def test_a_second_clone_restores_every_release_for_nothing(finished, monkeypatch):
    before = finished.held()
    clone = dataclasses.replace(finished, folder=finished.folder.with_name("clone"))
    clone.folder.mkdir()
    np.savez(clone.folder / "data.npz", **np.load("data.npz"))
    clone.configure()
    monkeypatch.chdir(clone.folder)
    ended = clone.finish(STATEMENT)
    assert "Lineage tiny: all that was or will ever be released" in ended.stderr
    assert released(clone) == released(finished)
    assert clone.held() == before


def last_words(capfd) -> list[str]:
    """What a run of the finished project would end on."""
    project = resolve_defaults(load(["config.yaml"]))
    dag = build_dag(project)
    conclude(Parsed(dag, make_plan(dag, known_states(project)), {}), logs())
    return capfd.readouterr().err.splitlines()


def test_the_closing_line_is_the_statements_where_that_is_of_this_run(finished, capfd):
    said = Path("results/privacy.md").read_text().splitlines()[2].strip("*")
    first, accuracy, page = last_words(capfd)
    assert first == (
        f"{said} So far epsilon = 1.0000 of the limit is spent. The limit is the guarantee. "
        "One more release of up to epsilon = 7.8743 would still fit. That is not the limit less "
        "what is spent, for epsilons do not add."
    )
    assert re.fullmatch(
        r"main: test accuracy [\d.]+% \(95 % interval [\d.]+% to [\d.]+%\) at a total of epsilon = "
        r"1",
        accuracy,
    )
    assert page == "The whole report: results/report.html"


def test_the_closing_line_reads_the_ledger_and_not_an_older_statement(finished, capfd):
    finished.configure({"experiments": {"more": {"learner": {"momentum": 0.5}}}})
    project = resolve_defaults(load(["config.yaml"]))
    plan = make_plan(build_dag(project), known_states(project))
    more = [item for item in plan.items.values() if item.job.experiment == "more"]
    ledgers.reserve(ledgers.Ledger(open_home(), "tiny"), more)
    line, note = last_words(capfd)
    assert "So far epsilon = 1.4652 of the limit" in line
    assert "results/privacy.json is older" in note


def test_the_closing_line_is_of_this_runs_lineage(finished, capfd):
    shutil.rmtree("results")
    finished.configure({"dataset": {"lineage": "other"}})
    line, note = last_words(capfd)
    assert line.startswith("Lineage other: all that was or will ever be released")
    assert "So far epsilon = 0.0000 of the limit" in line
    assert note.startswith("results/privacy.json says nothing of lineage other")
    assert note.endswith("dpladder run results/privacy.json")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"privacy": {"lifetime": None}}, "no lifetime guarantee can be given"),
        ({"mode": "research", "dataset": {"declared_public": True}}, "NOT A RELEASE"),
    ],
)
def test_the_closing_line_promises_no_more_than_was_declared(project, capfd, change, said):
    project.configure(change)
    assert said in last_words(capfd)[0]


@pytest.mark.long
def test_two_clones_at_once_publish_one_release_and_neither_complains(project):
    project.configure(LONG)
    clone = dataclasses.replace(project, folder=project.folder.with_name("clone"))
    shutil.copytree(project.folder, clone.folder)
    drivers = [start(workspace) for workspace in (project, clone)]
    assert [driver.wait(timeout=900) for driver in drivers] == [0, 0]
    assert released(project) == released(clone) != {}
    assert project.log("main/rungs/0/trials.log") == clone.log("main/rungs/0/trials.log") == ""
    assert {held.status for held in project.held()} == {"DONE"}


@pytest.mark.long
def test_forced_jobs_and_deleted_outputs_come_back_as_they_were(finished):
    before, bytes_before = finished.held(), released(finished)
    for lost in (TRIAL, "results/main/final/1/weights.safetensors"):
        Path(lost).unlink()
    finished.finish("results/main/final/1/weights.safetensors")
    finished.finish("--forceall", TRIAL)
    assert released(finished) == bytes_before
    assert finished.held() == before


def drop_records(count: int) -> None:
    shutil.copy2("data.npz", "kept.npz")
    with np.load("kept.npz") as old:
        np.savez("data.npz", **{name: array[count:] for name, array in old.items()})


@pytest.mark.ci
def test_data_that_changed_is_answered_by_what_is_kept(project):
    """Under the same number nothing tells whether anybody came or went: no exit code, no file."""
    project.configure(CHEAP)
    project.finish(TRIAL)
    before, score, told = project.held(), released(project), public_columns(project)
    [first] = known_states(load(["config.yaml"]))["tiny"].first_units.values()
    assert len(first) == 32
    drop_records(1)
    project.finish(TRIAL)
    assert (project.held(), released(project), public_columns(project)) == (before, score, told)
    project.configure(CHEAP, {"dataset": {"version": 2}})
    project.finish(TRIAL)
    assert released(project) != score
    assert [held.status for held in project.held()] == ["DONE"] * 2 * len(before)
    queries = {held.query for held in project.held()}
    assert len(queries) == 2 * len(before)


@pytest.mark.ci
def test_a_query_says_nothing_of_the_records(tmp_path, monkeypatch):
    """Of other people, under another key: the same queries, whatever home knows them by."""
    found = []
    for count in (0, 1, 150):
        folder = tmp_path / f"{count}"
        own = Workspace(folder / "project", folder / "home")
        own.create()
        enter(own, monkeypatch)
        with np.load(own.folder / "data.npz") as old:
            arrays = {name: array[count:] for name, array in old.items()}
        np.savez(own.folder / "data.npz", **arrays)
        own.configure(CHEAP)
        own.finish(TRIAL)
        found.append({held.question: held.query for held in own.held()})
    assert found[0] == found[1] == found[2]


def public_columns(workspace) -> list[tuple[object, ...]]:
    """What a statement, its records and the ledger's anchors may be made of."""
    return [(held.question, held.query, held.spends, held.draws) for held in workspace.held()]


def wait_for_commit(workspace) -> None:
    """Until a job has begun to read private data."""
    entries = workspace.home / "ledger" / "tiny"
    deadline = time.monotonic() + 120
    while not any('"COMMITTED"' in entry.read_text() for entry in entries.glob("*.json")):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def start(workspace) -> subprocess.Popen:
    return subprocess.Popen(
        workspace.command(TRIAL),
        cwd=workspace.folder,
        env=workspace.environment(),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def processes_of(driver: subprocess.Popen) -> dict[str, int]:
    """What runs a rung for a driver: its newest fork that heeds an interrupt, which workers do not;
    that one's worker; and what stands for the job where Snakemake started it."""
    group, blocked = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if os.getpgid(int(entry.name)) == driver.pid:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                masks = (entry / "status").read_text().partition("SigBlk:")[2].split()
                blocked[int(entry.name)] = int(masks[0], 16) >> signal.SIGINT - 1 & 1
                group[int(entry.name)] = (parent, (entry / "cmdline").read_bytes())
    forks = {pid for pid, (_, command) in group.items() if b"commands.worker" in command}
    stands = [pid for pid, (_, command) in group.items() if b"hand_over.py" in command]
    job = max(pid for pid in forks if not blocked[pid])
    return {"job": job, "worker": group[job][0], "stand-in": max(stands), "driver": driver.pid}


def resumed(begun: list[LedgerCharge], done: list[LedgerCharge]) -> None:
    """Every trial under its first charge, and what had begun with the noise that it had begun
    with."""
    assert [held.status for held in done] == ["DONE"] * len(begun)
    for before, after in zip(begun, done, strict=True):
        assert before.token == after.token
        if before.status == "COMMITTED":
            assert (before.nonce, before.query) == (after.nonce, after.query)


@pytest.mark.long
def test_a_killed_driver_loses_no_charge_and_charges_nothing_twice(project):
    project.configure(LONG)
    driver = start(project)
    wait_for_commit(project)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    begun = project.held()
    assert "COMMITTED" in {held.status for held in begun} <= {"COMMITTED", "RESERVED"}
    assert not Path(TRIAL).exists()

    assert "locked" in project.run(TRIAL).stderr
    project.finish("--unlock")
    project.finish(TRIAL)
    resumed(begun, project.held())


NOTEBOOK = """
import numpy as np
from dpladder import PrivateClassifier
X = np.random.default_rng(0).normal(size=(400, 20))
more = {"dataset.equal_rows": "one_record", "sweep.search.steps": [400_000, 400_001]}
PrivateClassifier(
    1.0, lineage="tiny", nominal_size=400, classes=[0, 1], project=".", **more
).fit(X, (X[:, 0] > 0).astype(int))
"""


def processes_in(folder: Path) -> list[bytes]:
    """The commands of all processes that work in a folder."""
    commands = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended
            if (entry / "cwd").readlink() == folder and int(entry.name) != os.getpid():
                commands.append((entry / "cmdline").read_bytes())
    return commands


@pytest.mark.ci
@pytest.mark.parametrize(
    ("caller", "number"),
    [("run", signal.SIGTERM), ("run", signal.SIGHUP), ("notebook", signal.SIGTERM)],
)
def test_a_run_that_is_told_to_end_leaves_nothing_that_spends(project, caller, number):
    """`kill PID` ended what a person saw, and the workflow went from 6 charges on to 8."""
    project.configure({"sweep": {"search": {"steps": [400_000, 400_001]}}})  # they would take long
    command = ["-m", "dpladder", "run", "config.yaml", TRIAL]
    if caller == "notebook":
        Path("config.yaml").unlink()
        command = ["-c", NOTEBOOK]
    run = subprocess.Popen(
        [sys.executable, *command],
        env=project.environment(),
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_commit(project)
    run.send_signal(number)
    told = run.communicate(timeout=900)[1]
    assert "dpladder: interrupted. What is charged stays charged" in told
    assert "nobody foresaw" not in told
    assert run.returncode == -number
    # the kernel has killed the worker, which takes a moment to be gone
    wait_until(lambda: not processes_in(project.folder), 30)


@pytest.mark.parametrize(
    "killed",
    [
        *(pytest.param(one, marks=pytest.mark.long) for one in ("job", "stand-in")),
        *(pytest.param(one, marks=pytest.mark.ci) for one in ("worker", "driver")),
    ],
)
def test_a_killed_job_fails_the_run_and_is_resumed_by_the_next(project, killed):
    """So does a killed worker, and Snakemake's end ends both."""
    project.configure(LONG)
    driver = start(project)
    wait_for_commit(project)
    processes = processes_of(driver)
    os.kill(processes[killed], signal.SIGKILL)
    assert driver.wait(timeout=900) == (-signal.SIGKILL if killed == "driver" else 1)
    wait_until(lambda: not processes_in(project.folder), 30)
    begun = project.held()
    assert "COMMITTED" in {held.status for held in begun} <= {"COMMITTED", "RESERVED"}
    if killed == "driver":
        assert "locked" in project.run(TRIAL).stderr
        project.finish("--unlock")
    project.finish(TRIAL)
    resumed(begun, project.held())


@pytest.mark.long
def test_lost_private_files_are_named_with_the_command_that_makes_them_again(finished):
    shutil.rmtree("private")
    target = "results/main/final/2/weights.safetensors"
    finished.configure({"final": {"targets": [1.0, 2.0]}})
    assert finished.run(target).returncode == 1
    log = finished.log("main/final/2/train.log")
    assert "are gone" in log
    assert "--forcerun prepare_dataset" in log
    bytes_before = released(finished)
    finished.finish(target, "--forcerun", "prepare_dataset", "prepare_public")
    assert bytes_before.items() <= released(finished).items()


@pytest.mark.long
def test_an_edited_release_is_named_and_comes_back_for_nothing(finished):
    before, bytes_before = finished.held(), released(finished)
    weights, metrics = (
        "results/main/final/1/weights.safetensors",
        "results/main/final/1/metrics.json",
    )
    Path(weights).write_bytes(Path(weights).read_bytes() + b" ")
    assert finished.run(metrics).returncode == 1
    said = finished.log("main/final/1/evaluate.log")
    assert f"{weights} is not what was released" in said
    assert "respend" not in said
    Path(weights).unlink()
    finished.finish(metrics)
    assert released(finished) == bytes_before
    assert finished.held() == before


@pytest.mark.long
def test_an_edited_score_is_undone_for_nothing(finished):
    before, bytes_before = finished.held(), released(finished)
    document = json.loads(Path(TRIAL).read_text())
    document["trial"] |= {"r": 2 * document["trial"]["r"], "score": 1000.0}
    document["learns"] |= {"n0": 1}  # from which another r* follows, whatever the scores say
    Path(TRIAL).write_text(json.dumps(document))
    weights = "results/main/final/1/weights.safetensors"
    assert finished.run(weights).returncode == 1
    assert re.search(
        "edited, delete it.*dpladder run FILE.*restored, free",
        finished.log("main/final/1/train.log"),
    )
    Path(TRIAL).unlink()
    finished.finish(TRIAL)
    finished.finish(weights)
    assert released(finished) == bytes_before
    assert finished.held() == before


@pytest.mark.ci
def test_an_edited_record_fails_the_check_and_the_statement(finished, capsys):
    assert main(["verify", "results"]) == 0
    record = Path("results/main/rungs/1/trials/1/privacy.json")
    document = json.loads(record.read_text())
    document["spends"][0]["event"]["sigma"] *= 2
    record.write_text(json.dumps(document))
    assert main(["verify", "results"]) == 1
    assert str(record) in capsys.readouterr().err
    assert finished.run(STATEMENT).returncode == 1
    assert "disagrees with the ledger" in finished.log("compose_privacy.log")
    assert not Path(STATEMENT).exists()


@pytest.mark.ci
def test_a_plan_that_forgot_the_score_publishes_no_score(project, tmp_path, monkeypatch):
    shutil.copytree(SOURCE, tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    plan = tmp_path / "src/dpladder/plan/cost.py"
    forgotten = planted(plan.read_text(), "_trial_spends", "cost.score is not None", "False")
    plan.write_text(forgotten)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "src"))
    assert project.run(TRIAL).returncode == 1
    assert not Path(TRIAL).exists()
    assert {held.status for held in project.held()} == {"RESERVED"}
