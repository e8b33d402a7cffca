"""What changes a query of a job changes its question, or neither: else finished work could not be
restored, and could not be asked anew either."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import TINY

from dpladder.config import Project
from dpladder.config.load import overlay, resolve
from dpladder.errors import BadInput
from dpladder.plan import follows, node, reads
from dpladder.plan.dag import build_dag
from dpladder.plan.node import Node, what_counts
from dpladder.plan.resolve import resolve_defaults

SAMPLE = {"dataset": {"public_sample": "npz:public.npz"}}
MEAN = {"features": {"mean": {"epsilon": 0.1}}}
BASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "a bought mean": MEAN,
    "guided": SAMPLE | {"learner": {"public": "gradient"}},
    "shared sums": {
        "learner": {"name": "dp_ls", "shared": {"epsilon": 0.1, "sums": "all"}},
        "fit": {"using": "pooled"},
    },
    "a private search": {"hpo": {"name": "random_search"}, "sweep": {"rungs": []}},
}
EDITS: list[dict[str, Any]] = [
    SAMPLE | {"learner": {"public": "gradient"}},
    SAMPLE | {"learner": {"public": "none"}, "features": {"centre": "public"}},
    {"dataset": {"public_test": "npz:public.npz"}},
    {"dataset": {"public_validation": "npz:public.npz"}, "sweep": {"select": {"by": "public"}}},
    {"dataset": {"public_unlabelled": "npz:public.npz"}},
    {"dataset": {"classes": ["a", "b", "c"]}},
    {"dataset": {"census": {"epsilon": 0.5}}},
    {"dataset": {"unit": {"by": "user", "cap": 2}}},
    {"final": {"targets": [0.5, 1.0]}},
    {"evaluate": {"measures": "calibration"}},
    {"mode": "research", "dataset": {"declared_public": True}},
]


@pytest.fixture(autouse=True)
def _sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("data.npz", "public.npz"):
        Path(name).touch()


def single_edits(values: dict[str, Any], within: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
    """For each plain value of a config another one, as a change of that key alone."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from single_edits(value, (*within, key))
            continue
        others: list[Any] = [not value] if isinstance(value, bool) else []
        if isinstance(value, int | float) and not isinstance(value, bool):
            others = [value + 1, value / 2]
        for other in others:
            change: dict[str, Any] = {key: other}
            for section in reversed(within):
                change = {section: change}
            yield change


def asked(project: Project) -> dict[tuple[str, str], tuple[str, dict[str, Any]]]:
    """The question and the query's params of each job behind a statement, by rule and wildcards."""
    return {
        (job.rule, repr(job.job.wildcards)): (job.question, what_counts(job.row.reads, job.params))
        for job in build_dag(project).asking_jobs("main")
    }


@pytest.mark.few(3)
@pytest.mark.parametrize("base", BASES.values(), ids=BASES.keys())
def test_what_changes_a_query_changes_its_question(base: dict[str, Any]) -> None:
    values = overlay(TINY, base)
    config = resolve(values)
    before, compared = asked(resolve_defaults(config)), 0
    for change in [*EDITS, *single_edits(follows.plain_values(config.main))]:
        try:
            after = asked(resolve_defaults(resolve(overlay(values, change))))
        except BadInput:  # a value that this config cannot have
            continue
        for job in before.keys() & after.keys():
            (question, params), (other_question, other_params) = before[job], after[job]
            compared += 1
            assert question != other_question or params == other_params, (job, change)
    assert compared > 50


def test_public_records_that_guide_steps_later_leave_finished_releases_as_they_are() -> None:
    values = overlay(TINY, MEAN | {"dataset": {"census": {"epsilon": 0.1}}})
    before = asked(resolve_defaults(resolve(values)))
    after = asked(resolve_defaults(resolve(overlay(values, EDITS[0]))))
    for rule in ("count_units", "estimate_mean"):
        assert before[rule, "()"] == after[rule, "()"]


@pytest.mark.parametrize("cross", [[], [["age", "sex"]]])
def test_a_monotone_column_is_a_question_of_final_models_alone(cross: list[list[str]]) -> None:
    """It changes no trial; of jobs only final trainings read it, and tests count their models."""
    Path("table.csv").touch()
    others = [{"name": "sex", "levels": ["f", "m"]}, {"name": "dose", "range": [0, 9]}]

    def nodes(**more: str) -> dict[str, Node]:
        columns = [{"name": "age", "range": [0, 100]} | more, *others]
        dataset = {"source": "csv:table.csv", "columns": columns, "classes": ["a", "b"]}
        dataset["crosses"] = [["sex", "dose"]] if cross else []
        change = {"dataset": dataset, "features": {"curves": 4}}
        dag = build_dag(resolve_defaults(resolve(overlay(TINY, change))))
        rules = [rule for rule, row in dag.rules.items() if row.stated]
        jobs = [job for rule in rules for job in dag.jobs("main", rule)]
        return {f"{job.rule} {job.job.wildcards}": job for job in jobs}

    before, up, down = nodes(), nodes(monotone="up"), nodes(monotone="down")
    assert before.keys() == up.keys()
    for other in (before, down):
        asked_anew = {job.rule for name, job in up.items() if job.question != other[name].question}
        assert asked_anew == {"train_final", "evaluate"}
        told_else = {
            job.rule
            for name, job in up.items()
            if drop(job.params, "question_id") != drop(other[name].params, "question_id")
        }
        assert told_else == {"train_final"}
    final = next(job for job in up.values() if job.rule == "train_final")
    assert final.params["monotone"] == {"age": "up"}


def drop(params: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in params.items() if key != name}


def test_a_fact_of_a_job_is_part_of_its_question(monkeypatch: pytest.MonkeyPatch) -> None:
    project = resolve_defaults(resolve(TINY))
    before = asked(project)
    another = dataclasses.replace(node.facts_of(reads.Private)["public_parts"], of=another_part)
    facts_of = node.facts_of
    monkeypatch.setattr(node, "facts_of", lambda kind: {**facts_of(kind), "public_parts": another})
    assert not {question for question, _ in before.values()} & {
        question for question, _ in asked(project).values()
    }


def another_part(job: Node) -> list[str]:
    return ["another"]
