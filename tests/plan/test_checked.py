"""A run on a terminal says first where nobody looked at a source with `dpladder check`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpladder.commands.check import check
from dpladder.config.load import resolve
from dpladder.plan.checked import mark_of, unchecked_sources
from dpladder.plan.dag import build_dag
from dpladder.plan.plan import make_plan
from dpladder.plan.startup import is_terminal, known_states, open_resolved, remind_of_check


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    labels = np.arange(200) % 2
    np.savez("data.npz", features=np.eye(200) + labels[:, None], labels=labels)
    values: dict[str, Any] = {
        "dataset": {
            "lineage": "people",
            "source": f"npz:{tmp_path / 'data.npz'}",
            "nominal_size": 150,
            "classes": 2,
        },
        "privacy": {"epsilon": 1.0, "delta": 1e-5, "lifetime": {"epsilon": 2.0}},
        "features": {"model": "none"},
    }
    (tmp_path / "config.yaml").write_text(json.dumps(values))
    return values


def test_a_source_that_nobody_checked_is_told_until_somebody_does(
    people: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    [(lineage, line)] = unchecked_sources(resolve(people))
    assert lineage == "people"
    assert "lineage people: `dpladder check` never looked at this source" in line
    assert "data.npz" not in line  # a path is private
    check([Path("config.yaml")])
    assert "200" in capsys.readouterr().out
    assert [*unchecked_sources(resolve(people))] == []
    [config] = resolve(people).experiments.values()
    assert mark_of(config).read_bytes() == b""
    Path("data.npz").rename("other.npz")
    people["dataset"]["source"] = f"npz:{Path.cwd() / 'other.npz'}"
    assert len([*unchecked_sources(resolve(people))]) == 1


@pytest.mark.parametrize("source", ["mnist5k", "digits"])
def test_published_data_need_no_look(people: dict[str, Any], source: str) -> None:
    dataset = {"lineage": "people", "source": source, "nominal_size": 150}
    people |= {"dataset": dataset, "features": {}}
    assert [*unchecked_sources(resolve(people))] == []


def test_a_run_says_so_before_anything_is_spent(
    people: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    project = open_resolved([Path("config.yaml")])
    states = known_states(project)
    remind_of_check(make_plan(build_dag(project), states), states, project)
    assert "never looked at this source" in capsys.readouterr().err


def test_a_stream_is_a_terminal_where_a_person_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_terminal()
    master, slave = os.openpty()
    with os.fdopen(master), os.fdopen(slave, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        assert is_terminal()
