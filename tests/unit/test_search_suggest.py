"""Suggested ladders: affordable, priced by the closed form, backed by measurements, and accepted by the config."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dpladder.cli import main
from dpladder.config.model import Sweep
from dpladder.privacy import gdp
from dpladder.search.suggest import _table, suggest, text

DELTA = 1e-5


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])


@given(st.floats(0.05, 20.0), st.floats(100, 1e7))
@settings(max_examples=40, deadline=None)
def test_a_suggested_ladder_leaves_most_of_the_total_to_the_final_training(epsilon, n0):
    found = suggest(epsilon, DELTA, n0)
    spent = [gdp.mu(rung, DELTA) for rung, trials in found.rungs for _ in range(trials)]
    assert gdp.compose([*spent, found.final_mu]) == pytest.approx(gdp.mu(epsilon, DELTA), rel=1e-9)
    assert found.search == pytest.approx(sum(mu**2 for mu in spent) / gdp.mu(epsilon, DELTA) ** 2)
    assert found.search < 0.5


def test_the_table_has_the_same_designs_everywhere():
    table = _table()
    assert set(table) == {"digits", "mnist5k"}
    designs = {
        (data, strength): {row.design for row in rows if row.strength == strength}
        for data, rows in table.items()
        for strength in {row.strength for row in rows}
    }
    assert len(designs) == 10
    assert len(set(map(frozenset, designs.values()))) == 1
    assert all(-0.02 < row.mean < row.p10 < 0.3 for rows in table.values() for row in rows)


def test_no_other_design_lost_less_at_this_strength():
    found = suggest(1.0, DELTA, 4000)
    strengths = [seen.strength for seen in found.seen]
    lost = sum(seen.mean for seen in found.seen)
    for design in {row.design for rows in _table().values() for row in rows}:
        others = [
            row
            for rows in _table().values()
            for row in rows
            if row.design == design and row.strength in strengths
        ]
        assert sum(row.mean for row in others) >= lost


def test_the_text_is_a_sweep_that_the_config_takes():
    found = suggest(1.0, DELTA, 4000)
    block = text(found).split("\n\n")[1]
    sweep = Sweep.model_validate(yaml.safe_load(block)["sweep"], strict=False)
    assert [(rung.epsilon, rung.trials) for rung in sweep.rungs] == list(found.rungs)
    assert sweep.select.share == found.share


def test_the_command_suggests_for_the_configs_total(capsys):
    assert main(["plan", "--suggest", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["main"]
    assert found["epsilon"] == 1.0
    assert found["strength"] == pytest.approx(4000 * gdp.mu(1.0, DELTA))
    assert {seen["data"] for seen in found["seen"]} == {"digits", "mnist5k"}
    assert main(["plan", "--suggest"]) == 0
    assert "sweep:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("without", "says"),
    [
        ({"learner": {"name": "one_step"}}, "one_step searches nothing"),
        ({"hpo": {"name": "random_search"}}, "random_search climbs no ladder"),
    ],
)
def test_who_climbs_no_ladder_is_told_so(tmp_path, capsys, without, says):
    config = yaml.safe_load(Path("config/config.yaml").read_text())
    config |= {"sweep": {"rungs": []}} | without
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    assert main(["plan", "--suggest", "--configfile", str(path)]) == 1
    assert says in capsys.readouterr().err
