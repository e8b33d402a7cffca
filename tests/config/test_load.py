"""How a config comes together from files, overrides and experiments."""

from __future__ import annotations

import contextlib
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from snakemake.cli import parse_config

from dpladder.config import sources
from dpladder.config.load import from_command_line, load, overlay, read_yaml, resolve
from dpladder.errors import BadInput

SMALL = """\
dataset: {lineage: digits, source: digits, nominal_size: 1400}
privacy: {epsilon: 1.0, delta: 1e-5, lifetime: {epsilon: 8}}
sweep: {rungs: [{epsilon: 0.1, trials: 3}, {epsilon: 0.2, trials: 3}], search: {eta: [0.01, 5]}}
experiments: {line: {fit: {using: best}}, pooled: {fit: {using: pooled}}}
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


@pytest.fixture(name="small")
def _small(tmp_path):
    return write(tmp_path / "small.yaml", SMALL)


def test_later_files_and_then_overrides_are_laid_over_the_first(small, tmp_path):
    over = write(tmp_path / "over.yaml", "privacy: {epsilon: 2.0}\nfit: {against: mu}\n")
    config = load([small, over], {"privacy": {"epsilon": 3.0}}).main
    assert config.privacy.epsilon == 3.0
    assert config.privacy.delta == 1e-5
    assert config.fit.against == "mu"


def test_a_list_is_replaced_whole(small):
    rungs = [{"epsilon": 0.3, "trials": 1}, {"epsilon": 0.4, "trials": 1}]
    assert [
        rung.epsilon for rung in load([small], {"sweep": {"rungs": rungs}}).main.sweep.rungs
    ] == [
        0.3,
        0.4,
    ]


def test_the_base_comes_first_and_is_called_main(small):
    project = load([small])
    assert list(project.experiments) == ["main", "line", "pooled"]
    assert project.main is project.experiments["main"]


def test_an_experiment_changes_what_it_names_and_inherits_the_rest(small):
    project = load([small])
    pooled = project.experiments["pooled"]
    assert pooled.fit.using == "pooled"
    assert pooled.model_copy(update={"fit": project.main.fit}) == project.main


def test_an_experiment_without_overrides_is_the_base_under_another_name(small):
    project = load([small], {"experiments": {"again": None}})
    assert project.experiments["again"] == project.main


def test_repeats_are_experiments_with_seeds_of_their_own(small):
    over = {
        "mode": "research",
        "dataset": {"declared_public": True},
        "research": {"seed": 5, "repeats": 3},
    }
    project = load([small], overlay(over, {"experiments": {"once": {"research": {"repeats": 1}}}}))
    assert {"main", "main-2", "main-3", "once"} <= set(project.experiments)
    assert "once-2" not in project.experiments
    assert project.repeats["main"] == ["main-2", "main-3"]
    assert project.repeats["once"] == []
    seeds = [
        (c.research.seed, c.sweep.search.seed)
        for c in map(project.experiments.get, ("main", "main-2", "main-3"))
    ]
    assert seeds == [(5, 0), (6, 1), (7, 2)]
    # How many repeats there are changes none of them.
    more = load([small], overlay(over, {"research": {"repeats": 4}}))
    assert more.experiments["main-3"] == project.experiments["main-3"]


def test_experiments_on_two_lineages_may_differ_in_their_terms(small):
    other = {"dataset": {"lineage": "other"}, "privacy": {"delta": 1e-6, "relation": "replace_one"}}
    assert (
        load([small], {"experiments": {"other": other}}).experiments["other"].privacy.delta == 1e-6
    )


def test_a_folder_of_files_that_hold_labels_has_columns(small, tmp_path, monkeypatch):
    """As shards have, for which nobody says classes by folders."""
    kind = sources.SourceKind("shards.from_shards", folder=True)
    monkeypatch.setitem(sources.SOURCES, "shards", kind)
    group = {"names": ["a", "b"], "column": "region"}
    data = {"source": f"shards:{tmp_path}", "classes": 2, "label": "cls", "id": "key"}
    config = load([small], {"dataset": {**data, "group": group}}).main
    assert config.dataset.label == "cls"
    with pytest.raises(BadInput, match="has no folders of groups: give the column"):
        load([small], {"dataset": {**data, "group": {"names": ["a", "b"], "level": 1}}})
    with pytest.raises(BadInput, match="a folder is wanted there"):
        load([small], {"dataset": {**data, "source": f"shards:{small}"}})


def test_jsonl_says_which_columns_it_has_and_no_features(small, tmp_path):
    (tmp_path / "a.jsonl").touch()
    own = {
        "source": f"jsonl:{tmp_path / 'a.jsonl'}",
        "classes": 2,
        "columns": ["user"],
        "unit": {"by": "user", "cap": 2},
    }
    texts = {"dataset": own, "features": {"model": "minilm", "image_size": None}}
    assert load([small], texts).main.dataset.columns == ("user",)


@pytest.mark.parametrize("text", ["1e-5", "1.0e-5", "1E-05", "0.00001"])
def test_every_usual_spelling_of_a_small_number_is_a_number(small, text, tmp_path):
    over = write(tmp_path / "over.yaml", f"privacy: {{delta: {text}}}\n")
    assert load([small, over]).main.privacy.delta == 1e-5


@pytest.mark.parametrize("text", ["5e", "e5", "1e-5x", "v1e5"])
def test_text_that_only_resembles_a_number_stays_text(text, tmp_path):
    assert read_yaml(write(tmp_path / "a.yaml", f"key: {text}\n")).values == {"key": text}


def test_anchors_and_merge_keys_work(tmp_path):
    text = SMALL + "fit: &fit {degree: 1}\nlearner: {momentum: 0.5}\n"
    merged = text.replace(
        "line: {fit: {using: best}}", "line: {fit: {<<: {degree: 1}, using: best}}"
    )
    assert load([write(tmp_path / "a.yaml", merged)]).experiments["line"].fit.degree == 1


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + SMALL.encode())
    assert load([path]).main.dataset.lineage == "digits"


def test_overlay_leaves_its_arguments_as_they_were():
    below, above = {"a": {"b": 1}}, {"a": {"c": 2}}
    copies = deepcopy((below, above))
    assert overlay(below, above) == {"a": {"b": 1, "c": 2}}
    assert (below, above) == copies


def test_numbers_inside_braces_on_the_command_line_are_numbers(small):
    given = parse_config(
        ["privacy={epsilon: 2, delta: 1e-6}", "sweep={search: {eta: [0.1, 5.]}}", "respend=true"]
    )
    assert given["privacy"]["epsilon"] == "2"  # this is why
    config = load([small], from_command_line(given)).main
    assert (config.privacy.epsilon, config.privacy.delta, config.sweep.search.eta) == (
        2.0,
        1e-6,
        (0.1, 5.0),
    )
    assert config.respend


@pytest.mark.parametrize(
    "text", ["digits", "folder:a b", "2020-01-01", "2020-13-45", "a: 1", "[1", "1e"]
)
def test_other_text_on_the_command_line_stays_as_it_is(text):
    assert from_command_line({"a": [text]}) == {"a": [text]}


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.dates()
    | st.binary(max_size=4)
    | st.sampled_from(
        [10**400, "folder:/", "npz:\0", "torchvision:", "~", "1e-5", "hdf5:" + "x" * 300]
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
QUIET = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def places(values: object, at: tuple = ()) -> list[tuple]:
    """Every key path inside nested mappings and lists."""
    inner = (
        values.items()
        if isinstance(values, dict)
        else enumerate(values)
        if isinstance(values, list)
        else ()
    )
    return [place for key, value in inner for place in [(*at, key), *places(value, (*at, key))]]


@st.composite
def mutated(draw: st.DrawFn) -> dict:
    """The small config with a few values replaced, removed, renamed or added anywhere."""
    values = yaml.safe_load(SMALL)
    values["learner"] = {"name": "dp_ls", "radius": 2.0}
    values["experiments"]["line"]["learner"] = {"name": "dp_fc", "shared": {"epsilon": 0.1}}
    for _ in range(draw(st.integers(1, 3))):
        *parents, last = draw(st.sampled_from(places(values) or [("mode",)]))
        holder = values
        for key in parents:
            holder = holder[key]
        what = draw(st.sampled_from(["replace", "remove", "rename", "add"]))
        if what == "replace" or isinstance(holder, list):
            holder[last] = draw(JUNK)
        elif what == "remove":
            holder.pop(last, None)
        elif what == "rename":
            holder[draw(st.text(max_size=6))] = holder.pop(last, None)
        else:
            holder[draw(st.text(max_size=6) | st.sampled_from(["experiments", "mode", "fit"]))] = (
                draw(JUNK)
            )
    return values


@pytest.mark.ci
@QUIET
@given(values=mutated())
def test_whatever_the_values_only_bad_input_is_raised(values):
    with contextlib.suppress(BadInput):
        resolve(values)


@pytest.mark.ci
@QUIET
@given(values=mutated())
def test_whatever_is_written_to_a_file_only_bad_input_is_raised(values, small):
    small.write_text(yaml.safe_dump(values, allow_unicode=True), "utf-8", errors="surrogatepass")
    with contextlib.suppress(BadInput):
        load([small])


@pytest.mark.ci
@QUIET
@given(
    at=st.integers(0, len(SMALL)),
    cut=st.integers(0, 8),
    text=st.text(max_size=4)
    | st.sampled_from(["\t", "&a *a", "{", "]", "!!int ", "? ", "<<: ", "'", "\n- "]),
)
def test_whatever_is_typed_into_a_file_only_bad_input_is_raised(at, cut, text, small):
    typed = SMALL[:at] + text + SMALL[at + cut :]
    small.write_text(typed, "utf-8", errors="surrogatepass")
    with contextlib.suppress(BadInput):
        load([small])
