"""What a job is known by for life: later keys at their neutral values, and later versions, leave it
as it was."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pytest
from support import node_of

from dpladder.config import Config, Project
from dpladder.config.learners import SECTIONS
from dpladder.config.load import load, overlay
from dpladder.config.method import name_of
from dpladder.methods.dp_gd import Descent
from dpladder.plan import follows, retired
from dpladder.plan.dag import build_dag
from dpladder.plan.inputs import outputs
from dpladder.plan.plan import charged_jobs
from dpladder.plan.resolve import resolve_defaults
from dpladder.plan.rules import RULES
from dpladder.section import NeutralAt, Section, values_of

ROOT = Path(__file__).parents[2]
FIXED = Path(__file__).with_name("identities.json")
EXAMPLES = sorted([ROOT / "config" / "config.yaml", *ROOT.glob("config/examples/*.yaml")])
LEARNERS = sorted(map(name_of, SECTIONS))
TRIAL = {"rung": "0", "trial": "0"}


@pytest.fixture(name="sources")
def _sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory that holds what the examples say they need."""
    folders = ["photos", "hospitals", "reviews", "glue", "chests/images"]
    for folder in [*folders, "cifar10/train", "cifar10/test"]:
        (tmp_path / "data" / folder).mkdir(parents=True)
    files = ["features.npz", "patients.csv", "chests.csv", "chests/train.csv", "speeches.jsonl"]
    files += [f"glue/{task}.jsonl" for task in ("sst2", "qnli", "qqp", "mnli")]
    for name in files:
        (tmp_path / "data" / name).touch()
    monkeypatch.chdir(tmp_path)


def identities(path: Path, overrides: dict[str, Any] | None = None) -> dict[str, str]:
    """By experiment and rule, a digest of the questions of its jobs."""
    project = resolve_defaults(load([path], overrides))
    found: dict[str, list[str]] = {}
    for node in charged_jobs(build_dag(project)):
        found.setdefault(f"{node.experiment} {node.rule}", []).append(node.question)
    return {name: follows.digest(sorted(statics))[:12] for name, statics in sorted(found.items())}


@pytest.mark.usefixtures("sources")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_jobs_of_the_examples_are_known_by_what_they_were_known_by(path: Path) -> None:
    """An example that changes has new identities; one that is new is added. Whatever else moves one
    asks all users anew."""
    assert identities(path) == json.loads(FIXED.read_text())[path.stem]


@pytest.mark.usefixtures("sources")
@pytest.mark.parametrize("name", ["groups", "regression"])
def test_jobs_on_lines_are_known_by_what_they_were_known_by_before_there_were_curves(
    name: str,
) -> None:
    [path] = [path for path in EXAMPLES if path.stem == name]
    lines = identities(path, {"features": {"curves": 0}})
    assert lines == json.loads(FIXED.read_text())[f"{name}, lines"]


@pytest.mark.parametrize("learner", LEARNERS)
def test_jobs_of_each_learner_at_its_defaults_are_known_by_what_they_were_known_by(
    learner: str,
) -> None:
    assert identities(EXAMPLES[0], of_learner(learner)) == json.loads(FIXED.read_text())[learner]


def of_learner(learner: str) -> dict[str, Any]:
    section = next(section for section in SECTIONS if learner == name_of(section))
    rungs = {} if section.searches else {"sweep": {"rungs": []}}
    cut = {"features": {"until": "blocks.5", "centre": "auto"}} if section.above_cut else {}
    number = {"dataset": {"target": {"range": [0, 9]}}} if not section.classes else {}
    return {"learner": {"name": learner}, **rungs, **cut, **number}


class Later(Section):
    """A section whose second key came after 1.0, as one of another package may have it."""

    clip: float = 1.0
    warm: Annotated[float, NeutralAt(0.0)] = 0.0
    inner: tuple[Later, ...] = ()


def test_a_later_key_is_left_out_at_its_neutral_value() -> None:
    before = {"clip": 1.0, "inner": [{"clip": 2.0, "inner": []}]}
    assert values_of(Later(inner=(Later(clip=2.0),))) == before
    asking = {"clip": 1.0, "warm": 0.5, "inner": [{"clip": 2.0, "warm": 0.1, "inner": []}]}
    assert values_of(Later(warm=0.5, inner=(Later(clip=2.0, warm=0.1),))) == asking


class Longer(Descent):
    """A learner's section that got a key."""

    warm: Annotated[float, NeutralAt(0.0)] = 0.0


def test_a_key_added_at_its_neutral_value_changes_no_question() -> None:
    config = resolve_defaults(load([EXAMPLES[0]])).main
    given = config.learner.model_dump()
    longer, asking = (
        config.model_copy(update={"learner": Longer(**given, warm=warm)}) for warm in (0.0, 0.5)
    )
    known_by = [
        node_of(Project({"main": one}), "run_trial", **TRIAL).question_id
        for one in (config, longer, asking)
    ]
    assert known_by[0] == known_by[1] != known_by[2]


class Before(Descent):
    """A learner's section with a key that retired since."""

    warm: float = 0.0


def test_a_key_that_retired_stays_in_questions_at_the_value_that_it_stands_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = resolve_defaults(load([EXAMPLES[0]])).main
    before = config.model_copy(update={"learner": Before(**config.learner.model_dump())})

    def known(one: Config) -> tuple[str, ...]:
        final = node_of(Project({"main": one}), "train_final", target="1")
        return final.question_id, final.content, json.dumps(final.keys_behind, sort_keys=True)

    as_it_was, without = known(before), known(config)
    monkeypatch.setattr(retired, "RETIRED", {"learner.warm": 0.0})
    assert known(config) == as_it_was
    assert all(map(str.__ne__, without, as_it_was))
    assert "warm" not in node_of(Project({"main": config}), "run_trial", **TRIAL).params["learner"]


def test_a_retired_key_that_a_config_still_says_changes_no_job_that_reads_its_section(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retired, "RETIRED", {"dataset.target.error": None, "learner.head.gone": 1})
    number = {"dataset": {"target": {"range": [0, 9]}}, "learner": {"name": "dp_ridge"}}
    finals = [
        node_of(resolve_defaults(load([EXAMPLES[0]], one)), "train_final", target="1")
        for one in (number, overlay(number, {"dataset": {"target": {"error": 2.0}}}))
    ]
    plain, said = ((node.params, node.content, node.question) for node in finals)
    assert plain == said


def test_a_rule_that_asks_nothing_comes_and_goes_unnoticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that is always there, between two others."""
    before = identities(EXAMPLES[0])
    rung, fit = RULES["select_rung"], RULES["fit_radius"]
    between = replace(rung, inputs={"best": outputs("best", "select_rung")})
    further = {"rungs": outputs("best", "look_at_rung", several=True)}
    monkeypatch.setitem(RULES, "look_at_rung", between)
    monkeypatch.setitem(RULES, "fit_radius", replace(fit, inputs=further))
    final = node_of(resolve_defaults(load([EXAMPLES[0]])), "train_final", target="1")
    assert "look_at_rung" in {node.rule for node in final.inputs["fit"][0].inputs["rungs"]}
    assert identities(EXAMPLES[0]) == before
