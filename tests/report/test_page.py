"""The page in a real browser: nothing is wider than a phone's screen, every word can be read in
light and in dark, every link leads somewhere, and it prints on A4."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browser import browse, browsed
from counted import figures_from
from made_up import EFFECTS, from_json, statement
from made_up import summary as made_up

from dpladder.learn.measures.figures import R2
from dpladder.learn.measures.tested import Perplexity, figure_text, with_interval
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.rounding import NoisedFigure, plain_number
from dpladder.privacy.statement.documents import SealedStatement
from dpladder.privacy.statement.facts import LineageFacts
from dpladder.report import page
from dpladder.report.budget_figure import plot_budget
from dpladder.report.curves_figure import draw_effects
from dpladder.report.ladder_figure import plot_ladder
from dpladder.report.model_chapter import lead_of_search, promise, results, warnings
from dpladder.report.page import Captions, OnPage, write_page
from dpladder.report.reliability_figure import plot_reliability
from dpladder.report.summary import Summary
from dpladder.report.tables import (
    figures_table,
    finals_table,
    findings_table,
    readable,
    spends_table,
    training_table,
    trials_table,
)
from dpladder.section import from_document

PHONE = 390
DARK = ["--blink-settings=preferredColorScheme=0"]
TOTALS = (0.5, 1, 2, 4, 8)
ABOUT = {"main": {"what it does": "tells 10 classes apart", "private data": "a table"}}
CLASSES = [
    {"name": name, "accuracy": share, "accuracy_sd": 0.01, "correct": right, "wrong": wrong}
    | {"sd": 2.0}
    for name, share, right, wrong in (("healthy", 0.98, 941.0, 19.0), ("ill", 0.1, 4.0, 36.0))
]
# In a frame as wide as a phone: what sticks out, what is hard to read, which links lead nowhere.
MEASURE = """
const page = frame.contentDocument, view = frame.contentWindow, root = page.documentElement;
const scrolls = node => node.closest('.scroll') !== null;
const wide = [...page.body.querySelectorAll('*')].filter(node =>
  !(scrolls(node) && !node.classList.contains('scroll')) && node.tagName !== 'svg' &&
  !node.closest('svg') && node.getBoundingClientRect().right > %(width)s + 0.5)
  .map(n => n.outerHTML.slice(0, 80));
const channel = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const parse = text => text.match(/[\\d.]+/g).map(Number);
const behind = node => {
  for (; node; node = node.parentElement) {
    const c = parse(view.getComputedStyle(node).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c;
  }
  return [255, 255, 255];
};
const pale = [...page.querySelectorAll('h1,h2,h3,p,dt,dd,th,td,a,code,figcaption')].filter(node => {
  const a = light(parse(view.getComputedStyle(node).color)), b = light(behind(node));
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
}).map(node => node.outerHTML.slice(0, 80));
const lost = [...page.querySelectorAll('a')].filter(a =>
  !page.getElementById(decodeURIComponent(a.getAttribute('href').slice(1)))).map(a => a.outerHTML);
const bars = [...page.querySelectorAll('.scroll')].filter(n => n.scrollWidth > n.clientWidth);
document.body.textContent = JSON.stringify({wide, pale, lost, scrolled: root.scrollWidth,
  bars: bars.length, reached: bars.filter(n => n.tabIndex === 0).length,
  paper: view.getComputedStyle(page.body).backgroundColor});
"""


def the_page(folder: Path, contests: Sequence[Path] = ()) -> str:
    """Of a made-up run, as the workflow writes it."""
    one = made_up(totals=TOTALS) | {"classes": 10}
    one["targets"][-1]["effects"] = asdict(EFFECTS)
    figures = folder / "results" / "main" / "figures"
    figures.mkdir(parents=True)
    from_json(plot_ladder)(one, figures / "ladder.svg")
    shared = folder / "results" / "figures"
    shared.mkdir()
    stated = statement(one)
    sealed = from_document(SealedStatement, stated | {"id": "ab" * 32, "seal": ""})
    plot_budget(sealed, shared / "budget.svg")
    summarised = from_document(Summary, one)
    none = pd.DataFrame()
    draw_effects(EFFECTS, "main, total ε = 8", figures / "curves.svg")
    of_one = [
        OnPage("curves", "main", page.COLUMNS, none, figures / "curves.svg"),
        OnPage("ladder", "main", page.TUNING, none, figures / "ladder.svg"),
        OnPage("trials", "main", page.TUNING, trials_table(summarised)),
    ]
    of_all = [
        OnPage("finals", "", page.QUALITY, finals_table(summarised)),
        OnPage("training", "", page.TUNING, training_table(summarised), folded=True),
        OnPage("budget", "", page.CHARGES, none, shared / "budget.svg"),
        OnPage("spends", "", page.CHARGES, spends_table(sealed)),
    ]
    path = folder / "report.html"
    write_page(
        sealed,
        [summarised],
        [*of_one, *of_all],
        path,
        about=ABOUT,
        contests=dict.fromkeys(map(str, contests), "dpladder_papers"),
    )
    return path.read_text("utf-8")


def in_browser(page: str, folder: Path, width: int, *options: str) -> dict:
    frame = (
        f'<iframe id="frame" style="border:0;width:{width}px;height:900px" '
        f'srcdoc="{html.escape(page)}"></iframe>'
        "<script>const frame = document.getElementById('frame'); onload = () => "
        f"{{{MEASURE % {'width': width}}}}</script>"
    )
    path = folder / "framed.html"
    path.write_text(f"<!doctype html><body>{frame}</body>", "utf-8")
    found = browse(folder, "--dump-dom", "--virtual-time-budget=5000", *options, path.as_uri())
    return json.loads(html.unescape(re.search(r"<body>(\{.*\})</body>", found, re.S)[1]))


@pytest.mark.ci
@browsed
@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("width", "scheme"), [(PHONE, "light"), (1280, "dark"), (1280, "light"), (PHONE, "dark")]
)
def test_the_page_fits_and_can_be_read(width, scheme, tmp_path):
    found = in_browser(the_page(tmp_path), tmp_path, width, *(DARK if scheme == "dark" else []))
    assert found["wide"] == []
    assert found["scrolled"] <= width
    assert found["pale"] == []
    assert found["lost"] == []
    assert found["bars"] == 0  # rows of a table become cards on a phone
    assert (found["paper"] == "rgb(255, 255, 255)") == (scheme == "light")


@pytest.mark.ci
@browsed
def test_what_is_wider_than_a_small_window_is_reached_by_the_keyboard(tmp_path):
    found = in_browser(the_page(tmp_path), tmp_path, 720)
    assert found["reached"] == found["bars"]
    assert found["scrolled"] <= 720


@pytest.mark.ci
@browsed
@pytest.mark.parametrize("options", [[], DARK], ids=["light", "dark"])
def test_axe_finds_nothing(options, tmp_path):
    """What checkers of accessibility know: names, landmarks, order of headings, contrast."""
    checker = resources.files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")
    run = (
        f"<script>{checker}</script><script>axe.run().then(found => "
        "document.body.textContent = JSON.stringify(found.violations.map(one => "
        "[one.id, one.nodes[0].html.slice(0, 200)])))</script></body>"
    )
    path = tmp_path / "checked.html"
    path.write_text(the_page(tmp_path).replace("</body>", run), "utf-8")
    found = browse(tmp_path, "--dump-dom", "--virtual-time-budget=20000", *options, path.as_uri())
    assert re.search(r"<body>(.*?)\s*</body>", found, re.S)[1] == "[]"


@pytest.mark.ci
@browsed
def test_the_page_prints_on_a4(tmp_path):
    the_page(tmp_path)
    paper = tmp_path / "report.pdf"
    browse(tmp_path, f"--print-to-pdf={paper}", (tmp_path / "report.html").as_uri())
    boxes = re.findall(rb"/MediaBox ?\[ ?0 0 ([\d.]+) ([\d.]+)", paper.read_bytes())
    assert boxes
    assert {(round(float(x)), round(float(y))) for x, y in boxes} <= {(595, 842), (596, 842)}


def test_the_page_says_what_the_model_is_and_how_it_is_used(tmp_path):
    content = the_page(tmp_path)
    for words in (
        "tells 10 classes apart",
        "guessing reaches 10.0%, naming the largest class was not measured "
        "(evaluate.measures: classes)",
        "2026-01-01",
        "fill in the section deployment",
        "dpladder predict results/main/final/8/weights.safetensors",
        "dpladder predict results/main/final/8/weights.safetensors NEW_DATA <span>--explain",
        "dpladder export results/main/final/8/weights.safetensors",
    ):
        assert words in content, words
    assert "In research" not in content  # of what is not there nothing is said
    assert "Warning." not in content


def test_a_single_rung_is_told_as_one():
    one = made_up()
    one["rungs"] = one["rungs"][:1]
    sealed = from_document(SealedStatement, statement(one) | {"id": "ab" * 32, "seal": ""})
    lead = lead_of_search(sealed, [from_document(Summary, one)])
    assert lead.startswith("3 private trials on 1 rung looked for how far to step.")


def test_the_page_shows_its_result_before_any_table(tmp_path):
    [found] = re.findall(r'<p class="result"><strong>(.+?)</strong> (.+?)</p>', the_page(tmp_path))
    test = from_document(Summary, made_up(totals=TOTALS)).targets[-1].test
    assert found[0] == f"{test.accuracy:.1%}"
    low, high = test.score.interval
    assert f"95 % interval {low:.1%} to {high:.1%}, over noise and sampling" in found[1]
    assert found[1].startswith("test accuracy of the final model of main, at a total of ε = 8;")
    assert results([from_document(Summary, made_up())] * 5) == []  # too many to be read at once


def test_an_officer_a_user_and_a_researcher_each_find_their_answer_in_this_order(tmp_path):
    content = the_page(tmp_path)
    answers = (
        "a limit declared beforehand and enforced",
        "<dt>limit for life</dt><dd>ε = 8</dd>",
        "<dt>spent so far</dt><dd>ε = 1.0000</dd>",
        "<dt>who is protected</dt><dd>each record</dd>",
        "test accuracy of the final model of main",
        "Of 2 columns age moves predictions of main most: from -1.25 at 0 to 2.5 at 100, in "
        "log-odds of ill, where 1 more is 2.7 times the odds.",
        "dpladder predict results/main/final/8/weights.safetensors",
        "Who checks what is promised needs no private data: <code>dpladder verify results</code>",
        "6 private trials on 2 rungs looked for how far to step.",
        "<details><summary><h3>How each was trained</h3></summary>",
        "charges on mnist5k were paid here. All that was ever released of it composes to "
        "ε = 1.0000.",
        "rung 0, training of a trial",
    )
    places = [content.find(answer) for answer in answers]
    assert -1 not in places, answers[places.index(-1)]
    assert places == sorted(places)
    assert len(content) < 1e6


def test_what_would_still_fit_is_what_the_squares_of_mu_leave():
    document = statement(made_up()) | {"id": "ab" * 32, "seal": ""}
    stated = document["datasets"]["mnist5k"]
    limit = gdp.mu_from_epsilon(8.0, stated["delta"])
    facts = LineageFacts(from_document(SealedStatement, document), "mnist5k")
    assert facts.epsilon_left is None  # no single mu says this limit
    stated |= {"lifetime_mu": limit, "lifetime_spent": 1.0}
    facts = LineageFacts(from_document(SealedStatement, document), "mnist5k")
    mus = [
        gdp.mu_from_epsilon(epsilon, stated["delta"])
        for epsilon in (float(facts.epsilon_left), 1.0)
    ]
    assert 0.9999 * limit < gdp.compose(mus) <= limit
    still = "would still fit: squares of μ add up, ε do not"
    assert (still, f"ε = {facts.epsilon_left}") in promise(facts)


def test_a_wide_table_of_few_rows_is_turned_and_what_is_one_throughout_is_left_out():
    captions = Captions(dict.fromkeys(("ladder", "research", "groups", "speaks", "limit"), False))
    wide = pd.DataFrame({"experiment": ["main", "main"], "total_epsilon": [1.0, 2.0]})
    wide = wide.assign(**{f"figure {number}": ["a", "b (1–2)"] for number in range(8)})
    shown = page._picture(OnPage("figures", "", "", wide), captions, several=False)
    assert shown["headings"] == ["figure", "total ε 1", "total ε 2"]
    assert shown["rows"][0] == ["figure 0", "a", 'b <span class="range">(1–2)</span>']
    assert len(shown["rows"]) == 8
    first = page._picture(OnPage("finals", "", "", wide[["experiment"]]), captions, several=False)
    assert first["headings"] == ["experiment"]


def test_a_model_that_does_not_beat_the_largest_class_is_said_not_to(tmp_path):
    """94.5 % beside 96 % who are healthy; and 11 % of ten classes."""
    test = {"accuracy": 0.945, "accuracy_sd": 0.004, "correct": 945.0, "total": 1000.0, "sd": 4.0}
    one = made_up() | {"classes": 2}
    [target] = one["targets"]
    told = [
        *warnings(of(one, target, test | {"noised": True, "classes": CLASSES})),
        *warnings(of(one | {"classes": 10}, target, test | {"noised": True, "accuracy": 0.11})),
        *warnings(of(one, target, test | {"noised": True})),
        *warnings(of(one | {"majority": 0.96}, target, test | {"noised": True})),
        *warnings(of(one | {"majority": 0.6}, target, test | {"noised": True})),
    ]
    assert len(told) == 3
    assert told[2] == told[0]  # counted with noise, or declared
    assert "than always naming the largest class: 94.5%" in told[0]
    assert "and 96.0% would be without a model" in told[0]
    assert "than guessing at random: 11.0%" in told[1]


def of(one, target, test):
    return from_document(Summary, one | {"targets": [target | {"test": test}]})


def test_a_caption_is_printed_once_and_says_what_there_is():
    nothing = dict.fromkeys(("ladder", "research", "groups", "speaks", "limit"), False)
    caption = Captions(nothing)
    (title, first), second = caption("training"), caption("training")
    assert title == "How each was trained"
    assert "ladder" not in first
    assert "κ*, the noise" in first
    assert second == (title, "")
    assert "as the ladder" in Captions({**nothing, "ladder": True})("training")[1]
    assert "research" not in caption("finals")[1]


@pytest.mark.ci
def test_contests_that_somebody_asked_for_have_their_section(tmp_path):
    drawing = tmp_path / "results" / "comparison" / "hpo.svg"
    drawing.parent.mkdir(parents=True)
    drawing.write_text('<svg xmlns="http://www.w3.org/2000/svg"><text>oracle</text></svg>')
    content = the_page(tmp_path, contests=[drawing])
    assert "<h2>Contests</h2>" in content
    assert "Ways to search against each other" in content
    assert "<h2>Contests</h2>" not in the_page(tmp_path / "without")


def test_findings_are_named_and_set_beside_always_saying_absent():
    """Half of the counts that the others get right; and a finding that noise hides."""
    counts = np.array([[[450.0, 0.0], [40.0, 10.0]], [[470.0, 10.0], [2.0, 1.0]]])
    told = figures_from(("edema", "mass"), "findings", by_finding=(counts, 5.0))
    one = made_up() | {"classes": None, "findings": True}
    [target] = one["targets"]
    summary = of(one, target, asdict(told))
    [(_, words)] = results([summary])
    assert words.startswith("known findings told right")
    assert "always saying absent reaches 94.6% (95 % interval " in words
    [warning] = warnings(summary)
    assert "not clearly better than always saying absent" in warning
    shown = readable(findings_table(summary)[1:])
    assert shown["sensitivity"].tolist() == ["hidden by noise"]
    [shown] = readable(findings_table(summary)[:1])["sensitivity"]
    low, high = re.fullmatch(r"80.0% \((.+)–(.+)\)", shown).groups()
    assert 60 < float(low) < 70
    assert 88 < float(high) < 100


def test_a_share_of_too_few_records_is_not_told_and_its_interval_is():
    """A page said 100 % of a finding that was told right for 83 %, with a deviation of .12."""
    surely, hardly = NoisedFigure(0.9, 0.01, 0.88, 0.92), NoisedFigure(1.0, 0.12, 0.55, 1.0)
    assert figure_text(surely, "percent") == "90.0%"
    assert figure_text(hardly, "percent") == "too few records to say"
    assert with_interval(hardly) == "too few records to say (55.0–100.0)"
    hardly_less = NoisedFigure(0.53, 0.34, -0.61, 0.73)
    assert with_interval(hardly_less, R2.style) == "too few records to say (-0.61 to 0.73)"
    assert with_interval(NoisedFigure(0.01, 0.02, -0.03, 0.05)) == "1.0% (-3.0% to 5.0%)"
    assert with_interval(NoisedFigure(0.9, 0.0)) == "90.0%"  # an exact count of all there is


def test_numbers_are_written_as_people_write_them():
    assert plain_number(65912.3, 2712.0) == "65,900"
    assert plain_number(1.0234, 0.051) == "1.023"
    assert plain_number(0.01234) == "0.0123"
    assert plain_number(0.0) == "0"


def test_how_good_a_model_is_stands_before_how_it_was_trained():
    """On a phone's screen the first columns alone are in sight."""
    summary = from_document(Summary, made_up() | {"classes": 10})
    first = readable(finals_table(summary))
    assert [*first] == [
        "experiment",
        "total ε",
        "test accuracy",
        "without a model",
        "spent before training",
    ]
    assert first["without a model"].tolist() == ["10.0%"]
    assert readable(finals_table(replace(summary, majority=0.6)))["without a model"][0] == "60.0%"
    assert [*readable(training_table(summary))][2:] == [
        "ε",
        "ε of it and its search alone",
        "r*",
        "η",
        "T",
        "σ",
    ]
    assert figures_table(summary).empty


def calibrated(right: float):
    """All predictions are between 80 and 90 % sure, halfway, and so many of them right."""
    counts = np.zeros((10, 2, 2))
    counts[8] = [[right / 2, right / 2], [(1000 - right) / 2] * 2]
    tables = {"right_and_wrong": ([right, 1000 - right], 3.0), "confidence": (counts, 3.0)}
    one = made_up()
    [target] = one["targets"]
    return of(one, target, asdict(figures_from(("a", "b"), **tables)))


def test_a_model_whose_confidence_and_accuracy_part_is_warned_of(tmp_path):
    for right, words in ((600.0, "surer than it is right"), (960.0, "less sure than it is right")):
        told = " ".join(warnings(calibrated(right)))
        assert words in told
        assert "Do not take its probabilities at their word." in told
    assert "sure" not in " ".join(warnings(calibrated(840.0)))
    shown = readable(figures_table(calibrated(600.0)))
    assert shown["confidence less accuracy"][0].startswith("25.0% (")
    assert shown["expected calibration error"][0].startswith("25.0% (")
    plot_reliability(calibrated(600.0), tmp_path / "reliability.svg")
    drawing = (tmp_path / "reliability.svg").read_text("utf-8")
    assert drawing.count('<use xlink:href="#') >= 1
    assert "right as often as sure" in drawing


def test_a_model_is_known_by_one_figure_which_is_called_what_it_is():
    test = from_document(Summary, made_up()).targets[0].test
    loss = Perplexity(8.5, 7.5, 9.5, 2.14, 0.06, 4.0)
    error = NoisedFigure(65912.0, 2700.0, 60600.0, 71200.0)
    number = {"range": (0.0, 1e6), "unit": "days", "figures": {"rmse": error}}
    for changes, words in (
        ({"brier": True}, "1 − Brier score "),
        ({"perplexity": loss}, "perplexity 8.50 (95 % interval 7.50 to 9.50, over noise alone)"),
        (number, "RMSE 65,900 days (95 % interval 60,600 to 71,200)"),
        ({}, "test accuracy "),
    ):
        assert str(replace(test, **changes).headline).startswith(words)
    assert str(replace(test, **number | {"figures": {}}).headline) == "RMSE hidden by noise"
