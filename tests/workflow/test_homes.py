"""Results and the home they were made under belong together: a home put back in time, or another
one, is refused at parse, before it answers anew what was answered before."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from support import node_of

from dpladder.cli import main
from dpladder.config.load import load
from dpladder.errors import Refused
from dpladder.jobs.reservation import find_reservation
from dpladder.jobs.task import Task
from dpladder.plan.dag import build_dag
from dpladder.plan.plan import make_plan
from dpladder.plan.resolve import resolve_defaults
from dpladder.plan.startup import Parsed, known_states, reserve
from dpladder.privacy.ledger import anchors
from dpladder.privacy.ledger.book import Ledger, head
from dpladder.privacy.ledger.home import open_home

STATEMENT = Path("results/privacy.json")
ANCHORS = Path("results/ledger.json")


def entries(workspace) -> list[Path]:
    return sorted((workspace.home / "ledger" / "tiny").glob("*.json"))


def restore_backup(workspace) -> None:
    """As a backup made halfway would be: the ledger's first entries, and the releases that these
    know."""
    for entry in entries(workspace)[-6:]:
        entry.unlink()
    known = {
        query
        for entry in entries(workspace)
        if (query := json.loads(entry.read_text())["body"].get("query"))
    }
    for kept in (workspace.home / "releases" / "tiny").iterdir():
        if kept.name not in known:
            shutil.rmtree(kept)


def cut_journal(workspace) -> None:
    for entry in entries(workspace)[-6:]:
        entry.unlink()


def lose_home(workspace) -> None:
    shutil.rmtree(workspace.home)


def refused(walk, capfd) -> str:
    with pytest.raises(SystemExit) as ended:
        walk()
    assert ended.value.code == 1
    message = capfd.readouterr().err
    assert "free" not in message.split("dpladder:")[-1]
    return message


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "left", [(STATEMENT, ANCHORS), (STATEMENT,), (ANCHORS,)], ids=["both", "statement", "anchors"]
)
@pytest.mark.parametrize("change", [restore_backup, cut_journal, lose_home])
def test_a_home_put_back_in_time_is_refused(
    change: Callable, left: tuple[Path, ...], finished, walk, capfd
) -> None:
    for path in {STATEMENT, ANCHORS} - {*left}:
        path.unlink()
    assert walk().charged == {}
    aside = finished.home.with_name("aside")
    shutil.copytree(finished.home, aside)
    change(finished)
    what = "does not know" if change is cut_journal else "saw entry|no ledger in"
    assert re.search(what, refused(walk, capfd))
    assert main(["plan"]) == 1
    assert re.search(what, capfd.readouterr().err)
    shutil.rmtree(finished.home, ignore_errors=True)  # as it advises: the home as it was last
    aside.rename(finished.home)
    assert walk().charged == {}


def test_releases_that_the_ledger_does_not_know_are_refused_whatever_became_of_the_results(
    finished, walk, capfd
) -> None:
    cut_journal(finished)
    shutil.rmtree("results")
    assert "does not know" in refused(walk, capfd)


def test_results_of_another_lineage_bind_to_their_home_too(finished, walk, capfd) -> None:
    lose_home(finished)
    finished.configure({"dataset": {"lineage": "other"}})
    assert "lineage tiny: no ledger in" in refused(walk, capfd)


@pytest.mark.ci
def test_a_results_folder_is_one_projects(finished, walk, capfd) -> None:
    finished.configure({"dataset": {"lineage": "other"}})
    said = refused(walk, capfd)
    assert re.search(
        r"holds the results of another project, about lineage tiny; this config is about "
        r"other",
        said,
    )
    assert main(["plan"]) == 1
    assert "holds the results of another project" in capfd.readouterr().err
    shutil.rmtree("results")
    assert walk().charged["train_final"] == 1


@pytest.mark.ci
def test_a_project_of_several_lineages_may_drop_one(finished, walk) -> None:
    finished.configure({"experiments": {"beside": {"dataset": {"lineage": "other"}}}})
    assert walk().charged["train_final"] == 1


@pytest.mark.long
def test_a_failed_statement_leaves_the_anchor(finished) -> None:
    record = Path("results/main/rungs/1/trials/1/privacy.json")
    document = json.loads(record.read_text())
    document["spends"][0]["event"]["sigma"] *= 2
    record.write_text(json.dumps(document))
    assert finished.run(str(STATEMENT)).returncode == 1
    assert not STATEMENT.exists()
    restore_backup(finished)
    assert re.search(
        r"results saw entry \d+, the ledger ends "
        r"at",
        finished.run(str(STATEMENT)).stderr,
    )


def test_both_anchors_are_verified(finished, capsys) -> None:
    assert anchors.read(Path("results")) == [head(Ledger(open_home(), "tiny"))]
    assert main(["verify", "results"]) == 0
    assert main(["ledger", "verify", "results"]) == 0
    STATEMENT.rename("kept.json")
    assert main(["ledger", "verify", "results"]) == 0
    restore_backup(finished)
    assert main(["ledger", "verify", "results"]) == 1
    assert "rolled back" in capsys.readouterr().err
    Path("kept.json").rename(STATEMENT)
    assert main(["ledger", "verify", "results"]) == 1
    said = capsys.readouterr().err.splitlines()  # once, though both anchors say it
    assert len([line for line in said if "rolled back" in line]) == 1
    ANCHORS.unlink()
    assert main(["verify", "results"]) == 1


def reserve_all(workspace) -> None:
    """What a run does before its first job."""
    project = resolve_defaults(load([workspace.folder / "config.yaml"]))
    dag = build_dag(project)
    plan = make_plan(dag, known_states(project))
    reserve(
        Parsed(dag, plan, {}),
        [(job.rule, {"experiment": job.experiment, **dict(job.wildcards)}) for job in plan.items],
        "local",
    )


def test_a_run_binds_its_results_to_the_home_before_its_first_job(
    project, walk, capfd, monkeypatch
) -> None:
    reserve_all(project)
    walk()
    monkeypatch.setenv("DPLADDER_HOME", str(project.home.with_name("other")))
    assert "lineage tiny: no ledger in" in refused(walk, capfd)


def test_a_job_on_a_node_with_an_older_copy_of_the_home_is_refused(project) -> None:
    reserve_all(project)
    stood = head(Ledger(open_home(), "tiny"))
    wildcards = {"experiment": "main", "target": "1"}
    cfg = node_of(resolve_defaults(load(["config.yaml"])), "evaluate", **wildcards).params
    job = partial(Task, "evaluate", wildcards, cfg, code="", input={}, output={}, resources=None)
    assert find_reservation(job()).mu("test score") > 0
    anchors.save_anchors(Path("results"), [dataclasses.replace(stood, seq=stood.seq + 1)])
    with pytest.raises(
        Refused,
        match=f"lineage tiny: results saw entry {stood.seq + 1}, the ledger ends at {stood.seq}",
    ):
        find_reservation(job())


@pytest.mark.ci
def test_caches_of_another_home_are_refused_before_anything_is_committed(finished) -> None:
    """Results gone and made again under another home, while the private folder kept the first one's
    caches."""
    other = dataclasses.replace(finished, home=finished.home.with_name("other"))
    shutil.rmtree("results/main/rungs")
    STATEMENT.unlink()
    ANCHORS.unlink()
    trial = "results/main/rungs/0/trials/0/score.json"
    assert other.run(trial).returncode == 1
    assert "another home's key" in other.log("main/rungs/0/trials.log")
    assert [entry for entry in entries(other) if "COMMITTED" in entry.read_text()] == []
    assert entries(other)
