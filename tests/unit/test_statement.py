"""The statement: composed from records, held against the ledger, checkable by anyone, forgeable by no one."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpladder import cli
from dpladder.config.docs import DEMO
from dpladder.config.load import overlay, resolve
from dpladder.errors import Refused
from dpladder.privacy.home import open_home, subkey
from dpladder.privacy.ledger import Item, commit, finish, head, load, open_ledger, reserve
from dpladder.privacy.plan import make_plan
from dpladder.privacy.show import plan_document
from dpladder.privacy.spend import Gaussian, Job, Partition, Spend
from dpladder.privacy.statement import build, check, file_digest, page, record_of, seal

CHANGES: dict[str, Any] = {"final": {"targets": [0.5, 1.0]}}


class Finished:
    """A finished run, as files, without any training: the ledger's entries are real."""

    def __init__(self, folder: Path, changes: dict[str, Any]) -> None:
        self.folder, self.results = folder, folder / "results"
        self.home = open_home(folder / "home")
        self.plan = make_plan(resolve(overlay(DEMO, changes)), {})
        self.document = plan_document(self.plan, {})
        self.ledger = open_ledger(self.home, self.plan.terms["mnist5k"])
        for place, item in enumerate(reserve(self.ledger, self.plan.items.values())):
            commit(self.ledger, item.token, f"{place:064x}", item.spends)
            finish(self.ledger, item.token, "0" * 64)
            record = record_of(item.job.rule, dict(item.job.wildcards), item.spends)
            self.write(f"results/{place}/privacy.json", record)
        self.write(
            "results/free/privacy.json", {"rule": "fit_radius", "wildcards": {}, "free": "post-processing"}
        )

    def write(self, path: str, document: Any) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(json.dumps(document))

    @property
    def records(self) -> dict[str, Any]:
        paths = sorted(self.results.rglob("*/privacy.json"))
        return {str(path.relative_to(self.folder)): json.loads(path.read_text()) for path in paths}

    def state(self) -> dict[str, Any]:
        statement = build(
            self.document,
            self.records,
            {path: file_digest(self.folder / path) for path in self.records},
            {"mnist5k": load(self.ledger)},
            [head(self.ledger)],
            {"dpladder": "0.1.0"},
        )
        sealed = seal(statement, subkey(self.home, "ledger"))
        self.write("results/privacy.json", sealed)
        return sealed

    def verify(self, monkeypatch: pytest.MonkeyPatch) -> int:
        monkeypatch.setenv("DPLADDER_HOME", str(self.home.path))
        return cli.main(["verify", str(self.results)])


@pytest.fixture
def run(tmp_path: Path) -> Finished:
    return Finished(tmp_path, CHANGES)


def test_a_finished_run_is_stated_and_verified(run: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    statement = run.state()
    dataset = statement["datasets"]["mnist5k"]
    for artifact in dataset["artifacts"].values():
        assert 0.999 * artifact["target_epsilon"] < artifact["epsilon"] <= artifact["target_epsilon"]
    assert dataset["epsilon"] == run.document["epsilon"]
    assert dataset["lifetime_epsilon"] == 8.0
    assert dataset["outside_this_dag"]["jobs"] == 0
    assert check(statement, run.results) == []
    assert run.verify(monkeypatch) == 0


def test_the_page_begins_with_the_lifetime(run: Finished) -> None:
    lines = page(run.state()).splitlines()
    assert lines[2].startswith(
        "**Lineage mnist5k: all that was or will ever be released about it is (8, 1e-05)-diff"
    )


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


def test_editing_any_number_of_any_record_is_found_and_the_file_named(run: Finished) -> None:
    statement = run.state()
    for path, record in run.records.items():
        for place in numbers(record):
            run.write(path, edited(record, place))
            assert any(path in problem for problem in check(statement, run.results)), (path, place)
        run.write(path, record)
    assert check(statement, run.results) == [] or "changed" in check(statement, run.results)[0]


def test_editing_any_number_of_the_statement_is_found(run: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    statement = run.state()
    for place in numbers(statement):
        forged = edited(statement, place)
        assert any("privacy.json" in problem for problem in check(forged, run.results)), place
    # A forger who recomputes the digest but has no key is found by the seal alone.
    forged = seal(edited(statement, ("datasets", "mnist5k", "lifetime_spent")), b"another key")
    assert check(forged, run.results, subkey(run.home, "ledger")) == [
        "privacy.json: changed since it was written"
    ]


@pytest.mark.parametrize("key", ["epsilon", "mu"])
def test_a_forged_total_is_found_without_the_key(run: Finished, key: str) -> None:
    statement = run.state()
    forged = seal(edited(statement, ("datasets", "mnist5k", key)), b"")
    assert any(f"mnist5k: {key} is" in problem for problem in check(forged, run.results))


def test_a_missing_record_is_named(run: Finished) -> None:
    statement = run.state()
    (run.results / "3/privacy.json").unlink()
    assert any("results/3/privacy.json: missing" in problem for problem in check(statement, run.results))


def test_a_cost_that_the_statement_does_not_count_is_named(run: Finished) -> None:
    statement = run.state()
    run.write("results/late/plot.privacy.json", run.records["results/0/privacy.json"])
    assert any("results/late/plot.privacy.json" in problem for problem in check(statement, run.results))


def test_a_record_that_disagrees_with_the_ledger_stops_the_statement(run: Finished) -> None:
    record = run.records["results/0/privacy.json"]
    record["spends"][0]["event"]["sigma"] *= 2
    run.write("results/0/privacy.json", record)
    with pytest.raises(Refused, match="disagrees with the ledger"):
        run.state()


def test_an_artifact_above_its_total_stops_the_statement(run: Finished) -> None:
    for artifact in run.document["artifacts"]:
        artifact["target_epsilon"] *= 0.9
    with pytest.raises(Refused, match="above its total"):
        run.state()


def test_spending_by_others_is_stated_as_outside(run: Finished) -> None:
    job = Job("someone-else", "train_final")
    partition = Partition(run.plan.terms["mnist5k"].split_rule, ("train",))
    spend = Spend("mnist5k", "add_remove", partition, job, Gaussian(10.0))
    (held,) = reserve(run.ledger, [Item(job, "static", (spend,))])
    commit(run.ledger, held.token, "f" * 64, held.spends)
    dataset = run.state()["datasets"]["mnist5k"]
    assert dataset["outside_this_dag"]["jobs"] == 1
    assert dataset["outside_this_dag"]["mu"] == pytest.approx(0.1)
    assert dataset["lifetime_spent"] > dataset["epsilon"]


def test_a_ledger_rolled_back_behind_the_statement_is_found(
    run: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.state()
    last = max(run.ledger.folder.glob("*.json"))
    last.unlink()
    assert run.verify(monkeypatch) == 1


def test_without_a_lifetime_no_lifetime_is_promised(tmp_path: Path) -> None:
    demo = {**DEMO, "privacy": {"epsilon": 1.0, "delta": 1e-5}}
    run = Finished.__new__(Finished)
    run.folder, run.results = tmp_path, tmp_path / "results"
    run.home = open_home(tmp_path / "home")
    run.plan = make_plan(resolve(demo), {})
    run.document = plan_document(run.plan, {})
    run.ledger = open_ledger(run.home, run.plan.terms["mnist5k"])
    assert "nothing is promised about later runs" in page(run.state())
