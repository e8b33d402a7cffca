"""Every refusal of a plan names a way that works: each is followed here, on a finished project, and
what it promised holds."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import Workspace, commit
from workflow.test_formats import unpacked

from dpladder.cli import main
from dpladder.errors import Refused
from dpladder.plan import edits, startup
from dpladder.plan.dag import build_dag
from dpladder.plan.plan import make_plan
from dpladder.plan.reuse import questions_to_repeat, under_terms
from dpladder.plan.startup import Parsed, known_states, open_resolved, reserve
from dpladder.plan.table import plan_document
from dpladder.privacy.accounting.events import Gaussian, Job
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.home import open_home

Changes = Mapping[str, Any]
CLIP = {"learner": {"clip": 2.0}}
AGAIN = {"respend": True}
FRESH = {"dataset": {"lineage": "other"}}
SEARCH = {"hpo": {"name": "papernot_steinke"}, "sweep": {"rungs": []}}
PAID = {"train_final": 1, "evaluate": 1}
ALL = {"run_trial": 6} | PAID
SEARCHED = {"private_search": 1, "evaluate": 1}
FREE: Mapping[str, int] = {}


@pytest.fixture
def finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    return unpacked("1-ladder", tmp_path, monkeypatch)


def configure(base: Changes, *changes: Changes) -> None:
    values = dict(base)
    for change in changes:
        values = merged(values, change)
    Path("config.yaml").write_text(yaml.safe_dump(values))


def merged(values: Mapping[str, Any], change: Changes) -> dict[str, Any]:
    found = dict(values)
    for key, value in change.items():
        inside = isinstance(value, Mapping) and isinstance(found.get(key), Mapping)
        found[key] = merged(found[key], value) if inside else value
    return found


def charged() -> Counter[str]:
    """What a run would newly charge."""
    project = open_resolved(["config.yaml"])
    dag, states = build_dag(project), under_terms(project, known_states(project))
    plan = make_plan(dag, states)
    found: Counter[str] = Counter()
    for lineage, terms in plan.terms.items():
        items = plan.items_of(lineage)
        new, _ = book.admit(terms, states[lineage], items, questions_to_repeat(dag, items))
        found.update(item.job.rule for item in new)
    return found


def targets(*totals: float) -> Changes:
    return {"final": {"targets": [*totals]}}


# What is refused, in which words, and each way out: what it changes in the config that was refused,
# and what that charges. A way out may take what it needs from the words; where it takes a change
# back, it is given the config before.
Way = tuple[Callable[[str], Changes | None], Mapping[str, int]]
UNDO: Way = (lambda told: None, FREE)


def remaining(told: str) -> Changes:
    found = re.search(r"which leaves epsilon = ([\d.]+\d)", told)
    assert found is not None, told
    return {"experiments": {"new": {"final": {"targets": [float(found[1])]}}}}


def declared(told: str) -> Changes:
    found = re.search(r"this needs ([\d.]+) and ([\d.]+\d)\.", told)
    assert found is not None, told
    return {"privacy": {"lifetime": {"loss": float(found[1]), "weight": float(found[2])}}}


def smaller_rungs(told: str) -> Changes:
    found = re.search(r"multiply every rung's epsilon by ([\d.]+)", told)
    assert found is not None, told
    return {
        "sweep": {"rungs": [{"epsilon": n * float(found[1]) / 10, "trials": 2} for n in (1, 2, 3)]}
    }


def larger_total(told: str) -> Changes:
    found = re.findall(r"raise the total to ([\d.]+)", told)
    return targets(float(found[-1].rstrip(".")))


def priced(told: str) -> Changes:
    found = re.search(r"respend: \{up_to: ([\d.]+)\}", told)
    assert found is not None, told
    return {"respend": {"up_to": float(found[1])}}


def paid_for(told: str) -> Changes:
    found = re.search(r"would cost epsilon = ([\d.]+),", told)
    assert found is not None, told
    return {"privacy": {"epsilon": float(found[1])}}


REFUSED: dict[str, tuple[Changes, str, tuple[Way, ...]]] = {
    "edited": (
        CLIP,
        "would pay again for 8 such job",
        (
            UNDO,
            (lambda told: AGAIN, ALL),
            (priced, ALL),
            (lambda told: {"learner": {"clip": 1.0}, "experiments": {"named": CLIP}}, ALL),
        ),
    ),
    "edited, its test alone": (
        {"evaluate": {"measures": "classes"}},
        "would pay again for 1 such job",
        (
            UNDO,
            (lambda told: {"respend": ["evaluate"]}, {"evaluate": 1}),
        ),
    ),
    "a total in another's place": (
        targets(2.0),
        "in its place, which is paid for beside it",
        (UNDO, (lambda told: targets(1.0, 2.0), PAID), (lambda told: AGAIN, ALL)),
    ),
    "beyond the lifetime": (
        {"experiments": {"new": {"final": {"targets": [7.99]}}}},
        "lifetime limit of epsilon = 8 ",
        (UNDO, (remaining, PAID)),
    ),
    "other terms": ({"privacy": {"delta": 1e-6}}, "Go back to them", (UNDO,)),
    "no share of delta": (
        {"experiments": {"sampled": {"learner": {"sampling_rate": 0.5}}}},
        "Train on full batches",
        (
            UNDO,
            (lambda told: {"experiments": {"sampled": {"learner": {"sampling_rate": 1.0}}}}, FREE),
        ),
    ),
    "no room for selections": (
        {"experiments": {"searched": SEARCH}},
        "private selections a loss of 0 and a weight of 1",
        (UNDO, (lambda told: {"experiments": {"searched": {"hpo": {"name": "ladder"}}}}, PAID)),
    ),
    **{
        f"too little room for selections among {mean:g}": (
            FRESH
            | merged(SEARCH, {"hpo": {"mean": mean}})
            | {"privacy": {"lifetime": {"loss": 0.01, "weight": 2.0}}},
            "private selections a loss of 0.01 and a weight of 2",
            ((declared, SEARCHED),),
        )
        for mean in (6.0, 9.0)
    },
    "a sweep above the total": (
        FRESH | targets(0.4),
        "total epsilon 0.4 is infeasible",
        ((smaller_rungs, ALL), (larger_total, ALL)),
    ),
    "a price that is too high": (
        FRESH | {"final": {"budget": 0.95, "targets": []}},
        "above its total of 1: raise the total to that",
        ((paid_for, ALL), (lambda told: {"final": {"budget": 0.5}}, ALL)),
    ),
    "beyond the lifetime at first": (
        FRESH | targets(9.0),
        "lifetime limit of epsilon = 8 ",
        ((lambda told: targets(8.0), ALL),),
    ),
}
FOLLOWED = [(name, place) for name, (_, _, ways) in REFUSED.items() for place in range(len(ways))]


@pytest.mark.few(9)
@pytest.mark.parametrize(("name", "place"), FOLLOWED)
def test_what_a_refusal_advises_works(name: str, place: int, finished: Workspace, capsys) -> None:
    change, words, ways = REFUSED[name]
    follow, cost = ways[place]
    base = yaml.safe_load(Path("config.yaml").read_text())
    configure(base, change)
    if "dataset" in change:  # another project, with a folder of its own
        shutil.rmtree("results")
    assert main(["plan"]) == 1
    told = "".join(capsys.readouterr())
    assert words in told, told
    way = follow(told)
    configure(base, *([] if way is None else [change, way]))
    assert main(["plan"]) == 0, capsys.readouterr().err
    assert charged() == Counter(cost)


def test_a_price_is_used_up_by_what_it_was_given_for(finished: Workspace, capsys) -> None:
    base = yaml.safe_load(Path("config.yaml").read_text())
    configure(base, CLIP)
    assert main(["plan"]) == 1
    price = priced("".join(capsys.readouterr()))
    configure(base, CLIP, price)
    edited = parsed()
    assert main(["plan"]) == 0
    for _ in range(2):  # a run that is cut off, and the one that goes on
        reserve(edited, due_of(edited), "local")
        assert main(["plan"]) == 0
    ledger = Ledger(open_home(), "tiny")
    for one in [held for held in finished.held() if held.status == "RESERVED"]:
        found = book.commit_elsewhere(ledger, one.token, one.token, one.spends)
        book.finish(ledger, found.token, "output")
    assert main(["plan"]) == 0
    capsys.readouterr()
    configure(base, {"learner": {"clip": 3.0}}, price)
    assert main(["plan"]) == 1
    assert "would pay again for 8 such job" in capsys.readouterr().err


def test_an_edit_of_one_column_of_many_is_named_alone() -> None:
    """Both lists were told up to the same place, before what differs."""
    before = [{"name": f"c{place}", "range": [0, 100]} for place in range(9)]
    now = [*before[:7], {"name": "age", "range": [0, 100]}, before[8]]
    told = [*edits._edits({"columns": before}, {"columns": now}, "dataset.")]
    assert told == ['dataset.columns[7].name was "c7", is "age"']
    [whole] = edits._edits({"columns": before}, {"columns": now[:8]})
    assert whole.startswith('columns was [{"name": "c0"')


def test_a_refusal_names_the_edits_since_the_last_run_here(finished: Workspace, capsys) -> None:
    base = yaml.safe_load(Path("config.yaml").read_text())
    Path("results/plan.json").unlink()  # for people alone
    configure(base, CLIP)
    assert main(["plan"]) == 1
    assert "Edited since the last run here: main: learner.clip was 1.0, is 2.0." in (
        capsys.readouterr().err
    )
    Path("results").rename("elsewhere")  # the same home, another folder
    assert main(["plan"]) == 0


def test_a_respend_without_a_price_stands_open_and_the_plan_says_so(
    finished: Workspace, capsys
) -> None:
    base = yaml.safe_load(Path("config.yaml").read_text())
    configure(base, AGAIN)
    assert main(["plan"]) == 0
    assert "respend: true stands open" in capsys.readouterr().out
    configure(base, {"respend": {"up_to": 3.0}})
    assert main(["plan"]) == 0
    assert "stands open" not in capsys.readouterr().out


def parsed() -> Parsed:
    project = open_resolved(["config.yaml"])
    dag, states = build_dag(project), under_terms(project, known_states(project))
    plan = make_plan(dag, states)
    return Parsed(dag, plan, plan_document(plan, states, dag))


def due_of(parsed: Parsed) -> list[tuple[str, dict[str, str]]]:
    jobs = parsed.plan.items
    return [(job.rule, dict(job.wildcards) | {"experiment": job.experiment}) for job in jobs]


def test_a_plan_that_another_run_overtook_is_made_anew_by_starting_again(
    finished: Workspace, capsys
) -> None:
    base = yaml.safe_load(Path("config.yaml").read_text())
    configure(base, targets(1.0, 2.0))
    due = [(rule, {"experiment": "main", "target": "2"}) for rule in PAID]
    planned = parsed()
    ledger = Ledger(open_home(), "tiny")
    item = planned.plan.items[Job("main", "train_final", (("target", "2"),))]
    spend = replace(item.spends[0], event=Gaussian(50.0))
    (other,) = book.reserve(ledger, [replace(item, spends=(spend,))])
    commit(ledger, other.token, "0" * 64, [spend])
    with pytest.raises(SystemExit):
        reserve(planned, due, "local")
    assert "Nothing was spent: start again" in capsys.readouterr().err
    reserve(parsed(), due, "local")
    assert [held.job.rule for held in finished.held() if held.status == "RESERVED"] == ["evaluate"]


def test_a_reservation_that_was_taken_back_is_made_again_by_the_next_run(
    finished: Workspace,
) -> None:
    base = yaml.safe_load(Path("config.yaml").read_text())
    configure(base, targets(1.0, 2.0))
    due = [(rule, {"experiment": "main", "target": "2"}) for rule in PAID]
    reserve(parsed(), due, "local")
    ledger = Ledger(open_home(), "tiny")
    book.load(ledger)
    held = [one for one in ledger.state.charges.values() if one.status == "RESERVED"]
    configure(base)
    reserve(parsed(), [], "local")  # plans them no longer
    for one in held:
        with pytest.raises(Refused, match="Start the workflow again: it reserves first"):
            commit(ledger, one.token, "0" * 64, one.spends)
    assert main(["plan"]) == 0
    configure(base, targets(1.0, 2.0))
    reserve(parsed(), due, "local")
    again = [one for one in finished.held() if one.status == "RESERVED"]
    assert [one.spends for one in again] == [one.spends for one in held]
    commit(ledger, again[0].token, "0" * 64, again[0].spends)


@pytest.mark.parametrize("question", ["asked anew", "of another clone"])
def test_what_was_reserved_and_the_next_run_need_not_ask_comes_back(
    finished: Workspace, question: str
) -> None:
    """By a run with respend, or in a clone whose experiment of this name was edited; both were
    killed. Else it would stay charged, and count against the total of a model."""
    before, planned, ledger = finished.held(), parsed(), Ledger(open_home(), "tiny")
    item = planned.plan.items[Job("main", "train_final", (("target", "1"),))]
    if question == "of another clone":
        item = replace(item, question="another")
    book.reserve(ledger, [item], {item.question})
    assert len(finished.held()) == len(before) + 1
    reserve(planned, [], "local")
    assert finished.held() == before


def test_units_known_by_another_column_are_refused_before_anything_is_charged(
    finished: Workspace, capsys, monkeypatch
) -> None:
    """At the parse, and again where it is charged, for another clone may have begun meanwhile. What
    is finished may be looked at all the same."""
    base = yaml.safe_load(Path("config.yaml").read_text())
    configure(base, targets(1.0, 2.0))
    due = [(rule, {"experiment": "main", "target": "2"}) for rule in PAID]
    planned = parsed()
    monkeypatch.setattr(startup, "_units_of", lambda *_: {"dataset.id": "case"})
    with pytest.raises(SystemExit):
        reserve(planned, due, "local")
    told = "lineage tiny knows its units by dataset.id: empty, and the config says case"
    assert told in " ".join(capsys.readouterr().err.split())
    assert main(["plan"]) == 1
    assert told in " ".join(capsys.readouterr().err.split())
    configure(base)
    assert main(["plan"]) == 0


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({}, True),
        ({"dataset": {"lineage": "others"}}, False),
        ({"respend": True}, False),
        ({"dataset": {"version": 2}}, False),
        ({"dataset": {"columns": [{"name": "height", "range": [0, 250]}, "age"]}}, False),
    ],
)
def test_a_table_without_a_common_column_is_refused_before_anything_is_reserved(
    change: Changes, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    """Another project took the name of a lineage that its home knows. It says how to go on; a
    label, a column or a version of its own is no other people's data."""
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    base: dict[str, Any] = {
        "dataset": {
            "lineage": "patients",
            "source": "csv:data/table.csv",
            "nominal_size": 1000,
            "label": "label",
            "classes": ["well", "ill"],
            "columns": [{"name": "age", "range": [0, 100]}],
        },
        "features": {"model": "none"},
        "privacy": {"epsilon": 1.0, "delta": 1e-6},
    }
    other = merged(base, {"dataset": {"columns": [{"name": "height", "range": [0, 250]}]}})
    for folder in ("first", "second"):
        (tmp_path / folder / "data").mkdir(parents=True)
        (tmp_path / folder / "data" / "table.csv").write_text("age,height,dose,label\n")
    monkeypatch.chdir(tmp_path / "first")
    configure(base)
    planned = parsed()
    reserve(planned, due_of(planned), "local")
    ledger = Ledger(open_home(), "patients")
    charge = next(iter(book.load(ledger).charges.values()))
    commit(ledger, charge.token, "0" * 64, charge.spends)
    monkeypatch.chdir(tmp_path / "second")
    configure(other, change)
    assert main(["plan"]) == refused
    told = " ".join(capsys.readouterr().err.split())
    assert ('columns ["age"], and this config has ["height"]' in told) == refused
    assert ("a name of its own, dataset.lineage" in told) == refused
    monkeypatch.chdir(tmp_path / "first")  # an edit in a folder that ran already
    configure(other, {"dataset": {"classes": ["0", "1"]}})
    main(["plan"])
    assert "none in common" not in capsys.readouterr().err
