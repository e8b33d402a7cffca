"""Whose data it is: what the rules that prepare data refuse, and how little that tells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import Workspace, enter, mixture

from dpladder.config import load
from dpladder.errors import BadInput, Refused
from dpladder.jobs.prepare_dataset import prepare_dataset
from dpladder.jobs.prepare_public import prepare_public
from dpladder.jobs.task import Task
from dpladder.plan import dag
from dpladder.plan.plan import make_plan
from dpladder.plan.startup import Parsed, known_states, reserve

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
    reserve(Parsed(project, make_plan(project, states), {}), [], "local")
    rules: dict[str, tuple[Any, dict[str, str]]] = {"prepare_dataset": (prepare_dataset, {})}
    if project.main.dataset.public_test is not None:
        rules["prepare_public"] = (prepare_public, {"part": "test"})
    seen = []
    for rule, (work, wildcards) in rules.items():
        cfg = dag.params(project, rule, {"experiment": "main", **wildcards})
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


@pytest.mark.parametrize("records", [1, 40])
def test_a_small_public_test_does_not_tell_whether_its_records_are_private(
    project: Workspace, records: int
) -> None:
    save("public.npz", mixture(), slice(records))
    private = prepare(project, PUBLIC)
    save("public.npz", mixture(seed=7), slice(records))
    assert prepare(project, PUBLIC) == private


def test_a_public_test_that_holds_the_private_data_is_refused_and_no_number_is_told(
    project: Workspace,
) -> None:
    save("public.npz", mixture(), slice(90))
    with pytest.raises(
        Refused,
        match=r"dataset\.public_test holds the private data "
        r"itself",
    ) as refusal:
        prepare(project, PUBLIC)
    assert not any(digit in str(refusal.value) for digit in "0123456789")


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


@pytest.mark.parametrize("records", [1, 40])
def test_a_small_lineage_does_not_tell_whether_its_records_are_in_another(
    project: Workspace, records: int
) -> None:
    prepare(project)
    save("private.npz", mixture(), slice(records))
    save("others.npz", mixture(seed=7), slice(records))
    inside = prepare(project, lineage("inside", "private.npz"))
    outside = prepare(project, lineage("outside", "others.npz"))
    assert inside == outside


def encoded_anew() -> dict[str, Any]:
    arrays = mixture()
    return arrays | {"features": arrays["features"] * np.float32(1.0001)}


@pytest.mark.ci
def test_a_renamed_lineage_over_data_in_another_encoding_needs_the_operators_word(
    project: Workspace,
) -> None:
    prepare(project)
    save("renamed.npz", encoded_anew())
    renamed = lineage("renamed", "renamed.npz", nominal_size=200)
    for _ in range(2):
        with pytest.raises(Refused, match=r"about as large as tiny.*dataset\.new_lineage: true"):
            prepare(project, renamed)
    prepare(project, renamed, {"dataset": {"new_lineage": True}})
    prepare(project, renamed)


def test_the_same_data_under_another_name_is_refused_whatever_the_operator_says(
    project: Workspace,
) -> None:
    prepare(project)
    with pytest.raises(Refused, match="lineages renamed and tiny share records"):
        prepare(project, lineage("renamed", "data.npz", new_lineage=True))


def test_ids_written_otherwise_where_one_is_missing_are_refused(
    project: Workspace,
) -> None:
    """pandas makes 1.0 of every 1 then, so that each record would move to another part."""
    arrays = mixture()
    whole = np.arange(len(arrays["labels"]))
    save("data.npz", arrays | {"ids": whole})
    prepare(project)
    missing = np.where(whole == 3, np.nan, whole)
    save("data.npz", arrays | {"ids": missing})
    for _ in range(2):
        with pytest.raises(Refused, match="come under other ids"):
            prepare(project)
    save("data.npz", arrays | {"ids": np.array(["" if i == 3 else str(i) for i in whole])})
    prepare(project)


def test_ids_that_were_missing_may_be_given(project: Workspace) -> None:
    """Without its id a record counted as nothing, and was in no part."""
    arrays = mixture()
    whole = [str(number) for number in range(len(arrays["labels"]))]
    save("data.npz", arrays | {"ids": np.array([*[""] * 60, *whole[60:]])})
    prepare(project)
    save("data.npz", arrays | {"ids": np.array(whole)})
    prepare(project)


def test_data_declared_public_needs_no_word(project: Workspace) -> None:
    prepare(project)
    save("open.npz", encoded_anew())
    prepare(project, {"mode": "research"}, lineage("open", "open.npz", declared_public=True))


def test_the_word_changes_no_job(project: Workspace) -> None:
    """It can be given, and taken back, without anything run again."""
    told = []
    for word in (False, True):
        project.configure({"dataset": {"new_lineage": word}})
        config = load(["config.yaml"])
        told.append(
            [
                dag.params(config, rule, {"experiment": "main"})
                for rule in ("prepare_dataset", "estimate_mean")
            ]
        )
    assert told[0] == told[1]


def test_two_tables_with_row_numbers_for_ids_share_a_home(project: Workspace) -> None:
    for name, shift in (("one", 0), ("two", 1000)):
        rows = [f"{place},{place + shift},{place % 3}" for place in range(300)]
        Path(f"{name}.csv").write_text("\n".join(["id,x,label", *rows]) + "\n")
        table = {"source": f"csv:{name}.csv", "columns": ["x"], "lineage": name}
        prepare(project, {"dataset": table | {"new_lineage": name == "two"}})
