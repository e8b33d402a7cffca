"""The comparison of learners: what a contestant is charged, that it can be repeated, and what its table says."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import asdict

import numpy as np
import pytest

from dpladder.config.learners import learner_of
from dpladder.config.model import Fit, Resources, Search, Sweep
from dpladder.errors import Refused
from dpladder.learn.interface import Constants, Data
from dpladder.privacy import gdp
from dpladder.privacy.ledger import Terms
from dpladder.report.learners import plot_learners, verdict, write_csv, write_markdown
from dpladder.rules import contest as contests
from dpladder.rules.contest import Arena, Contestant, Row, compete, contest

CLASSES, DIMENSION = 3, 6


def arena(mode="research", seed=0):
    random = np.random.default_rng(1)
    centres = 3 * random.normal(size=(CLASSES, DIMENSION))

    def part(count):
        labels = random.integers(0, CLASSES, count)
        return Data((centres[labels] + random.normal(size=(count, DIMENSION))).astype(np.float32), labels)

    terms = Terms("public", "add_remove", "record", 1, 1e-5, "given", mode=mode)
    return Arena(part(400), part(200), Constants(400, CLASSES, DIMENSION), terms, Resources(threads=1), seed)


def contestant(name):
    return Contestant(name, learner_of({"name": name}), Sweep(search=Search(steps=(2, 6))), Fit(), 1.0)


@pytest.mark.parametrize("name", ["dp_gd", "dp_zo", "dp_ls", "hyfree_dp"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_everything_a_contestant_does_is_within_its_total(monkeypatch, name, epsilon):
    spent = []
    honest = contests.trainings

    def watched(place, who, asks, names):
        assert len(set(names)) == len(asks)
        spent.extend((own.split()[2], ask.mu) for own, ask in zip(names, asks, strict=True))
        return honest(place, who, asks, names)

    monkeypatch.setattr(contests, "trainings", watched)
    row = compete(arena(), contestant(name), epsilon, repeats=2)
    for repeat in "01":
        mus = [mu for own, mu in spent if own == repeat]
        scores = [gdp.mu(share * epsilon, 1e-5) * math.sqrt(0.05) for share in (0.1, 0.2) for _ in range(3)]
        scores = scores if len(mus) > 1 else []
        assert len(mus) == row.trainings == (1 if name == "hyfree_dp" else 7)
        assert math.sqrt(sum(mu**2 for mu in mus + scores)) == pytest.approx(gdp.mu(epsilon, 1e-5), rel=1e-9)
        assert row.search == pytest.approx(1 - mus[-1] ** 2 / gdp.mu(epsilon, 1e-5) ** 2)


def test_a_contest_can_be_repeated_and_a_seed_changes_it():
    one, again, other = (
        [
            (row.learner, row.epsilon, row.mean, row.sd)
            for row in contest(place, [contestant("dp_adam")], 3, [1.0])
        ]
        for place in (arena(), arena(), arena(seed=1))
    )
    assert one == again != other


def test_more_budget_gives_better_models_than_a_guess():
    low, high = (row.mean for row in contest(arena(), [contestant("dp_gd")], 3, [0.01, 8.0]))
    assert low < high
    assert high > 0.9 > 1 / CLASSES


def test_private_data_cannot_enter():
    with pytest.raises(Refused, match="research"):
        compete(arena(mode="release"), contestant("dp_gd"), 1.0, repeats=1)


def row(learner, epsilon, mean, sd=0.01):
    return asdict(Row(learner, epsilon, mean, sd, 4, 7, 1.5, 0.2))


ROWS = [
    row("dp_gd", 1.0, 0.8),
    row("a", 1.0, 0.9),
    row("b", 1.0, 0.805),
    row("dp_gd", 2.0, 0.9),
    row("a", 2.0, 0.7),
]
ROWS.append(row("b", 2.0, 0.85))


def test_a_verdict_needs_more_than_chance():
    assert verdict(ROWS, 1.0) == "- ε = 1: dp_gd loses to a, wins over none."
    assert verdict(ROWS, 2.0) == "- ε = 2: dp_gd loses to none, wins over a, b."


def test_tables_and_figure_hold_every_row(tmp_path):
    write_csv(ROWS, tmp_path / "t.csv")
    write_markdown(ROWS, "some data", tmp_path / "t.md")
    plot_learners(ROWS, "some data", tmp_path / "t.svg")
    with (tmp_path / "t.csv").open() as file:
        assert [float(line["mean"]) for line in csv.DictReader(file)] == [own["mean"] for own in ROWS]
    text = (tmp_path / "t.md").read_text()
    assert "| b | 0.805 ± 0.010 | 0.850 ± 0.010 | 7 | 1.5 |" in text
    assert re.findall(r"\*\*(\S+) ±", text) == ["0.900", "0.900"]
    assert text.endswith(verdict(ROWS, 2.0) + "\n")
    write_markdown([{**own, "repeats": 1} for own in ROWS], "some data", tmp_path / "one.md")
    assert "loses" not in (tmp_path / "one.md").read_text()
    svg = (tmp_path / "t.svg").read_text()
    assert all(f'id="learner-{name}"' in svg for name in ("dp_gd", "a", "b"))
