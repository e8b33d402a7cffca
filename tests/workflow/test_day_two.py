"""The second day of a finished project: edits that ask nothing new are free both ways, the rest
costs what the plan said."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from support import commit, mixture
from workflow.test_formats import reconfigure, unpacked

from dpladder.cli import main
from dpladder.errors import BadInput
from dpladder.plan.dag import build_dag
from dpladder.plan.plan import make_plan
from dpladder.plan.reuse import asked_anew, under_terms
from dpladder.plan.startup import known_states, open_resolved
from dpladder.privacy.accounting.events import Gaussian, Job, Partition, Spend
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.ledger.state import Item, Terms

PAID = {"train_final": 1, "evaluate": 1}
MODEL = "results/main/final/1/weights.safetensors"


def targets(*totals: float) -> dict[str, object]:
    return {"final": {"targets": [*totals]}}


@pytest.mark.ci
def test_a_total_in_anothers_place_is_refused_until_it_is_said(finished, walk, capfd):
    finished.configure(targets(1.5))
    with pytest.raises(SystemExit):
        walk()
    told = " ".join(capfd.readouterr().err.split())
    assert re.search(
        r"finished model of total 1, .* final\.targets: \[1, 1\.5\]; to replace it, respend", told
    )
    for change in (
        targets(1.0, 1.5),
        targets(1.5) | {"respend": True},
        targets(1.5) | {"respend": ["main"]},
    ):
        finished.configure(change)
        assert walk().charged == Counter(PAID)
    finished.configure()
    assert walk().charged == Counter()


def test_respend_says_what_all_of_it_would_come_to_beside_what_is_new(finished, capsys):
    finished.configure(targets(1.0, 1.5) | {"respend": True})
    assert main(["plan", "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    [told] = [line for line in planned["kept"] if "If all of it has" in line]
    ended = float(re.search(r"ends at epsilon = ([\d.]+) of its lifetime's 8", told)[1])
    after = planned["lifetimes"]["tiny"]["epsilon_after"]
    assert after > planned["lifetimes"]["tiny"]["epsilon_spent"]
    assert ended > after + 0.1


def test_respend_that_names_nothing_is_refused_with_what_it_may_name(finished):
    finished.configure({"respend": ["dp_gd", "mian", "summarise"]})
    with pytest.raises(BadInput) as refused:
        open_resolved(["config.yaml"])
    assert re.search(
        r"respend names 'mian', 'summarise'; did you mean main\? allowed: true, false, \{up_to: "
        r"epsilon\}, or names of experiments \(main\) and of .*\(dp_gd, evaluate, .*train_final\)",
        str(refused.value),
    )


def test_an_experiment_says_for_itself_what_may_be_paid_again(finished):
    finished.configure({"experiments": {"one": {"respend": True}, "two": {"respend": ["dp_gd"]}}})
    project = open_resolved(["config.yaml"])
    dag = build_dag(project)
    renewed = {
        (name, node.rule)
        for name in project.experiments
        for node in dag.asking_jobs(name)
        if node.question in asked_anew(dag)
    }
    # main's are theirs too: a question has no name
    assert {name for name, rule in renewed if rule == "train_final"} == {"main", "one", "two"}


KEPT = "kept as it was chosen when it was paid for (mean 0.386, today"


def test_what_was_chosen_and_paid_for_is_kept_when_a_total_is_added(
    tmp_path, monkeypatch, walk, capfd
):
    old = unpacked("1-auto", tmp_path, monkeypatch)
    reconfigure(old, "final", targets=[2.0, 1.0])
    assert walk().charged == Counter(PAID)
    told = capfd.readouterr().err
    assert KEPT in told
    assert "centring the features costs epsilon = 0.386" in told


def test_what_was_chosen_follows_its_questions_to_another_name(tmp_path, monkeypatch):
    old = unpacked("1-auto", tmp_path, monkeypatch)
    moved = {"learner": {"clip": 1.0}, "final": {"targets": [2.0, 1.0]}}
    reconfigure(old, "experiments", moved=moved)
    reconfigure(old, "learner", clip=0.5)
    reconfigure(old, "final", targets=[3.0])
    told = open_resolved(["config.yaml"]).choices
    assert "kept as it was chosen" in told["moved"]
    assert "kept as it was chosen" not in told["main"]
    # Another total alone is another experiment, and chooses for itself.
    reconfigure(old, "experiments", moved=moved | {"final": {"targets": [1.0]}})
    told = open_resolved(["config.yaml"]).choices
    assert "kept as it was chosen" not in told["moved"]


OTHER_TERMS = {
    "delta": {"privacy": {"delta": 1e-6}},
    "relation": {"privacy": {"relation": "replace_one"}},
    "split": {"dataset": {"split": {"test": 0.3}}},
    "lifetime": {"privacy": {"lifetime": {"epsilon": 2.0}}},
}


def test_terms_under_which_nothing_was_committed_are_corrected(project, parse):
    """The first run stops before it reads a record; another one may have reserved as well."""
    for change in ({}, *OTHER_TERMS.values()):
        project.configure(change)
        found = open_resolved(["config.yaml"])
        plan = make_plan(build_dag(found), under_terms(found, known_states(found)))
        ledger = book.open_ledger(open_home(), plan.terms["tiny"])
        assert ledger.state.terms == plan.terms["tiny"]
        assert not ledger.state.charged_spends(), (
            "what was reserved under other terms is given back"
        )
        held = book.reserve(ledger, plan.items_of("tiny"))
    first = held[0]
    commit(ledger, first.token, "query", first.spends)
    for change in ({}, *[*OTHER_TERMS.values()][:3]):
        project.configure(change)
        with pytest.raises(SystemExit):
            parse()


def test_a_run_that_goes_on_after_looking_says_so(tmp_path):
    """A reservation of before is taken up again: what was released meanwhile may have been the
    reason."""
    ledger = book.open_ledger(open_home(tmp_path / "home"), TERMS)
    first, second = book.reserve(ledger, [item("first"), item("second")])
    commit(ledger, first.token, "query", first.spends)
    book.finish(ledger, first.token, "0" * 64)
    (again,) = book.reserve(ledger, [item("second")])
    assert (again.token, again.reserved) == (second.token, second.reserved)
    assert (again.continued or 0) > (ledger.state.charges[first.token].released or 0)
    assert book.reserve(ledger, [item("second")]) == (again,)
    assert book.load(Ledger(ledger.home, "toy")) == ledger.state


TERMS = Terms("toy", "add_remove", "record", 1, 1e-5, "all")


def item(name: str) -> Item:
    job = Job(name, "run_trial")
    return Item(job, name, (Spend("toy", "add_remove", Partition("all"), Gaussian(9.0)),))


@pytest.mark.long
def test_a_month_of_edits_charges_each_question_once_and_verifies_throughout(finished, capfd):
    first = Path(MODEL).read_bytes()
    begun = charged(finished)

    finished.configure(targets(1.0, 2.0))
    finished.finish()
    both = charged(finished)
    assert both - begun == Counter(PAID)
    verify()

    finished.configure()  # taken back
    told = finished.finish().stderr
    assert charged(finished) == both
    assert "files in results are not of this config, results/main/final/2/" in told
    assert main(["verify", "results"]) == 1
    shutil.rmtree("results/main/final/2")
    verify()

    Path(MODEL).unlink()
    assert main(["verify", "results"]) == 1
    finished.finish()
    assert Path(MODEL).read_bytes() == first
    assert charged(finished) == both
    verify()

    np.savez("data.npz", **mixture(records=310, seed=1))  # a new version of the data
    finished.configure({"respend": True, "dataset": {"version": 2}})
    assert main(["plan"]) == 0
    after = re.search(r"ever spent once it is done epsilon = (\d\.\d+)", capfd.readouterr().out)
    assert after is not None
    assert float(after[1]) > 2.4
    in_the_way = Path("logs/main/final/1/train.log")
    in_the_way.unlink()
    (in_the_way / "anything").mkdir(parents=True)
    assert finished.run().returncode == 1  # in the last training
    assert Path(MODEL).read_bytes() == first
    assert main(["predict", MODEL, "data.npz", "--output", "found.csv"]) == 0
    shutil.rmtree(in_the_way)
    finished.finish()
    assert Path(MODEL).read_bytes() != first
    assert charged(finished) - both == Counter({"run_trial": 6, **PAID})
    verify()
    (model,) = json.loads(Path("results/privacy.json").read_text())["datasets"]["tiny"][
        "artifacts"
    ].values()
    assert model["epsilon"] <= 1.0 < model["with_earlier"]["epsilon"]


def charged(workspace) -> Counter[str]:
    return Counter(held.job.rule for held in workspace.held())


def verify() -> None:
    assert main(["verify", "results"]) == 0
    assert main(["ledger", "verify", "results"]) == 0
