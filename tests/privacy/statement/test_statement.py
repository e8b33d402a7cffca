"""The statement: composed from records, held against the ledger, checkable by anyone, forgeable by
no one."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from statements import CHANGES, DEPLOYED, PRICED, UNLIMITED, Finished
from support import commit

from dpladder.config.load import overlay, resolve
from dpladder.errors import Refused
from dpladder.plan.dag import build_dag
from dpladder.plan.plan import make_plan
from dpladder.plan.table import plan_document, plan_table
from dpladder.privacy.accounting.events import Gaussian, Job, Partition, Spend
from dpladder.privacy.accounting.rounding import mu_up, round_up
from dpladder.privacy.ledger.book import open_ledger, reserve
from dpladder.privacy.ledger.home import open_home, subkey
from dpladder.privacy.ledger.state import Item
from dpladder.privacy.statement.build import seal
from dpladder.privacy.statement.check import check, read_statement
from dpladder.privacy.statement.documents import Cost, SealedStatement
from dpladder.privacy.statement.facts import detection_rate_text
from dpladder.privacy.statement.page import page
from dpladder.public_files import file_digest
from dpladder.section import from_document


@pytest.fixture
def run(tmp_path: Path) -> Finished:
    return Finished(tmp_path, CHANGES)


def page_of(run: Finished) -> str:
    return page(from_document(SealedStatement, run.state()))


def test_a_finished_run_is_stated_and_verified(
    run: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement = run.state()
    dataset = statement["datasets"]["mnist5k"]
    assert (statement["relation"], statement["delta"]) == (dataset["relation"], dataset["delta"])
    for artifact in dataset["artifacts"].values():
        assert (
            0.999 * artifact["target_epsilon"] < artifact["epsilon"] <= artifact["target_epsilon"]
        )
    assert dataset["epsilon"] == run.document.epsilon
    assert dataset["lifetime_epsilon"] == 8.0
    assert dataset["outside_this_dag"]["jobs"] == 0
    assert check(statement, run.results) == []
    assert run.verify(monkeypatch) == 0


OTHER_TERMS = {
    "experiments": {
        "other": {
            "dataset": {"lineage": "other"},
            "privacy": {"delta": 2e-4, "relation": "replace_one", "lifetime": {"epsilon": 3.0}},
        }
    }
}


def test_each_lineage_is_stated_under_its_own_terms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A figure at another delta, or for other neighbours, than those that it was composed at would
    be a false promise."""
    run = Finished(tmp_path, OTHER_TERMS)
    text = page_of(run)
    assert (
        "Lineage mnist5k: all that was or will ever be released about it is held to epsilon = 8 "
        in text
    )
    assert "it is (3, 0.0002)-differentially private" in text
    assert (
        "two data sets that differ by one unit replaced, whose old and new version may lie in two "
        "parts (privacy.relation: replace_one)" in text
    )
    assert "Delta, 1e-05 or 0.0002 here" in text
    assert (
        "each record of mnist5k, which is the data's name for life, later versions included. "
        "Suppose that somebody sees everything that is published, knows all the other records and "
        "wants to tell whether one more is among them." in text
    )
    assert (
        "wants to tell whether a certain one, and not another in its place, is among them" in text
    )
    document = read_statement(run.results)
    assert (document["relation"], document["delta"]) == (None, None)
    claimed = seal(document | {"delta": 1e-5}, b"")
    assert "privacy.json: delta is not that of its lineages" in check(claimed, run.results)
    assert run.verify(monkeypatch) == 0
    table = plan_table(run.document)
    assert re.search(r"lineage other: .*\(delta = 0.0002, replace_one\)", table)


def test_the_page_begins_with_the_lifetime(run: Finished) -> None:
    """One sentence with one number; then what the model costs."""
    lines = page_of(run).splitlines()
    assert lines[2] == (
        "**Lineage mnist5k: all that was or will ever be released about it is held to "
        "epsilon = 8 for each record, a limit declared beforehand and enforced. With the delta "
        "that was declared beside it, it is (8, 1e-05)-differentially private.**"
    )
    assert lines[4].startswith("The final model of main for target 0.5 costs epsilon = 0.5000")
    assert "DAG" not in page_of(run)
    assert all(line.count("epsilon = ") <= 1 for line in re.split(r"\. |\n", page_of(run)))


def test_the_page_can_be_filed(tmp_path: Path) -> None:
    """Plain words, day, data, config, commit, id and seal: what an officer needs to find the run
    again."""
    run = Finished(tmp_path, CHANGES | {"deployment": DEPLOYED})
    sealed, text = run.state(), page_of(run)
    for words in (
        sealed["id"],
        sealed["seal"],
        run.document.config,
        "0" * 40,
        "2026-11-22",
        DEPLOYED["data"],
    ):
        assert words in text
    assert "Triage \\| never diagnosis" in text  # no cell of a table ends early
    assert (
        text.index("## In plain words")
        < text.index("## What is stated")
        < text.index("## Figures")
        < text.index("## What this rests on")
    )


def test_a_config_has_one_digest_whatever_else_it_says(tmp_path: Path) -> None:
    def digest(changes: dict[str, Any]) -> str:
        dag = build_dag(resolve(overlay(PRICED, changes)))
        return plan_document(make_plan(dag, {}), {}, dag).config

    assert digest({}) == digest({"deployment": DEPLOYED}) == digest({"resources": {"threads": 7}})
    assert digest({}) != digest({"learner": {"clip": 2.0}})


def test_mu_stands_beside_every_epsilon(run: Finished) -> None:
    rows = [
        line
        for line in page_of(run).partition("## Words")[0].splitlines()
        if line.startswith("|") and "epsilon" in line
    ]
    assert len(rows) == 4
    assert all("mu" in row.replace("mu^2", "") for row in rows)
    mu = run.state()["datasets"]["mnist5k"]["mu"]
    assert f"(mu = {mu_up(mu)})" in page_of(run)


def test_a_statement_ends_with_what_its_words_mean(run: Finished) -> None:
    words = page_of(run).partition("## Words")[2]
    for word in ("lineage", "unit", "part", "release", "epsilon", "delta", "mu", "limit"):
        assert f"| {word} | " in words
    assert "1 and what costs 7.87 make 8" in words


def test_a_user_is_called_what_the_config_calls_them(tmp_path: Path) -> None:
    text = page_of(Finished(tmp_path, {"dataset": {"unit": {"by": "user", "called": "patient"}}}))
    assert "for each patient" in text
    assert "for each user" not in text
    assert "each patient, who counts as one record at most" in text


@pytest.mark.parametrize(
    ("unit", "warned"), [({"by": "record"}, True), ({"by": "user", "cap": 3}, False)]
)
def test_a_person_with_several_records_is_told_whose_figures_are_theirs(
    tmp_path: Path, unit: dict[str, Any], warned: bool
) -> None:
    text = page_of(Finished(tmp_path, {"dataset": {"unit": unit}}))
    assert ("A person with several records" in text) == warned
    assert ("for a person with that many records" in text) == warned


@pytest.mark.parametrize(
    ("bound", "wanted"),
    [
        (Cost(1.0, None), "13.6 %"),  # e * 0.05, rounded up
        (Cost(8.0, None), "100.0 %"),
        (Cost(8.0, 1.0), "26.0 %"),  # Phi(-1.6449 + 1) = 0.2595
        (Cost(0.0, 0.0), "5.0 %"),
    ],
)
def test_what_an_attack_finds_is_bounded(bound: Cost, wanted: str) -> None:
    assert detection_rate_text(bound, 1e-5) == wanted


def test_an_odometer_is_no_guarantee_and_nobody_is_promised_a_figure(tmp_path: Path) -> None:
    """Without a limit declared beforehand nobody knows what results have led to."""
    run = Finished(tmp_path, UNLIMITED)
    assert "of those who are" in page_of(run)
    run.run_again(UNLIMITED | STEERED)
    text = page_of(run)
    assert "of those who are" not in text
    assert "no figure is a guarantee" in text.splitlines()[2]
    assert "-differentially private" not in text.splitlines()[2]


STEERED = {"experiments": {f"try-{n}": {"learner": {"momentum": n / 10}} for n in (1, 2, 3)}}


def test_what_was_planned_as_a_whole_costs_what_it_costs_alone(tmp_path: Path) -> None:
    run = Finished(tmp_path, STEERED | UNLIMITED)
    dataset = run.state()["datasets"]["mnist5k"]
    assert dataset["planned"]
    assert all(artifact["with_earlier"] is None for artifact in dataset["artifacts"].values())
    assert "all of this was planned before its first release" in page_of(run).splitlines()[2]


@pytest.mark.ci
def test_what_was_planned_after_results_is_stated_with_them(tmp_path: Path) -> None:
    """Each new experiment alone costs its total; but its config came from the others' scores."""
    run = Finished(tmp_path, UNLIMITED)
    for name, change in STEERED["experiments"].items():
        run.run_again(UNLIMITED | {"experiments": {**run_experiments(run), name: change}})
    dataset = run.state()["datasets"]["mnist5k"]
    first, *steered = dataset["artifacts"].values()
    figures = [artifact["with_earlier"]["epsilon"] for artifact in steered]
    assert first["with_earlier"] is None
    assert figures == sorted(figures)
    assert all(
        artifact["epsilon"] < 1.001 < artifact["with_earlier"]["epsilon"] for artifact in steered
    )
    assert figures[-1] == pytest.approx(dataset["epsilon"])
    page = page_of(run)
    last = steered[-1]
    own = f"{round_up(last['epsilon'])} (mu = {mu_up(last['mu'])})"
    assert f"| {round_up(figures[-1])} | {mu_up(last['with_earlier']['mu'])} | {own} |" in page
    assert dataset["chosen"]["epsilon"] == pytest.approx(figures[-1])
    whole = (
        "Everything ever released about lineage mnist5k: epsilon = "
        f"{round_up(dataset['lifetime_spent'])}."
    )
    assert page.index(whole) < page.index("| final model |") < page.index("was chosen among these")
    stated = from_document(SealedStatement, run.state()).datasets["mnist5k"].artifacts.values()
    assert [model.stated.epsilon for model in stated] == [first["epsilon"], *figures]
    assert check(run.state(), run.results) == []


def test_a_choice_among_models_costs_what_all_of_them_do(tmp_path: Path) -> None:
    """Also where one is retired: whoever goes back to the first has seen the second."""
    run = Finished(tmp_path, {})
    assert run.state()["datasets"]["mnist5k"]["chosen"] is None
    assert "was chosen among" not in page_of(run)
    run.run_again({"final": {"targets": [1.0, 2.0]}})
    both = run.state()["datasets"]["mnist5k"]
    assert both["chosen"]["epsilon"] == pytest.approx(both["lifetime_spent"])
    for record in run.results.glob("*/privacy.json"):
        if '"target": "2"' in record.read_text():
            record.unlink()
    run.run_again({})
    again = run.state()["datasets"]["mnist5k"]
    (model,) = again["artifacts"].values()
    assert model["with_earlier"] is None
    assert again["chosen"] == both["chosen"]
    assert (
        "retired ones included, because of anything that was released: epsilon = "
        f"{round_up(again['chosen']['epsilon'])}" in page_of(run)
    )
    assert check(run.state(), run.results) == []


@pytest.mark.parametrize(
    "claim", [{"lifetime_spent": 0.9}, {"chosen": None}, {"chosen": {"epsilon": 0.9, "mu": 0.2}}]
)
def test_no_other_total_may_be_claimed(tmp_path: Path, claim: dict[str, Any]) -> None:
    run = Finished(tmp_path, CHANGES)
    statement = run.state()
    claimed = seal(
        {**statement, "datasets": {"mnist5k": statement["datasets"]["mnist5k"] | claim}}, b""
    )
    assert [
        problem
        for problem in check(claimed, run.results)
        if "does not follow from its spends" in problem
    ]


def run_experiments(run: Finished) -> dict[str, Any]:
    before = {artifact.experiment for artifact in run.document.artifacts}
    return {name: change for name, change in STEERED["experiments"].items() if name in before}


def test_releases_that_other_configs_made_count_as_earlier_ones(tmp_path: Path) -> None:
    run = Finished(tmp_path, STEERED)
    for record in run.results.glob("*/privacy.json"):
        if '"experiment": "try-' in record.read_text():
            record.unlink()
    run.run_again({"experiments": {"later": {"learner": {"momentum": 0.7}}}})
    dataset = run.state()["datasets"]["mnist5k"]
    assert dataset["outside_this_dag"]["epsilon"] > 1.0
    _, later = dataset["artifacts"].values()
    assert later["with_earlier"]["epsilon"] == pytest.approx(dataset["lifetime_spent"])
    assert dataset["chosen"]["epsilon"] == pytest.approx(dataset["lifetime_spent"])
    assert check(run.state(), run.results) == []


def test_the_page_says_whose_sources_and_lineages_are(run: Finished) -> None:
    page = page_of(run)
    assert "Sources and lineages belong to the operator" in page
    assert "No exit code and no file tells who is there" in page


def numbers(document: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where every number of a document stands."""
    items = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    for key, value in items:
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield (*at, key)
        yield from numbers(value, (*at, key))


def edited(document: Any, at: tuple[Any, ...]) -> Any:
    changed = copy.deepcopy(document)
    inner = changed
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = inner[at[-1]] * 2 + 1
    return changed


@pytest.mark.ci
def test_editing_any_number_of_any_record_is_found_and_the_file_named(run: Finished) -> None:
    statement = run.state()
    for path, record in run.records.items():
        for place in numbers(record):
            run.write(path, edited(record, place))
            assert any(path in problem for problem in check(statement, run.results)), (path, place)
        run.write(path, record)
    assert check(statement, run.results) == [] or "changed" in check(statement, run.results)[0]


def test_editing_any_number_of_the_statement_is_found(
    run: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement = run.state()
    for place in numbers(statement):
        forged = edited(statement, place)
        assert any("privacy.json" in problem for problem in check(forged, run.results)), place
    # A forger who recomputes the digest and the page but has no key is found by the seal alone.
    forged = seal(edited(statement, ("target_epsilon",)), b"another key")
    (run.results / "privacy.md").write_text(page(from_document(SealedStatement, forged)))
    assert check(forged, run.results, subkey(run.home, "ledger")) == [
        "privacy.json: changed since it was written"
    ]


def test_a_key_that_no_statement_has_is_named_in_one_line(run: Finished) -> None:
    statement = run.state()
    [lineage] = statement["datasets"]
    dataset = {**statement["datasets"][lineage], "epsilon_of_a_friend": 0.1}
    forged = seal(statement | {"datasets": {lineage: dataset}}, subkey(run.home, "ledger"))
    [problem] = check(forged, run.results, subkey(run.home, "ledger"))
    assert f"datasets.{lineage}.epsilon_of_a_friend is wrong" in problem
    assert "\n" not in problem


@pytest.mark.parametrize("line", [2, -2])
def test_an_edited_page_is_found_though_nobody_has_the_key(run: Finished, line: int) -> None:
    """What is signed is this page: it must follow from the statement, byte for byte."""
    statement = run.state()
    file = run.results / "privacy.md"
    words = file.read_text().splitlines(keepends=True)
    words[line] = "Lineage mnist5k: it is (0.1, 1e-05)-differentially private.\n"
    file.write_text("".join(words))
    [problem] = check(statement, run.results)
    assert problem.startswith("results/privacy.md: does not say what privacy.json says")
    file.unlink()
    [problem] = check(statement, run.results)
    assert problem.startswith("results/privacy.md: missing")


def test_a_page_that_another_version_wrote_is_known_by_its_digest_or_not_at_all(
    run: Finished,
) -> None:
    statement = run.state()
    statement["origin"]["versions"]["dpladder"] = "0.0.1"
    statement = seal(statement, subkey(run.home, "ledger"))
    file, record = run.results / "privacy.md", run.results / "report.privacy.json"
    file.write_text("Other words for the same.\n")
    [problem] = check(statement, run.results)
    assert "written by dpladder 0.0.1" in problem
    files = {"results/privacy.md": file_digest(file)}
    vouched = {"free": "", "statement": statement["id"], "files": files}
    run.write("results/report.privacy.json", seal(vouched, subkey(run.home, "ledger")))
    assert check(statement, run.results, subkey(run.home, "ledger")) == []
    file.write_text("Kinder words for the same.\n")
    assert any("privacy.md: changed" in problem for problem in check(statement, run.results))
    assert record.is_file()


def test_other_bytes_in_a_models_place_are_found(run: Finished) -> None:
    statement = run.state()
    [first, second] = sorted(statement["files"])
    model = run.folder / first
    before = model.read_bytes()
    model.write_bytes(before + b" ")
    assert any(
        first in problem and "changed" in problem for problem in check(statement, run.results)
    )
    model.unlink()
    assert any(
        first in problem and "missing" in problem for problem in check(statement, run.results)
    )
    model.write_bytes(before)
    forged = seal(statement | {"files": {second: statement["files"][second]}}, b"")
    assert f"privacy.json: names no digest of {first}" in check(forged, run.results)


def test_a_report_is_vouched_for_by_the_record_of_this_statement_alone(run: Finished) -> None:
    """A run that was cut off between the statement and its report leaves the old one beside it."""
    statement, key = run.state(), subkey(run.home, "ledger")
    report, record = (run.results / name for name in ("report.html", "report.privacy.json"))
    report.write_text("a page")
    files = {"results/report.html": file_digest(report)}

    def problems(statement_id: str, key_of_record: bytes = key) -> list[str]:
        document = {"free": "a page", "statement": statement_id, "files": files}
        record.write_text(json.dumps(seal(document, key_of_record)))
        return check(statement, run.results, key)

    assert problems(statement["id"]) == []
    [problem] = problems("0" * 64)
    assert problem.startswith("results/report.html: made from another statement")
    assert problems(statement["id"], b"another key") == [
        "results/report.privacy.json: changed since it was written"
    ]
    report.write_text("another page")
    [problem] = problems(statement["id"])
    assert problem.startswith("results/report.html")
    record.unlink()
    [problem] = check(statement, run.results, key)
    assert problem.startswith("results/report.html: nothing vouches for it")


FORGED = {
    ("epsilon",): "epsilon is",
    ("mu",): "mu is",
    ("outside_this_dag", "epsilon"): "what is outside this workflow does not compose",
    ("spends", 0, "epsilon"): "are not those of its event",
    ("spends", 0, "mu"): "are not those of its event",
    ("spends", 0, "spend", "count"): "its spends are not those of the records",
}


@pytest.mark.parametrize("place", FORGED, ids=str)
def test_a_forged_figure_is_found_without_the_key(run: Finished, place: tuple[Any, ...]) -> None:
    forged = seal(edited(run.state(), ("datasets", "mnist5k", *place)), b"")
    problems = check(forged, run.results)
    assert any("mnist5k" in one and FORGED[place] in one for one in problems), problems


def test_a_missing_record_is_named(run: Finished) -> None:
    statement = run.state()
    (run.results / "3/privacy.json").unlink()
    assert any(
        "results/3/privacy.json: missing" in problem for problem in check(statement, run.results)
    )


def test_all_files_that_a_copy_lacks_are_told_in_one_sentence(run: Finished) -> None:
    statement = run.state()
    there = sorted(run.results.glob("*/privacy.json"))
    for record in there:
        record.unlink()
    (problem,) = check(statement, run.results)
    assert f" and {len(there) - 1} more of " in problem
    assert "copy all of it" in problem


def test_a_cost_that_the_statement_does_not_count_is_named(run: Finished) -> None:
    statement = run.state()
    run.write("results/late/plot.privacy.json", run.records["results/0/privacy.json"])
    assert any(
        "results/late/plot.privacy.json" in problem for problem in check(statement, run.results)
    )


def test_a_record_that_disagrees_with_the_ledger_stops_the_statement(run: Finished) -> None:
    record = run.records["results/0/privacy.json"]
    record["spends"][0]["event"]["sigma"] *= 2
    run.write("results/0/privacy.json", record)
    with pytest.raises(Refused, match="disagrees with the ledger"):
        run.state()


def test_a_record_that_the_ledger_lacks_is_never_called_free(run: Finished) -> None:
    record = run.records["results/0/privacy.json"]
    run.write("results/0/privacy.json", record | {"question": "another one"})
    with pytest.raises(Refused, match="does not hold it as done") as refusal:
        run.state()
    assert "free" not in str(refusal.value)
    assert "DPLADDER_HOME" in str(refusal.value)


def test_an_artifact_above_its_total_stops_the_statement(run: Finished) -> None:
    cheaper = tuple(
        replace(one, target_epsilon=0.9 * one.target_epsilon) for one in run.document.artifacts
    )
    run.document = replace(run.document, artifacts=cheaper)
    with pytest.raises(Refused, match="above its total"):
        run.state()


def test_spending_by_others_is_stated_as_outside(run: Finished) -> None:
    job = Job("someone-else", "train_final")
    partition = Partition(run.plan.terms["mnist5k"].split_rule, ("train",))
    spend = Spend("mnist5k", "add_remove", partition, Gaussian(10.0))
    (held,) = reserve(run.ledger, [Item(job, "another question", (spend,))])
    commit(run.ledger, held.token, "f" * 64, held.spends)
    dataset = run.state()["datasets"]["mnist5k"]
    assert dataset["outside_this_dag"]["jobs"] == 1
    assert dataset["outside_this_dag"]["mu"] == pytest.approx(0.1)
    assert dataset["lifetime_spent"] > dataset["epsilon"]


def test_what_others_planned_after_results_leaves_no_guarantee(tmp_path: Path) -> None:
    """Their config may have been chosen by them, whoever they are."""
    run = Finished(tmp_path, UNLIMITED)
    assert run.state()["datasets"]["mnist5k"]["planned"]
    partition = Partition(run.plan.terms["mnist5k"].split_rule, ("train",))
    spend = Spend("mnist5k", "add_remove", partition, Gaussian(10.0))
    reserve(run.ledger, [Item(Job("someone-else", "train_final"), "another question", (spend,))])
    assert not run.state()["datasets"]["mnist5k"]["planned"]
    assert "of those who are" not in page_of(run)


def test_a_ledger_rolled_back_behind_the_statement_is_found(
    run: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.state()
    last = max(run.ledger.folder.glob("*.json"))
    last.unlink()
    assert run.verify(monkeypatch) == 1


def test_groups_are_told_by_mu_only_where_every_part_is_gaussian(tmp_path: Path) -> None:
    """A training on samples reveals everything with a small probability, which counts more for
    several units. The test part's count, which costs a little more for one, does not."""
    sampled = {"learner": {"sampling_rate": 0.2}, "sweep": {"rungs": []}}
    tested = UNLIMITED | sampled | {"evaluate": {"epsilon": 1.0}}
    dataset = (run := Finished(tmp_path, tested)).state()["datasets"]["mnist5k"]
    assert dataset["partitions"]["test"]["epsilon"] == dataset["epsilon"]
    assert dataset["accountant"] == "booked"
    assert "together bear k mu" not in (text := page_of(run))
    assert "figures for groups below" not in text
    assert "k of them bear k times epsilon, at a larger delta" in text


def test_without_a_lifetime_no_lifetime_is_promised(tmp_path: Path) -> None:
    demo = {**PRICED, "privacy": {"epsilon": 1.0, "delta": 1e-5}}
    run = Finished.__new__(Finished)
    run.folder, run.results = tmp_path, tmp_path / "results"
    run.home = open_home(tmp_path / "home")
    run.plan = make_plan(build_dag(resolve(demo)), {})
    run.document = plan_document(run.plan, {}, build_dag(resolve(demo)))
    run.ledgers = {"mnist5k": open_ledger(run.home, run.plan.terms["mnist5k"])}
    assert "nothing is promised about later runs" in page_of(run)
