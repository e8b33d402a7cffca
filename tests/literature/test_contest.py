"""Comparisons on public data: what an entry is charged, that trainings share nothing but passes,
and what tables say."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import asdict, replace

import numpy as np
import pytest
from counted import right_of

from dpladder.config.learners import learner_of
from dpladder.config.model import Resources
from dpladder.config.sweep_sections import Fit, Rung, Search, Sweep
from dpladder.errors import BadInput, Refused
from dpladder.learn.counts import right_counts
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.learn.scorers import ClassScorer
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import gaussian
from dpladder.privacy.ledger.state import Terms
from dpladder.research.arena import Arena, PublicMeter
from dpladder.search.bench import NamedAsk, answers
from dpladder.search.protocol import Ask, Setting
from dpladder_papers.jobs.compare_hpo import ablations, add_rerr, compare
from dpladder_papers.jobs.compare_learners import entries
from dpladder_papers.research import contest as contests
from dpladder_papers.research.comparison_table import write_csv
from dpladder_papers.research.contest import Standing, contest, oracle
from dpladder_papers.research.contestants import entry
from dpladder_papers.research.ladder import LadderSearcher
from dpladder_papers.research.learners_figure import plot_learners, verdict, write_markdown
from dpladder_papers.research.searches_figure import write_results

CLASSES, DIMENSION = 3, 6
SEARCH = Search(eta=(0.01, 5.0), steps=(2, 6))


def arena(mode="research", seed=0, threads=1):
    random = np.random.default_rng(1)
    centres = 3 * random.normal(size=(CLASSES, DIMENSION))

    def part(count):
        labels = random.integers(0, CLASSES, count)
        return Data(
            (centres[labels] + random.normal(size=(count, DIMENSION))).astype(np.float32), labels
        )

    terms = Terms("public", "add_remove", "record", 1, 1e-5, "given", mode=mode)
    constants = Constants(400, CLASSES, DIMENSION)
    return Arena(part(400), part(200), constants, terms, Resources(threads=threads), seed)


def learning(name, *epsilons):
    learner = learner_of({"name": name})
    rungs = tuple(Rung(epsilon=epsilon, trials=3) for epsilon in (0.1, 0.2))
    return entries(
        name, learner, Sweep(rungs=rungs, search=SEARCH), Fit(), 1.0, arena().constants, epsilons
    )


def searching(name, epsilon=1.0):
    setting = Setting(epsilon, SEARCH, arena().constants)
    return entry(name, setting, learner_of({"name": "dp_gd"}))


def asked(learner="dp_gd", **ask):
    """A training of r = 1 and one of r = 20."""
    return [
        NamedAsk(f"of {r}", Ask(r, 2.0, **ask), learner_of({"name": learner}), SEARCH)
        for r in (1.0, 20.0)
    ]


def trained(place, trainings):
    return answers(contests.bench_of(place), trainings)[0]


@pytest.fixture
def drawn(monkeypatch):
    """Every array of normals that a contest draws, at scale 1, by name."""
    kept = []
    honest = PublicMeter.noise

    def watched(meter, name, shape):
        found = honest(meter, name, shape)
        kept.append((name, found.values))
        return found

    monkeypatch.setattr(PublicMeter, "noise", watched)
    return kept


@pytest.mark.parametrize("name", ["dp_gd", "dp_zo", "dp_ls", "hyfree_dp"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_everything_a_learner_does_is_within_its_total(monkeypatch, name, epsilon):
    spent = []
    honest = contests.answers

    def watched(place, trainings):
        assert len({training.name for training in trainings}) == len(trainings)
        spent.extend((one.search.seed, one.ask.mu) for one in trainings)
        return honest(place, trainings)

    monkeypatch.setattr(contests, "answers", watched)
    [row] = contest(arena(), learning(name, epsilon), repeats=2)
    for repeat in (0, 1):
        mus = [mu for own, mu in spent if own == repeat]
        scores = [
            gdp.mu_from_epsilon(share * epsilon, 1e-5) * math.sqrt(0.05)
            for share in (0.1, 0.2)
            for _ in range(3)
        ]
        scores = scores if len(mus) > 1 else []
        assert len(mus) == row.trainings == (1 if name == "hyfree_dp" else 7)
        assert math.sqrt(sum(mu**2 for mu in mus + scores)) == pytest.approx(
            gdp.mu_from_epsilon(epsilon, 1e-5), rel=1e-9
        )
        assert row.search == pytest.approx(
            1 - mus[-1] ** 2 / gdp.mu_from_epsilon(epsilon, 1e-5) ** 2
        )


def untimed(rows):
    return [replace(row, seconds=0.0) for row in rows]


@pytest.mark.ci
def test_a_contest_can_be_repeated_and_a_seed_changes_it():
    entered = [
        *learning("dp_adam", 0.2),
        searching("liu_talwar", 0.2),
        searching("propose_test", 0.2),
    ]
    one, again, other = (
        untimed(contest(place, entered, 3)) for place in (arena(), arena(), arena(seed=1))
    )
    assert one == again
    assert all(mine != yours for mine, yours in zip(one, other, strict=True))


def test_no_draw_is_made_twice(drawn):
    contest(
        arena(),
        [searching("ladder"), searching("liu_talwar", 1.0), searching("liu_talwar", 2.0)],
        3,
    )
    values = [array.round(9).tobytes() for _, array in drawn]
    assert len(values) > 100
    assert len(set(values)) == len(values)


def test_noise_is_as_large_as_declared_and_independent_across_trainings(drawn):
    contest(arena(), [searching("random_search")], 40)
    steps = [array.ravel() for name, array in drawn if name == "noise"]
    assert abs(np.corrcoef(steps) - np.eye(len(steps))).mean() < 0.3
    meter = PublicMeter([gaussian("noise", 3.0, 1.0, (10_000,))], arena(), "one")
    assert np.std(meter.publish("noise", np.zeros(10_000))) == pytest.approx(3.0, rel=0.03)


@pytest.mark.parametrize("learner", ["dp_gd", "dp_adam", "dp_ls"])
def test_trainings_that_share_a_pass_are_what_they_are_alone(learner):
    """And those on other records keep to theirs."""
    half = np.arange(400) < 200
    trainings = [*asked(learner), *asked(learner, trained=half, counted=half, share=0.5)]
    together = trained(arena(), trainings)
    for training, shared in zip(trainings, together, strict=True):
        [alone] = trained(arena(), [training])
        for mine, yours in zip(alone.weights, shared.weights, strict=True):
            np.testing.assert_allclose(mine, yours, rtol=1e-4, atol=1e-6)
        assert alone.correct == shared.correct


def test_cores_change_no_training():
    """One core trains both together, two cores each alone, and the order of the answers is that of
    the questions."""
    one, two = (trained(arena(threads=threads), asked()) for threads in (1, 2))
    for mine, yours in zip(one, two, strict=True):
        np.testing.assert_allclose(mine.weights[0], yours.weights[0], rtol=1e-4, atol=1e-6)


def test_a_training_sees_the_records_that_its_search_names_and_no_others():
    place = arena()
    half = np.arange(400) < 200
    part = replace(
        place.train, features=place.train.features[half], labels=place.train.labels[half]
    )
    own = trained(place, asked(trained=half, counted=~half, share=0.5))
    smaller = replace(place, train=part, constants=replace(place.constants, n0=200))
    expected = trained(smaller, asked())
    for mine, yours in zip(own, expected, strict=True):
        np.testing.assert_allclose(mine.weights[0], yours.weights[0], rtol=1e-5)
        others = place.train.features[~half], place.train.labels[~half]
        assert mine.correct == right_of(ClassScorer(), mine.weights, *others)


@pytest.mark.parametrize("shapes", [[(3, 6)], [(3, 7)], [(5, 6), (3, 5)]])
def test_heads_counted_together_are_counted_right(shapes):
    """Linear ones, with a bias too, and those of two layers."""
    random = np.random.default_rng(2)
    heads = [
        tuple(random.normal(size=shape).astype(np.float32) for shape in shapes) for _ in range(40)
    ]
    test = arena().test
    alone = [right_of(ClassScorer(), head, test.features, test.labels) for head in heads]
    assert right_counts(ClassScorer(), heads, Data(test.features, test.labels)).tolist() == alone
    assert len(set(alone)) > 10


def test_more_budget_gives_better_models_than_a_guess_and_the_oracle_better_ones():
    low, high = (row.mean for row in contest(arena(), learning("dp_gd", 0.01, 8.0), 3))
    assert low < high
    assert high > 0.9 > 1 / CLASSES
    entry = searching("ladder", 8.0)
    assert oracle(arena(), entry.setting, entry.learner) > 0.9


def test_private_data_cannot_enter():
    with pytest.raises(Refused, match="research"):
        contest(arena(mode="release"), learning("dp_gd", 1.0), repeats=1)
    with pytest.raises(Refused, match="research"):
        oracle(arena(mode="release"), searching("ladder").setting, searching("ladder").learner)


def test_at_a_large_delta_ladders_that_use_the_total_up_are_left_out_and_say_so():
    setting, learner = searching("ladder").setting, searching("ladder").learner
    every = {one.name for one in ablations(setting, learner)}
    setting = replace(setting, constants=replace(setting.constants, n0=100, delta=1e-3))
    kept = ablations(setting, learner)
    dearer = "dearer rungs, at 0.3 and 0.4 of the total"
    assert every - {one.name for one in kept} == {dearer}
    for one in kept:
        one.way.declare(one.setting)
    with pytest.raises(BadInput, match=r"0.3, 0.4 of epsilon = 1, use all .* smaller shares"):
        LadderSearcher(((0.3, 3), (0.4, 3))).declare(setting)


def test_every_way_to_search_has_its_row_and_so_has_every_ablation():
    entry = searching("ladder")
    rows, varied = compare(
        arena(), entry.setting, entry.learner, 1, ["ladder", "random_search"], True
    )
    assert [row["name"] for row in rows] == ["ladder", "random_search"]
    assert [row["name"] for row in varied] == [
        one.name for one in ablations(entry.setting, entry.learner)
    ]
    assert rows[1]["rerr"] in (0.0, pytest.approx(math.nan, nan_ok=True))


def row(learner, epsilon, mean, sd=0.01):
    return asdict(Standing(learner, epsilon, mean, sd, mean - 0.1, 4, 7.0, 1.5, 0.2))


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
        assert [float(line["mean"]) for line in csv.DictReader(file)] == [
            own["mean"] for own in ROWS
        ]
    text = (tmp_path / "t.md").read_text()
    assert "| b | 0.805 ± 0.010 | 0.850 ± 0.010 | 7 | 1.5 |" in text
    assert re.findall(r"\*\*(\S+) ±", text) == ["0.900", "0.900"]
    assert text.endswith(verdict(ROWS, 2.0) + "\n")
    write_markdown([{**own, "repeats": 1} for own in ROWS], "some data", tmp_path / "one.md")
    assert "loses" not in (tmp_path / "one.md").read_text()
    svg = (tmp_path / "t.svg").read_text()
    assert all(f'id="learner-{name}"' in svg for name in ("dp_gd", "a", "b"))


def test_rerr_is_the_share_of_the_lead_over_random_search():
    closed = add_rerr(
        Standing("a", 1.0, 0.8, 0.01, 0.7, 4, 7.0, 1.5, 0.2), floor=0.7, top=0.9, delta=1e-5
    )
    assert closed["rerr"] == pytest.approx(0.5)
    assert closed["oracle_epsilon"] == pytest.approx(4.21, abs=0.01)
    assert math.isnan(
        add_rerr(Standing("a", 1.0, 0.8, 0.01, 0.7, 4, 7.0, 1.5, 0.2), 0.9, 0.9, 1e-5)["rerr"]
    )


def test_tables_and_figure_of_searches_hold_every_row(tmp_path):
    rows = [{**own, "rerr": 0.5, "oracle": 0.95, "oracle_epsilon": 4.2} for own in ROWS]
    rows[0]["rerr"] = math.nan
    write_results(rows, "some data", tmp_path / "t.csv", tmp_path / "t.md", tmp_path / "t.svg")
    with (tmp_path / "t.csv").open() as file:
        assert [float(line["oracle"]) for line in csv.DictReader(file)] == [0.95] * len(rows)
    text = (tmp_path / "t.md").read_text()
    assert "| total ε | 1 | 2 |" in text
    assert "| a | **0.900** | 0.700 |" in text
    assert "| oracle | 0.950 | 0.950 |" in text
    assert "| dp_gd | 0.800 | 0.010 | 0.700 | – | 7.0 | 1.50 | 20% |" in text
    details = text[text.index("Total ε = 1") : text.index("Total ε = 2")]
    assert re.findall(r"^\| (\w+) \| 0", details, re.M) == ["a", "b", "dp_gd"]
    assert all(f">{name}<" in (tmp_path / "t.svg").read_text() for name in ("dp_gd", "a", "b"))
