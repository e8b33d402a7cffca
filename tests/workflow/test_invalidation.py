"""One edit at a time to a finished project: the exact jobs that Snakemake would run, and what the
ledger would charge.

The project has three rungs of two trials and one target. `refused` rows would pay again for
something released.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from support import as_the_ledger_knows, commit

from dpladder.config.load import load
from dpladder.plan.dag import build_dag
from dpladder.plan.plan import make_plan
from dpladder.plan.resolve import resolve_defaults
from dpladder.plan.startup import known_states
from dpladder.privacy.ledger.book import Ledger, finish, reserve
from dpladder.privacy.ledger.home import open_home

NOTHING: dict[str, int] = {}
REPORT = {"compose_privacy": 1, "summarise": 1, "write_report": 1}
PLAN = {"plan_spend": 1, **REPORT}
FINAL = {"fit_radius": 1, "train_final": 1, "evaluate": 1}
SWEEP = {"run_trial": 6, "select_rung": 3}
FEATURES = {"extract_features": 2, "merge_features": 2}
EVERYTHING = {"prepare_dataset": 1, **FEATURES, **SWEEP, **FINAL, **REPORT}


RUNGS = [{"epsilon": epsilon, "trials": 2} for epsilon in (0.1, 0.2, 0.3)]
# a total that has room for what was spent before
PAY_AGAIN = {"respend": True, "final": {"targets": [2.0]}}
FOUR_TRIALS = [*RUNGS[:2], {"epsilon": 0.3, "trials": 3}]
DEARER_RUNG = [RUNGS[0], {"epsilon": 0.25, "trials": 2}, RUNGS[2]]
PAID = {"train_final": 1, "evaluate": 1}
AGAIN = "(is done and paid for|changed).*respend: true"
OTHER_TERMS = "opened under other terms"


def edit(*changes):
    """Change the config."""
    return lambda workspace: workspace.configure(*changes)


def rewrite(records):
    """Put another version of the data in place of the old one."""

    def replaced(workspace):
        with np.load("data.npz") as old:
            arrays = {name: records(array) for name, array in old.items()}
        Path("data.npz").unlink()
        np.savez("data.npz", **arrays)

    return replaced


def touch(workspace):
    os.utime("data.npz")


def move_source(workspace):
    Path("data.npz").rename("moved.npz")
    workspace.configure({"dataset": {"source": "npz:moved.npz"}})


def move_project(workspace):
    """A copy elsewhere, as a clone would be, with the old one gone."""
    elsewhere = workspace.folder.with_name("elsewhere")
    workspace.folder.rename(elsewhere)
    os.chdir(elsewhere)


def forget_snakemake(workspace):
    shutil.rmtree(".snakemake")


def public_source(workspace):
    np.savez("test.npz", features=np.zeros((9, 16), np.float32), labels=np.arange(9) % 3)
    workspace.configure({"dataset": {"public_test": "npz:test.npz"}})


TABLE = {
    # what changes no output
    "nothing": (edit(), NOTHING, NOTHING),
    "memory, threads, time": (
        edit({"resources": {"mem_mb": 9000, "runtime": 5}}),
        NOTHING,
        NOTHING,
    ),
    "respend alone": (edit({"respend": True}), NOTHING, NOTHING),
    "snakemake's memory lost": (forget_snakemake, NOTHING, NOTHING),
    "the project moved": (move_project, NOTHING, NOTHING),
    # what runs again to find that nothing changed: all of it restored, free
    "source touched": (touch, EVERYTHING, NOTHING),
    "source moved": (move_source, EVERYTHING, NOTHING),
    "private folder": (edit({"paths": {"private": "secret"}}), EVERYTHING, NOTHING),
    "cache folder": (
        edit({"paths": {"cache": "shared"}}),
        EVERYTHING | {"prepare_dataset": 0},
        NOTHING,
    ),
    "shards": (
        edit({"features": {"shards": 2}}),
        EVERYTHING | {"extract_features": 4, "prepare_dataset": 0},
        NOTHING,
    ),
    # a new version of the data: whether a job pays again shows when it runs
    "a record added": (
        rewrite(lambda array: np.concatenate([array, array[:1]])),
        EVERYTHING,
        NOTHING,
    ),
    "a record removed": (rewrite(lambda array: array[1:]), EVERYTHING, NOTHING),
    # what adds to the DAG
    "a target added": (
        edit({"final": {"targets": [1.0, 2.0]}}),
        FINAL | PLAN,
        PAID,
    ),
    "an experiment that shares the sweep": (
        edit({"experiments": {"curved": {"fit": {"degree": 2}}}}),
        FINAL | PLAN | {"summarise": 2},
        PAID,
    ),
    "an experiment with another learner": (
        edit(
            {"experiments": {"ridge": {"learner": {"name": "dp_ls", "shared": {"epsilon": 0.1}}}}}
        ),
        {"estimate_sums": 1} | SWEEP | FINAL | PLAN | {"summarise": 2},
        {"estimate_sums": 1, "run_trial": 6} | PAID,
    ),
    "an experiment whose trials share statistics": (
        edit(
            {
                "experiments": {
                    "solved": {
                        "learner": {"name": "dp_ls", "shared": {"epsilon": 0.1, "sums": "all"}},
                        "fit": {"using": "pooled"},
                    }
                }
            }
        ),
        {"estimate_sums": 1} | SWEEP | FINAL | PLAN | {"summarise": 2},
        {"estimate_sums": 1, "run_trial": 6} | PAID,
    ),
    "a public test set": (
        public_source,
        {"prepare_public": 1, "extract_features": 1, "merge_features": 1, "evaluate": 1, **PLAN},
        NOTHING,
    ),
    # what pays again, where its total and the lifetime have room
    "degree": (edit({"fit": {"degree": 2}}, PAY_AGAIN), FINAL | PLAN, PAID),
    "one trial more": (
        edit({"sweep": {"rungs": FOUR_TRIALS}}, PAY_AGAIN),
        {"run_trial": 3, "select_rung": 1}
        | FINAL
        | PLAN,  # one job, which restores two and gives their charge back
        {"run_trial": 3} | PAID,
    ),
    "one rung's epsilon": (
        edit({"sweep": {"rungs": DEARER_RUNG}}, PAY_AGAIN),
        {"run_trial": 2, "select_rung": 1} | FINAL | PLAN,
        {"run_trial": 2} | PAID,
    ),
    "range of steps": (
        edit({"sweep": {"search": {"steps": [2, 9]}}}, PAY_AGAIN),
        SWEEP | FINAL | PLAN,
        {"run_trial": 6} | PAID,
    ),
    "momentum": (
        edit({"learner": {"momentum": 0.5}}, PAY_AGAIN),
        SWEEP | FINAL | PLAN,
        {"run_trial": 6} | PAID,
    ),
    "scale of the features": (
        edit({"features": {"normalize": True}}, PAY_AGAIN),
        FEATURES | SWEEP | FINAL | PLAN,
        {"run_trial": 6} | PAID,
    ),
}

REFUSED = {
    "degree": (edit({"fit": {"degree": 2}}), f"{AGAIN}.*fit.degree was 1, is 2"),
    "one trial more": (edit({"sweep": {"rungs": FOUR_TRIALS}}), f"{AGAIN}.*trials was"),
    "one rung's epsilon": (edit({"sweep": {"rungs": DEARER_RUNG}}), f"{AGAIN}.*epsilon was"),
    "range of steps": (
        edit({"sweep": {"search": {"steps": [2, 9]}}}),
        rf"{AGAIN}.*Edited .*: sweep.search.steps was \[2, 8\], is \[2, 9\]",
    ),
    "momentum": (
        edit({"learner": {"momentum": 0.5}}),
        f"{AGAIN}.*learner.momentum was 0.9, is 0.5",
    ),
    "scale of the features": (
        edit({"features": {"normalize": True}}),
        f"{AGAIN}.*features.normalize was false",
    ),
    "feature type": (edit({"features": {"dtype": "float16"}}), f"{AGAIN}.*features.dtype was"),
    "nominal size": (
        edit({"dataset": {"nominal_size": 200}}),
        f"{AGAIN}.*dataset.nominal_size was 240, is 200",
    ),
    "test epsilon": (
        edit({"evaluate": {"epsilon": 0.3}}),
        f"{AGAIN}.*evaluate.epsilon was null, is 0.3",
    ),
    "a noised mean": (
        edit({"features": {"mean": {"epsilon": 0.1}}}),
        f"{AGAIN}.*features.mean was null",
    ),
    "no room to pay again": (
        edit({"fit": {"degree": 2}, "final": {"targets": [8.0]}}, {"respend": True}),
        "would reach epsilon = .*above its lifetime limit of 8",
    ),
    "test split": (edit({"dataset": {"split": {"test": 0.3}}}), f"{OTHER_TERMS}.*split_rule"),
    "delta": (edit({"privacy": {"delta": 1e-6}}), f"{OTHER_TERMS}.*delta is 1e-05, not 1e-06"),
    "relation": (edit({"privacy": {"relation": "replace_one"}}), f"{OTHER_TERMS}.*relation"),
    "lifetime": (
        edit({"privacy": {"lifetime": {"epsilon": 9.0}}}),
        f"{OTHER_TERMS}.*lifetime_epsilon",
    ),
}


def grouped(due: Counter) -> Counter:
    """Jobs by rule, the target of all left out."""
    return Counter({name: jobs for name, jobs in due.items() if name != "all"})


@pytest.mark.few(12)
@pytest.mark.parametrize(("change", "due", "charged"), TABLE.values(), ids=TABLE.keys())
def test_an_edit_runs_exactly_the_jobs_it_touches(change, due, charged, finished, walk):
    change(finished)
    found = walk()
    assert grouped(found.due) == +Counter(due)
    assert found.charged == Counter(charged)


@pytest.mark.few(6)
@pytest.mark.parametrize(("change", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_an_edit_that_would_pay_again_is_refused_at_parse(change, why, finished, walk, capfd):
    change(finished)
    before = finished.held()
    with pytest.raises(SystemExit) as ended:
        walk()
    assert ended.value.code == 1
    assert re.search(why, capfd.readouterr().err, re.DOTALL)
    assert finished.held() == before


RIDGE = {"learner": {"name": "dp_ls", "shared": {"epsilon": 0.1}}}


def pay_for(workspace, experiment: str) -> None:
    """What an experiment's own jobs leave in the ledger, without running them."""
    workspace.configure({"experiments": {experiment: RIDGE}})
    plan = make_plan(
        build_dag(resolve_defaults(load(["config.yaml"]))),
        known_states(resolve_defaults(load(["config.yaml"]))),
    )
    ledger = Ledger(open_home(), "tiny")
    own = [item for item in plan.items.values() if item.job.experiment == experiment]
    for held in reserve(ledger, own):
        commit(ledger, held.token, held.token, held.spends)
        finish(ledger, held.token, "0" * 64)


def test_an_experiment_put_above_another_pays_for_nothing_that_is_there(finished, walk, parse):
    pay_for(finished, "old")
    finished.configure({"experiments": {"new": RIDGE | {"fit": {"against": "mu"}}, "old": RIDGE}})
    assert walk().charged == Counter(PAID)
    shared = {"estimate_sums", "run_trial"}
    jobs = (found for job in parse()[1] for found in as_the_ledger_knows(job))
    assert {wildcards["experiment"] for rule, wildcards in jobs if rule in shared} == {"new"}


def test_an_experiment_renamed_is_charged_nothing(finished, walk):
    pay_for(finished, "old")
    finished.configure({"experiments": {"new": RIDGE}})
    assert walk().charged == Counter()


def test_an_experiment_renamed_is_charged_nothing_where_its_name_went_to_another_lineage(
    finished, walk
):
    pay_for(finished, "old")
    elsewhere = {"dataset": {"lineage": "elsewhere", "source": "npz:other.npz"}}
    shutil.copy("data.npz", "other.npz")
    finished.configure({"experiments": {"new": RIDGE, "old": elsewhere}})
    assert walk().charged == Counter({"run_trial": 6} | PAID)  # of the other lineage


def insert(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


@pytest.mark.parametrize(
    "file", ["learn/descent.py", "privacy/release/noise.py", "report/ladder_figure.py"]
)
def test_an_edit_to_the_code_makes_figures_and_documents_anew_and_is_charged_nothing(
    file, finished, package, walk
):
    """Releases, and what they stand on, are known by the names of mechanisms."""
    insert(package / file, "from __future__", "PACE = 2\nfrom __future__")
    found = walk()
    assert grouped(found.due) == Counter(PLAN)
    assert found.charged == Counter()


@pytest.mark.ci
def test_another_version_of_a_library_is_provenance_and_runs_nothing(finished, walk, monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda package: "99.0")
    assert walk().due == Counter()


def test_what_changed_is_named_when_snakemake_has_forgotten(finished, walk, capfd):
    shutil.rmtree(".snakemake")
    finished.configure({"paths": {"cache": "shared"}})
    assert walk().due == Counter()
    named = re.search(
        r"Changed since results/privacy.json .*--forcerun "
        r"(.*)",
        capfd.readouterr().err,
    )
    assert named is not None
    assert named.group(1).split() == ["extract_features", "merge_features"]


def test_a_source_that_changed_is_told_with_what_the_old_answers_are_of(finished, walk, capfd):
    touch(finished)
    assert grouped(walk().due) == Counter(EVERYTHING)
    assert "of the records as they were then; another dataset.version" in capfd.readouterr().err


def test_nothing_is_said_to_have_changed_in_a_finished_project(finished, walk, capfd):
    walk()
    told = capfd.readouterr().err
    assert "Changed since" not in told
    assert "by other code" not in told
