"""Every figure is the same bytes for the same releases, names its axes, and leaves no point out."""

from __future__ import annotations

import dataclasses
import re
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import DELTA, KAPPA, POOLED, SHARE, from_json, statement, summary

from dpladder.config.sweep_sections import Fit, Search
from dpladder.learn.effects import Effect, Effects
from dpladder.privacy.accounting import gdp
from dpladder.privacy.statement.documents import Statement
from dpladder.report import ladder_figure, pareto_figure, shift_figure
from dpladder.report.budget_figure import COLOURS, plot_budget
from dpladder.report.curves_figure import draw_effects
from dpladder.report.pareto_figure import frontier
from dpladder.section import from_document
from dpladder_papers.research import distance_figure, gap_figure

pytestmark = pytest.mark.filterwarnings("error")
SVG = "{http://www.w3.org/2000/svg}"


plot_distance, plot_gap, tried = map(
    from_json,
    (
        distance_figure.plot_distance,
        gap_figure.plot_gap,
        gap_figure.scores_by_place,
    ),
)
plot_ladder, plot_shift, plot_pareto = map(
    from_json,
    (
        ladder_figure.plot_ladder,
        shift_figure.plot_shift,
        pareto_figure.plot_pareto,
    ),
)

# --- reading a figure back ------------------------------------------------------------------------


def drawn(plot, document, folder):
    path = folder / f"{plot.__name__}.svg"
    plot(document, path)
    return ElementTree.parse(path).getroot()


def words(svg):
    return ["".join(text.itertext()) for text in svg.iter(f"{SVG}text")]


def marks(svg, group):
    """Where the markers of a group stand, in points from the upper left."""
    found = svg.find(f".//{SVG}g[@id='{group}']")
    return (
        []
        if found is None
        else [(float(use.get("x")), float(use.get("y"))) for use in found.iter(f"{SVG}use")]
    )


def widths(svg, colour):
    """Widths of the bars in one colour, from top to bottom. The legend's patches are not clipped,
    bars are."""
    paths = [path for path in svg.iter(f"{SVG}path") if path.get("clip-path")]
    filled = [path.get("d") for path in paths if f"fill: {colour.lower()}" in path.get("style", "")]
    corners = [np.array(re.findall(r"[-.\d]+", d), float).reshape(-1, 2) for d in filled]
    return [
        float(np.ptp(x))
        for x, _ in sorted((c.T for c in corners), key=lambda corner: corner[1].min())
    ]


def on_a_log_axis(places, values):
    """Whether places are a straight line of the values' logarithms."""
    logs = np.log(values)
    low, high = np.argmin(logs), np.argmax(logs)
    scale = (places[high] - places[low]) / (logs[high] - logs[low] or 1)
    return np.allclose(places[low] + scale * (logs - logs[low]), places, atol=0.02)


def rescored(one, score):
    """The same summary with every trial's score replaced."""
    rungs = [
        rung | {"trials": [trial | {"score": score(trial)} for trial in rung["trials"]]}
        for rung in one["rungs"]
    ]
    return one | {"rungs": rungs}


TOTALS = (0.5, 1, 2, 4, 8)
DOCUMENTS = {
    "demo": summary(),
    "one trial": summary(((0.1, 1),)),
    "one rung": summary(((0.1, 5),), fit=POOLED),
    "several targets": summary(((0.05, 3), (0.1, 3), (0.2, 3)), TOTALS, seed=5),
    "several pooled": summary(totals=TOTALS, fit=POOLED),
    "many rungs": summary(
        tuple((0.02 * 1.3**k, 6) for k in range(9)), (2,), Fit(using="best", degree=2), seed=1
    ),
    "one kappa": summary(fit=Fit(), search=KAPPA),
    "against mu": summary(fit=Fit(using="best", against="mu")),
    "one place to look": summary(search=Search(eta=(0.1, 0.1), steps=(10, 10))),
    "no noise": summary(public=True, totals=TOTALS),
    "equal scores": rescored(summary(), lambda trial: 2000.0),
    "negative scores": rescored(summary(), lambda trial: -50.0 - trial["trial"]),
}
each_document = pytest.mark.parametrize("one", DOCUMENTS.values(), ids=DOCUMENTS)


def plot_stated(document, path):
    plot_budget(from_document(Statement, document), path)


def plot_one_statement(one, path):
    plot_stated(statement(one), path)


def plot_several_gaps(one, path):
    plot_gap([one, summary(seed=1), summary(seed=2)], path)


def further(one):
    """The same models on two further tests, and on one of them blurred."""

    def tested(target, less):
        return target["test"] | {"accuracy": target["test"]["accuracy"] - less, "accuracy_sd": 0.0}

    def also(target):
        plain = [("far", None, 0.3), ("near", None, 0.1)]
        dim = [(f"dim-{severity}", severity, 0.3 + severity / 50) for severity in (1, 3, 5)]
        return [
            {
                "name": name,
                "of": severity and "far",
                "corruption": severity and "blur",
                "severity": severity,
                "test": tested(target, less),
            }
            for name, severity, less in (*plain, *dim)
        ]

    return one | {"targets": [target | {"also": also(target)} for target in one["targets"]]}


def without_noise(one):
    last = one["targets"][-1]
    also = {found["name"]: found["test"] for found in last["also"]}
    return one | {"open": {"r": 3.0, "test": last["test"], "also": also}}


def plot_further(one, path):
    plot_shift(without_noise(further(one)), path)


def moved(one, place=1):
    """The same, as research tells how far each model went."""
    return one | {
        "targets": [
            target | {"distance": place * target["r_star"] / 3} for target in one["targets"]
        ]
    }


def plot_several_distances(one, path):
    plot_distance([moved(one), moved(summary(totals=TOTALS, experiment="b"), 2)], path)


def plot_one_experiment(one, path):
    plot_pareto([one], {}, path)


def plot_several_experiments(one, path):
    plot_pareto(
        [one, summary(totals=TOTALS, experiment="b"), summary(experiment="c", lineage="other")],
        {},
        path,
    )


LABELS = {
    plot_ladder: {
        "ε of one trial or final training (δ = 1e-05)",
        "total step size r = η·T",
        "total ε of the final model",
    },
    plot_one_statement: {"share of the budget, in μ²"},
    plot_further: {
        "total ε, search included (δ = 1e-05)",
        "accuracy, 95 % intervals",
        "severity of blur",
    },
    plot_several_experiments: {
        "total ε, search included (δ = 1e-05)",
        "test accuracy, 95 % intervals",
    },
    plot_several_distances: {"total ε, search included", "total step size r = η·T"},
    plot_several_gaps: {"ε of one trial", "r over its rung's best", "score less its rung's best"},
}
each_figure = pytest.mark.parametrize("plot", LABELS)


# --- every figure ---------------------------------------------------------------------------------


@pytest.mark.ci
@each_figure
def test_the_same_releases_give_the_same_bytes_whatever_the_users_settings(plot, tmp_path):
    plot(DOCUMENTS["demo"], tmp_path / "a.svg")
    with matplotlib.rc_context({"font.size": 23, "svg.hashsalt": "other", "axes.grid": True}):
        plot(DOCUMENTS["demo"], tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "date" not in (tmp_path / "a.svg").read_text("utf-8")


@pytest.mark.few(5)
@each_figure
def test_a_figure_names_its_axes(plot, tmp_path):
    assert LABELS[plot] <= set(words(drawn(plot, DOCUMENTS["demo"], tmp_path)))


@pytest.mark.few(4)
@each_figure
def test_no_two_parts_of_a_figure_have_one_id(plot, tmp_path):
    ids = [
        part.get("id")
        for part in drawn(plot, DOCUMENTS["several targets"], tmp_path).iter()
        if part.get("id")
    ]
    assert len(ids) == len(set(ids))


# --- the ladder -----------------------------------------------------------------------------------


@pytest.mark.few(4)
@each_document
def test_the_ladder_shows_every_trial_where_it_belongs_and_rings_the_best(one, tmp_path):
    svg = drawn(plot_ladder, one, tmp_path)
    trials = [(rung, trial) for rung in one["rungs"] for trial in rung["trials"]]
    axis = {"kappa": "mu"}.get(against := one["targets"][0]["fit"]["against"], against)
    places = marks(svg, "trials") + marks(svg, "r_star")
    expected = [(rung[axis], trial["r"]) for rung, trial in trials]
    expected += [(target[f"{axis}_final"], target["r_star"]) for target in one["targets"]]
    assert len(places) == len(expected)
    for place, value in zip(zip(*places, strict=True), zip(*expected, strict=True), strict=True):
        assert on_a_log_axis(place, value)
    assert len(marks(svg, "best")) == len(one["rungs"])
    assert set(marks(svg, "best")) <= set(places)


@pytest.mark.ci
def test_the_ladder_says_what_the_fit_did(tmp_path):
    fallen = " ".join(words(drawn(plot_ladder, DOCUMENTS["one trial"], tmp_path)))
    assert (
        "main: r proportional to epsilon (too few distinct values of epsilon for a line)" in fallen
    )
    clamped = words(drawn(plot_ladder, DOCUMENTS["several targets"], tmp_path))
    assert "r* = 500, the limit" in clamped


# --- the budget -----------------------------------------------------------------------------------


def budget(tmp_path, *summaries, change=lambda line: line, **terms):
    document = statement(*summaries, **terms)
    dataset = document["datasets"]["mnist5k"]
    dataset["spends"] = [change(entry) for entry in dataset["spends"]]
    return drawn(plot_stated, document, tmp_path)


def whole(svg):
    """The width of a full budget."""
    return widths(svg, "#EFEFEF")[0]


def test_the_final_training_takes_what_the_search_leaves(tmp_path):
    several = DOCUMENTS["several targets"]
    svg = budget(tmp_path, several)
    finals = np.array(widths(svg, COLOURS["final training"])) / whole(svg)
    searches = [target["search_share"] for target in several["targets"]]
    assert finals == pytest.approx([1 - share for share in searches], abs=1e-4)
    assert [f"100.0%, {share:.1%} before training" for share in searches] == [
        w for w in words(svg) if "before" in w
    ]


def test_the_trials_scores_have_their_share(tmp_path):
    svg = budget(tmp_path, DOCUMENTS["demo"])
    expected = SHARE * DOCUMENTS["demo"]["targets"][0]["search_share"]
    assert widths(svg, COLOURS["trial scores"])[0] / whole(svg) == pytest.approx(expected, abs=1e-4)


def test_each_part_has_its_own_bar_and_a_replaced_record_bears_two(tmp_path):
    names = words(budget(tmp_path, DOCUMENTS["demo"]))
    assert {"main, ε = 1: train", "main, ε = 1: test"} <= set(names)
    assert "main, ε = 1: train + test" in words(
        budget(tmp_path, DOCUMENTS["demo"], relation="replace_one")
    )


def test_what_reads_every_part_stands_in_every_bar(tmp_path):
    svg = budget(tmp_path, DOCUMENTS["demo"], change=lambda line: line | {"partition": "all"})
    assert "main, ε = 1: all data" in words(svg)
    svg = budget(
        tmp_path,
        DOCUMENTS["demo"],
        change=lambda line: line | ({"partition": "all"} if line["rule"] == "train_final" else {}),
    )
    assert len(widths(svg, COLOURS["final training"])) == 2


def test_another_experiments_charges_stay_in_its_own_bars(tmp_path):
    other = summary(experiment="other", ladder=((0.3, 3),))
    svg = budget(tmp_path, DOCUMENTS["demo"], other)
    shares = [one["targets"][0]["search_share"] for one in (DOCUMENTS["demo"], other)]
    finals = np.array(widths(svg, COLOURS["final training"])) / whole(svg)
    assert finals == pytest.approx([1 - share for share in shares], abs=1e-4)


def test_a_mechanism_without_mu_is_drawn_by_its_epsilon(tmp_path):
    plain = budget(tmp_path, DOCUMENTS["demo"])
    bounded = budget(tmp_path, DOCUMENTS["demo"], change=lambda line: line | {"mu": None})
    for svg in (plain, bounded):
        assert widths(svg, COLOURS["final training"]) == pytest.approx(
            widths(plain, COLOURS["final training"]), abs=1e-4
        )


def test_life_is_shown_only_where_it_has_a_limit(tmp_path):
    spent = statement(DOCUMENTS["demo"])["datasets"]["mnist5k"]["mu"]
    svg = budget(tmp_path, DOCUMENTS["demo"])
    share = widths(svg, COLOURS["this workflow"])[0] / whole(svg)
    assert share == pytest.approx((spent / gdp.mu_from_epsilon(8.0, DELTA)) ** 2, abs=1e-4)
    assert not any(
        "life" in word for word in words(budget(tmp_path, DOCUMENTS["demo"], lifetime=None))
    )


def test_only_what_was_spent_is_explained(tmp_path):
    alone = statement(DOCUMENTS["demo"])
    assert "outside this workflow" in words(drawn(plot_stated, alone, tmp_path))
    nothing = {"epsilon": 0.0, "mu": 0.0, "jobs": 0, "spends": []}
    alone["datasets"]["mnist5k"]["outside_this_dag"] = nothing
    assert "outside this workflow" not in words(drawn(plot_stated, alone, tmp_path))


# --- privacy and utility --------------------------------------------------------------------------


@pytest.mark.few(4)
@each_document
def test_each_tested_model_is_one_point_with_its_accuracy(one, tmp_path):
    svg = drawn(plot_one_experiment, one, tmp_path)
    tested = one["targets"]
    places = marks(svg, f"models-{one['experiment']}")
    assert len(places) == len(tested)
    assert {f"{target['test']['accuracy']:.1%}" for target in tested} <= set(words(svg))
    assert on_a_log_axis([x for x, _ in places], [target["epsilon"] for target in tested])


@pytest.mark.ci
def test_exact_counts_are_not_called_noised(tmp_path):
    said = words(drawn(plot_ladder, DOCUMENTS["no noise"], tmp_path))
    assert "score: correct predictions" in said


def test_all_experiments_stand_on_the_panel_of_their_data(tmp_path):
    svg = drawn(plot_several_experiments, DOCUMENTS["demo"], tmp_path)
    assert [len(marks(svg, f"models-{name}")) for name in ("main", "b", "c")] == [1, 5, 1]
    assert {"mnist5k", "other", "main", "b", "c", "frontier"} <= set(words(svg))


@pytest.mark.ci
def test_every_further_test_is_a_line_and_every_severity_a_point(tmp_path):
    one = further(summary(totals=TOTALS))
    svg = drawn(plot_shift, one, tmp_path)
    for name in ("test part", "far", "near"):
        assert len(marks(svg, f"shift-epsilon-{name}")) == len(TOTALS)
    assert len(marks(svg, "shift-dim-total ε = 0.5")) == 4  # with the images as they are
    assert "ε = ∞: no privacy" not in words(svg)
    assert "ε = ∞: no privacy" in words(drawn(plot_shift, without_noise(one), tmp_path))


@pytest.mark.ci
def test_the_worst_group_of_a_test_is_drawn_beside_it(tmp_path):
    one = further(summary(totals=TOTALS))
    for target in one["targets"]:
        target["also"][1]["test"] |= {"worst": {"name": "ill", "value": 0.25, "sd": 0.02}}
    svg = drawn(plot_shift, one, tmp_path)
    worst, mean = (marks(svg, f"shift-epsilon-{name}") for name in ("near, worst group", "near"))
    assert len(worst) == len(TOTALS)
    assert len({height for _, height in worst}) == 1
    # y grows downwards
    assert min(height for _, height in worst) > max(height for _, height in mean)
    assert "near, worst group" in words(svg)
    assert "far, worst group" not in words(svg)


def test_a_language_model_off_its_distribution_has_no_accuracy(tmp_path):
    one = further(summary(totals=TOTALS))
    for target in one["targets"]:
        told = {"value": 8.5, "low": 8.0, "high": 9.0, "loss": 2.1, "loss_sd": 0.1, "most": 10.0}
        target["test"]["perplexity"] = told
    assert any(
        text.startswith("1 − loss / log of all words")
        for text in words(drawn(plot_shift, one, tmp_path))
    )


def test_every_model_is_as_far_as_it_went(tmp_path):
    one = moved(summary(totals=TOTALS))
    svg = drawn(lambda document, path: plot_distance([document], path), one, tmp_path)
    assert len(marks(svg, "epsilon-0")) == len(marks(svg, "r_star-0")) == len(TOTALS)
    heights = sorted((y for _, y in marks(svg, "epsilon-0")), reverse=True)
    distances = sorted(target["distance"] for target in one["targets"])
    assert on_a_log_axis(heights, distances)


@given(
    st.lists(
        st.tuples(st.sampled_from([0.5, 1, 2, 4]), st.sampled_from([0.1, 0.2, 0.3, 0.4])),
        min_size=1,
    )
)
def test_the_frontier_is_what_no_other_model_beats(points):
    best = frontier(points)

    def beaten(point):
        return any(p != point and p[0] <= point[0] and p[1] >= point[1] for p in points)

    assert best == sorted({point for point in points if not beaten(point)})


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "name", ["one trial", "one place to look", "many rungs", "equal scores", "negative scores"]
)
def test_what_a_ladder_tried_is_drawn_and_the_gap_in_r_is_below_the_best(name, tmp_path):
    one = DOCUMENTS[name]
    places = tried([one, one])
    assert len(places) == len(
        {(rung["epsilon"], t["r"]) for rung in one["rungs"] for t in rung["trials"]}
    )
    assert places == tried([one])  # a repeat that found the same changes nothing
    best = {
        rung["epsilon"]: max(t["score"] / t["counted"] for t in rung["trials"])
        for rung in one["rungs"]
    }
    assert max(place.score - best[place.epsilon] for place in places) <= 1e-12
    drawn(plot_gap, [one], tmp_path)


def test_models_at_one_epsilon_stand_side_by_side_and_repeats_at_their_mean(tmp_path):
    names = ["a", "a-2", "a-3", "b", "c"]
    several = [summary(experiment=name, seed=place) for place, name in enumerate(names)]
    cells = {name: {"experiment": name[0]} for name in names}
    svg = drawn(lambda document, path: plot_pareto(document, cells, path), several, tmp_path)
    places = [marks(svg, f"models-{name}") for name in "abc"]
    assert [len(place) for place in places] == [1, 1, 1]
    across = sorted(x for [(x, _)] in places)
    assert min(np.diff(across)) > 5
    assert svg.find(f".//{SVG}g[@id='models-a-2']") is None
    assert "test accuracy, 95 % intervals over repeats" in words(svg)


def test_each_mark_says_its_values_and_the_figure_all_of_them(tmp_path):
    """To a pointer that rests on it, and to who cannot see it."""
    svg = drawn(plot_one_experiment, DOCUMENTS["several targets"], tmp_path)
    titles = [title.text for title in svg.iter(f"{SVG}title")]
    shares = [target["test"]["accuracy"] for target in DOCUMENTS["several targets"]["targets"]]
    assert titles == [
        f"main: test accuracy {share:.1%} at total ε {total:g}"
        for share, total in zip(shares, TOTALS, strict=True)
    ]
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == "; ".join(titles)
    ladder = drawn(plot_ladder, DOCUMENTS["demo"], tmp_path)
    [trials] = [g for g in ladder.iter(f"{SVG}g") if g.get("id") == "trials"]
    said = [title.text for title in trials.iter(f"{SVG}title")]
    assert [text.partition(":")[0] for text in said] == [
        f"rung {rung}, trial {trial}" for rung in range(2) for trial in range(3)
    ]


CURVE = Effect(("age",), ((0.0, 50.0, 100.0),), ((-1.0, 0.0, 1.0),), (0.1, 0.2, 0.1), 2.0)
BARS = Effect(("sex",), (("f", "m"),), ((0.5, -0.5),), (), 1.0)
CROSS = Effect(("age", "sex"), ((0.0, 9.0), ("f", "m")), ((0.1, 0.2, -0.1, -0.2),), (), 0.4)


def test_each_column_has_a_panel_and_its_curve_rises_where_the_effect_does(tmp_path):
    effects = Effects(("ill",), "log-odds", (CURVE, BARS, CROSS))
    drawings = [
        drawn(lambda one, path: draw_effects(one, "main, total ε = 1", path), effects, tmp_path)
        for _ in range(2)
    ]
    assert ElementTree.tostring(drawings[0]) == ElementTree.tostring(drawings[1])
    text = words(drawings[0])
    assert {"age", "sex", "age x sex", "effect on ill, in log-odds", "f", "m"} <= {*text}
    [line] = drawings[0].findall(f".//{SVG}g[@id='curve-0-age']/{SVG}path")
    points = np.array(re.findall(r"[-.\d]+", line.get("d")), float).reshape(-1, 2)
    assert (np.diff(points[:, 0]) > 0).all()
    assert (np.diff(points[:, 1]) < 0).all()  # up


def test_of_many_columns_those_are_drawn_that_move_predictions_most(tmp_path):
    each = tuple(dataclasses.replace(CURVE, columns=(f"c{place}",)) for place in range(30))
    svg = drawn(
        lambda one, path: draw_effects(one, "", path), Effects(("y",), "kg", each), tmp_path
    )
    assert {text for text in words(svg) if text.startswith("c")} == {f"c{k}" for k in range(24)}


def test_no_panel_is_empty(tmp_path):
    """A row that was not full had panels of nothing, from 0 to 1."""
    each = tuple(dataclasses.replace(CURVE, columns=(f"c{place}",)) for place in range(5))
    svg = drawn(
        lambda one, path: draw_effects(one, "", path), Effects(("y",), "kg", each), tmp_path
    )
    assert len([one for one in svg.iter(f"{SVG}g") if one.get("id", "").startswith("axes_")]) == 5


def test_a_test_of_too_few_records_has_no_mark(tmp_path):
    one = further(summary(totals=TOTALS))
    for target in one["targets"]:
        target["also"][0]["test"] |= {"accuracy_interval": [0.0, 1.0]}
    name = one["targets"][0]["also"][0]["name"]
    assert name in words(drawn(plot_shift, further(summary(totals=TOTALS)), tmp_path))
    assert name not in words(drawn(plot_shift, one, tmp_path))
