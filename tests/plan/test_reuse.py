"""Releases by other code are told wherever somebody relies on them, and refused nowhere."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from support import Workspace, commit
from workflow.test_formats import WEIGHTS, unpacked

import dpladder
from dpladder.cli import main
from dpladder.commands import check as check_command
from dpladder.config.load import load
from dpladder.config.model import Resources
from dpladder.jobs import compose_privacy as job
from dpladder.jobs.task import Task, write_json
from dpladder.plan.dag import build_dag
from dpladder.plan.plan import make_plan
from dpladder.plan.resolve import resolve_defaults
from dpladder.plan.reuse import under_terms
from dpladder.plan.startup import known_states
from dpladder.plan.table import plan_document, plan_without_ledger
from dpladder.privacy.accounting.events import Gaussian, Job, Partition, Spend
from dpladder.privacy.ledger import anchors, book
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.ledger.state import Item, Terms
from dpladder.privacy.statement.records import record_of
from dpladder.use.card import card


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setattr(job, "commit", lambda: "abc")
    monkeypatch.setattr(check_command, "commit", lambda: "abc")
    return unpacked("1-ladder", tmp_path, monkeypatch)


def stated() -> tuple[str, str]:
    """The statement's page composed anew, and the card of the model."""
    project = resolve_defaults(load(["config.yaml"]))
    dag, states = build_dag(project), under_terms(project, known_states(project))
    document = plan_without_ledger(plan_document(make_plan(dag, states), states, dag))
    records = json.loads(Path("results/privacy.json").read_text())["records"]
    # made from the statement before, and the last job of a run makes them anew
    made_last = ("report.*", "**/summary.*", "**/figures/*", "**/tables/*")
    for path in [path for name in made_last for path in Path("results").glob(name)]:
        path.unlink()
    plan = [f"results/{name}" for name in ("plan.json", "plan.md", "plan.privacy.json")]
    files = [
        str(path)
        for path in Path("results/main").rglob("*")
        if path.is_file() and not path.name.endswith("privacy.json")
    ]
    task = Task(
        rule="compose_privacy",
        wildcards={},
        cfg=json.loads(json.dumps(asdict(document))),
        code="",
        input={"records": [*records], "plan": plan, "files": files},
        output={"statement": Path("results/privacy.json"), "page": Path("results/privacy.md")},
        resources=Resources(),
    )
    job.compose_privacy(task)
    model = dpladder.load(f"results/main/{WEIGHTS['ladder']}/weights.safetensors")
    return Path("results/privacy.md").read_text(), card(model, with_header=False)


def checked(capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(["check"]) == 0
    return capsys.readouterr().out


def test_a_clone_whose_files_were_edited_says_so(old, monkeypatch, capsys) -> None:
    assert not any("modified code" in text for text in (*stated(), checked(capsys)))
    for module in (job, check_command):
        monkeypatch.setattr(module, "commit", lambda: "abc with uncommitted changes")
    for text in (*stated(), checked(capsys)):
        assert "modified code" in text
        assert "files are not those of commit abc" in text


@pytest.mark.usefixtures("old")
def test_a_lineage_that_the_config_no_longer_has_is_stated_while_its_record_lies_here(
    capsys,
) -> None:
    """The last experiment on it was taken out of the config."""
    job = Job("clinic", "evaluate", (("target", "1"),))
    spend = Spend("clinic", "add_remove", Partition("all"), Gaussian(9.0))
    terms = Terms("clinic", "add_remove", "record", 1, 1e-5, "all", lifetime_epsilon=8.0)
    ledger = book.open_ledger(open_home(), terms)
    [held] = book.reserve(ledger, [Item(job, "asked", (spend,))])
    anchors.save_anchors(Path("results"), [book.head(ledger)])
    assert "clinic" not in stated()[0], "nothing was released about it yet"
    paid = commit(ledger, held.token, "query", held.spends)
    book.finish(ledger, held.token, "0" * 64)
    anchors.save_anchors(Path("results"), [book.head(ledger)])
    record = record_of(job.rule, {"experiment": "clinic", "target": "1"}, paid.spends, "asked")
    Path("results/clinic/final/1").mkdir(parents=True)
    write_json(Path("results/clinic/final/1/metrics.privacy.json"), record)
    page, _ = stated()
    assert "Everything ever released about lineage clinic: epsilon = 0.3" in page
    assert main(["verify", "results"]) == 0
    assert "clinic epsilon = 0.3" in capsys.readouterr().out


@pytest.mark.usefixtures("old")
def test_a_statement_rests_on_what_is_declared_public() -> None:
    page, _ = stated()
    assert (
        "its start or at each step, is charged to nobody: of a source that is named so and is "
        in (page)
    )
