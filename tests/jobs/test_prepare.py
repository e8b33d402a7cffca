"""Whose data it is: what the rules that prepare data show of that, and what the operator is
told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import Workspace, enter, mixture, node_of, noise_for

from dpladder.cli import main
from dpladder.config.load import load
from dpladder.data.prepare import survey, units_digest
from dpladder.errors import BadInput
from dpladder.jobs.prepare_dataset import keys_of, prepare_dataset
from dpladder.jobs.prepare_public import prepare_public
from dpladder.jobs.task import Task
from dpladder.plan import cost
from dpladder.plan.dag import build_dag
from dpladder.plan.plan import make_plan
from dpladder.plan.startup import Parsed, known_states, reserve
from dpladder.privacy.accounting.events import Gaussian, Job, Spend
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.ledger.state import Item

PUBLIC = {"dataset": {"public_test": "npz:public.npz"}}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    made = Workspace(tmp_path / "project", tmp_path / "home")
    made.create()
    enter(made, monkeypatch)
    return made


def save(path: str, arrays: dict[str, Any], rows: slice = slice(None)) -> None:
    np.savez(path, **{name: array[rows] for name, array in arrays.items()})


def prepare(workspace: Workspace, *changes: dict[str, Any]) -> list[dict[str, Any]]:
    """The rules that prepare data, in order, as a run starts them; what they leave in sight, but
    for the digest of their config, which names lineage and source."""
    workspace.configure(*changes)
    project = load(["config.yaml"])
    states = known_states(project)
    dag = build_dag(project)
    reserve(Parsed(dag, make_plan(dag, states), {}), [], "local")
    rules: dict[str, tuple[Any, dict[str, str]]] = {"prepare_dataset": (prepare_dataset, {})}
    if project.main.dataset.public_test is not None:
        rules["prepare_public"] = (prepare_public, {"part": "test"})
    seen = []
    for rule, (work, wildcards) in rules.items():
        cfg = node_of(project, rule, **wildcards).params
        output = {"privacy": Path(f"{rule}.json")}
        work(
            Task(
                rule,
                {"experiment": "main", **wildcards},
                cfg,
                "",
                {},
                output,
                project.main.resources,
            )
        )
        record = json.loads(output["privacy"].read_text())
        seen.append({key: value for key, value in record.items() if key != "basis"})
    return seen


def checked(capsys: pytest.CaptureFixture[str]) -> str:
    """What the operator is told."""
    capsys.readouterr()
    assert main(["check"]) == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("records", [1, 49, 50, 300])
def test_preparing_a_public_test_does_not_tell_whether_its_records_are_private(
    project: Workspace, records: int
) -> None:
    save("public.npz", mixture(), slice(records))
    private = prepare(project, PUBLIC)
    save("public.npz", mixture(seed=7), slice(records))
    assert prepare(project, PUBLIC) == private


def test_the_operator_is_told_of_a_public_test_that_holds_the_private_data(
    project: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    warning = "this source is declared public, and holds private records"
    for seed, holds in ((0, True), (7, False)):
        save("public.npz", mixture(seed=seed), slice(90))
        prepare(project, PUBLIC)
        assert (warning in checked(capsys)) == holds


def test_research_on_public_data_is_not_told_that_its_own_source_is_private(
    project: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    research = {"mode": "research", "dataset": {"declared_public": True}, "research": {"seed": 1}}
    prepare(project, research)
    assert "holds private records" not in checked(capsys)


@pytest.mark.parametrize("public", ["research", "public_test"])
def test_the_operator_is_told_that_another_lineage_protects_what_is_declared_public(
    project: Workspace, capsys: pytest.CaptureFixture[str], public: str
) -> None:
    prepare(project)
    warning = "would leave without noise. Lineage tiny of this home protects the same data"
    for seed, holds in ((0, True), (7, False)):
        save("open.npz", mixture(seed=seed))
        save("mine.npz", mixture(seed=8))
        source = {"research": "open.npz", "public_test": "mine.npz"}[public]
        declared = {
            "research": {"declared_public": True},
            "public_test": {"public_test": "npz:open.npz"},
        }[public]
        mode = {"mode": "research"} if public == "research" else {}
        prepare(project, mode | lineage(f"other{seed}", source, **declared))
        said = checked(capsys)
        assert (warning in said) == holds
        assert ("holds private records" in said) == holds


def test_a_table_of_few_answers_without_ids_is_refused_before_anything_is_spent(
    project: Workspace,
) -> None:
    """Header and config decide: three thousand people would be 64 records at most."""
    answers = [{"name": name, "levels": ["1", "2", "3", "4"]} for name in "ab"]
    Path("few.csv").write_text("a,b,label\n1,2,0\n")
    few = {"dataset": {"lineage": "few", "source": "csv:few.csv", "columns": answers}}
    with pytest.raises(BadInput, match=r"different rows at most.*dataset\.id.*equal_rows"):
        prepare(project, few)
    prepare(project, few, {"dataset": {"equal_rows": "one_record"}})


def lineage(name: str, source: str, **more: Any) -> dict[str, Any]:
    return {"dataset": {"lineage": name, "source": f"npz:{source}", **more}}


@pytest.mark.parametrize("records", [1, 49, 50, 300])
def test_preparing_a_lineage_does_not_tell_whether_its_records_are_in_another(
    project: Workspace, records: int
) -> None:
    prepare(project)
    save("private.npz", mixture(), slice(records))
    save("others.npz", mixture(seed=7), slice(records))
    inside = prepare(project, lineage("inside", "private.npz"))
    outside = prepare(project, lineage("outside", "others.npz"))
    assert inside == outside


def test_the_operator_is_told_of_another_lineage_that_holds_the_same_data(
    project: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(project)
    assert "holds the same data" not in checked(capsys)
    prepare(project, lineage("renamed", "data.npz"))
    assert "lineage tiny holds the same data: a person in both bears" in checked(capsys)


def test_the_operator_is_told_of_records_that_are_none_of_their_version(
    project: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other ids would move each record to another part."""
    arrays = mixture()
    whole = np.arange(len(arrays["labels"]))
    save("data.npz", arrays | {"ids": whole})
    prepare(project)
    commit_first(project, arrays | {"ids": whole})
    assert "not there when this version" not in checked(capsys)
    save("data.npz", arrays | {"ids": whole + len(whole)})
    before = prepare(project)
    assert "300 of 300 units were not there when this version" in checked(capsys)
    save("data.npz", arrays | {"ids": whole})
    assert prepare(project) == before
    project.configure({"dataset": {"version": 2}})
    assert "not there when this version" not in checked(capsys)


def commit_first(project: Workspace, arrays: dict[str, Any]) -> None:
    """The first question about the data as it lies there."""
    ledger = Ledger(open_home(), "tiny")
    config = load(["config.yaml"]).main
    found = survey(config.dataset, keys_of(open_home()))
    spend = Spend("tiny", "add_remove", cost.partition(config, "train"), Gaussian(50.0))
    [held] = book.reserve(ledger, [Item(Job("main", "toy", ()), "toy", (spend,))])
    units = units_digest(found.everybody, keys_of(open_home()))
    book.commit(ledger, held.token, "query", [spend], noise_for([spend]), units=units)


def test_two_tables_with_row_numbers_for_ids_are_not_taken_for_the_same_people(
    project: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, shift in (("one", 0), ("two", 1000)):
        rows = [f"{place},{place + shift},{place % 3}" for place in range(300)]
        Path(f"{name}.csv").write_text("\n".join(["id,x,label", *rows]) + "\n")
        table = {"source": f"csv:{name}.csv", "columns": ["x"], "lineage": name}
        prepare(project, {"dataset": table})
    assert "holds the same data" not in checked(capsys)
