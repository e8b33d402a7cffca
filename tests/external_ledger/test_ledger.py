"""`dpladder.Ledger`: what is written before what, and every misuse that is refused."""

from __future__ import annotations

import copy
import json
import os
import pickle
import shutil
import threading
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import torch
from dp_accounting import dp_event
from support import in_new_python

import dpladder
from dpladder.cli import main
from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.composition import largest_entry
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.ledger.limits import caps
from dpladder.privacy.ledger.state import Terms
from dpladder.privacy.statement.build import seal
from dpladder.privacy.statement.documents import SealedStatement
from dpladder.privacy.statement.page import page
from dpladder.section import from_document
from dpladder_ledger.released import digest

COUNT = dp_event.GaussianDpEvent(20.0)  # epsilon = 0.16 at delta = 1e-5


@pytest.fixture(name="place", autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(name="ledger")
def _ledger(place):
    return dpladder.Ledger("patients", epsilon=1.0, delta=1e-5)


def statuses(lineage: str = "patients") -> list[str]:
    """As another process reads them from the disk."""
    state = book.load(book.Ledger(open_home(), lineage))
    return [held.status for held in state.charges.values()]


def test_a_ledger_whose_terms_somebody_corrected_spends_nothing(ledger):
    """Before the first COMMIT others may correct the terms, and what is opened already is told."""
    dpladder.Ledger("patients", epsilon=1.0, delta=1e-5, unit="user")
    with pytest.raises(Refused, match="unit is user, not record"):
        ledger.spend("count", COUNT)
    assert statuses() == []
    dpladder.Ledger("patients", epsilon=9.0, delta=1e-5)
    with pytest.raises(Refused, match=r"lifetime_epsilon is 9\.0, not 1\.0"):
        ledger.count("all", [1, 2], epsilon=0.1)


@pytest.mark.parametrize("results", ["results", "filed/r2", "."])
def test_a_statement_goes_with_its_folder_whatever_that_is_called(place, results, monkeypatch):
    (place / "work").mkdir()
    monkeypatch.chdir(place / "work")
    ledger = dpladder.Ledger("others", epsilon=1.0, delta=1e-5, results=results)
    with ledger.spend("count", COUNT) as charge:
        charge.finish(3)
    ledger.statement()
    assert ledger.verify() == []
    assert main(["verify", results]) == 0
    moved = place / "officer"
    shutil.copytree(results, moved)
    assert main(["verify", str(moved)]) == 0


@pytest.mark.parametrize("multiplier", [1e9, 1e170, 1.7e308])
def test_a_spend_too_small_for_a_double_is_charged_and_refused_at_the_limit(ledger, multiplier):
    """Another ledger took such spends for free, and without end once its limit was reached."""
    tiny = dp_event.GaussianDpEvent(multiplier)
    ledger.reserve("first", tiny)
    spent = largest_entry(book.load(ledger._ledger).charged_spends()).mu
    assert spent > 0.0
    room = gdp.remaining(caps(ledger._terms).mu, [spent])
    ledger.reserve("rest", dp_event.GaussianDpEvent(gdp.sigma(room, 1)))
    assert not ledger.affords(tiny)
    with pytest.raises(Refused, match="lifetime limit"):
        ledger.spend("one-more", tiny)


def test_numbers_in_quotes_are_refused(ledger):
    with pytest.raises(BadInput, match="lifetime_epsilon is '1'"):
        dpladder.Ledger("others", epsilon="1", delta=1e-5)
    with pytest.raises(BadInput, match="noise_multiplier is '3'"):
        ledger.affords(dp_event.GaussianDpEvent("3"))


def test_a_value_that_is_no_number_is_in_no_message(ledger):
    with pytest.raises(BadInput) as caught, ledger.spend("count", COUNT) as charge:
        charge.noise("secret 17", sensitivity=1.0)
    assert "17" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert statuses() == ["COMMITTED"]


# --- what is written when -------------------------------------------------------------------------


def test_a_spend_is_on_disk_at_each_of_its_steps(ledger):
    charge = ledger.reserve("count", COUNT)
    assert statuses() == ["RESERVED"]
    charge.commit()
    assert statuses() == ["COMMITTED"]
    output = charge.finish(3.5)
    assert statuses() == ["DONE"]
    assert ledger.released("count") == output == digest(3.5)


def test_inside_the_block_a_spend_is_committed_and_after_it_done(ledger):
    with ledger.spend("count", COUNT) as charge:
        assert statuses() == ["COMMITTED"]
        charge.finish(b"released")
    assert statuses() == ["DONE"]
    with pytest.raises(Refused, match="without finish"), ledger.spend("another", COUNT):
        pass
    assert statuses() == ["DONE", "COMMITTED"]


def test_a_mechanism_that_fails_stays_charged(ledger):
    with pytest.raises(ZeroDivisionError), ledger.spend("count", COUNT):
        1 / 0  # noqa: B018
    assert statuses() == ["COMMITTED"]
    assert ledger.spent == pytest.approx(0.1598, abs=1e-3)


def test_as_a_decorator_each_call_is_a_spend_and_its_result_the_release(ledger):
    @ledger.spends(lambda trial: f"trial-{trial}", COUNT)
    def score(trial: int) -> float:
        assert statuses()[-1] == "COMMITTED"
        return trial / 10

    assert [score(1), score(2)] == [0.1, 0.2]
    assert statuses() == ["DONE", "DONE"]
    assert ledger.released("trial-2") == digest(0.2)


def test_the_limit_holds_for_all_that_is_reserved(ledger):
    final = ledger.reserve("final", dp_event.GaussianDpEvent(4.5))
    trials = 0
    while ledger.affords(COUNT):
        with ledger.spend(f"trial-{trials}", COUNT) as charge:
            charge.finish(trials)
        trials += 1
    assert trials > 5
    with pytest.raises(Refused, match="lifetime limit of epsilon = 1"):
        ledger.reserve("one-more", COUNT)
    assert ledger.spent <= 1.0
    final.commit().finish("weights")
    assert ledger.spent <= 1.0


def test_what_was_only_reserved_can_be_given_back(ledger):
    charge = ledger.reserve("count", COUNT)
    charge.refund()
    assert (charge.status, ledger.spent) == ("REFUNDED", 0.0)
    with pytest.raises(Refused, match="is REFUNDED"):
        charge.commit()
    with ledger.spend("count", COUNT) as other:
        with pytest.raises(Refused, match="stays charged"):
            other.refund()
        other.finish(1)


def test_a_script_that_is_run_again_takes_up_what_it_had_reserved(ledger):
    ledger.reserve("count", COUNT)
    again = dpladder.Ledger("patients", epsilon=1.0, delta=1e-5)
    again.reserve("count", COUNT).commit().finish(1)
    assert statuses() == ["DONE"]


def test_what_is_paid_for_is_paid_again_only_on_demand(ledger):
    ledger.spend("count", COUNT).finish(1)
    ledger.spend("lost", COUNT)
    for name in ("count", "lost"):
        with pytest.raises(Refused, match="again=True"):
            ledger.reserve(name, COUNT)
    before = ledger.spent
    ledger.spend("count", COUNT, again=True).finish(2)
    assert ledger.spent > before
    assert ledger.released("count") == digest(2)


def test_what_is_left_can_be_spent_and_the_ledger_says_it(ledger):
    assert repr(ledger) == (
        "<Ledger of lineage patients: epsilon = 0.0000 of 1 is spent, 0.9930 is left (delta = "
        "1e-05, add_remove, for each record)>"
    )
    ledger.spend("count", COUNT).finish(1)
    assert 0 < ledger.left < 1.0
    rest = dp_event.GaussianDpEvent(1 / gdp.mu_from_epsilon(ledger.left, 1e-5))
    assert ledger.affords(rest)
    ledger.spend("rest", rest).finish(2)
    assert ledger.left < 0.02
    assert f"{ledger.left:.4f} is left" in repr(ledger)


# --- terms ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other", [{"epsilon": 2.0}, {"delta": 1e-6}, {"relation": "replace_one"}, {"unit": "patient"}]
)
def test_terms_hold_for_life(ledger, other):
    ledger.spend("count", COUNT).finish(1)
    with pytest.raises(Refused, match="for its life"):
        dpladder.Ledger("patients", **{"epsilon": 1.0, "delta": 1e-5} | other)


def test_a_workflows_lineage_is_continued_under_its_own_terms(place):
    terms = Terms("shared", "add_remove", "record", 1, 1e-5, "hash 0.8", 1.0, share=0.2)
    book.open_ledger(open_home(), terms)
    ledger = dpladder.Ledger("shared", epsilon=1.0, delta=1e-5)
    ledger.spend("count", COUNT).finish(1)
    assert ledger.spent > 0


@pytest.mark.parametrize("mechanism", [[(2.0, 0.01, 100)], dp_event.ZCDpEvent(0.01)])
def test_a_lineage_that_sets_no_delta_aside_affords_no_samples(place, mechanism):
    """A workflow's full batches need none."""
    terms = Terms("full", "add_remove", "record", 1, 1e-5, "given", 2.0, share=0.0)
    book.open_ledger(open_home(), terms)
    ledger = dpladder.Ledger("full", 2.0, 1e-5)
    assert ledger.affords(COUNT)
    assert not ledger.affords(mechanism)
    with pytest.raises(Refused, match="sets no share of delta aside"):
        ledger.reserve("training", mechanism)


def test_a_research_lineage_is_refused(place):
    book.open_ledger(
        open_home(), Terms("open", "add_remove", "record", 1, 1e-5, "hash", mode="research")
    )
    with pytest.raises(Refused, match="mode research"):
        dpladder.Ledger("open", epsilon=1.0, delta=1e-5)


@pytest.mark.parametrize("name", ["", "a b", "../up", ".hidden", "a/b"])
def test_names_are_file_names(ledger, name):
    with pytest.raises(BadInput, match="a spend is called"):
        ledger.reserve(name, COUNT)


def test_no_home_lies_among_what_is_published(place):
    for home in (place / "results/home", place / "logs/home", place / "own/deep"):
        with pytest.raises(BadInput, match="may be published"):
            dpladder.Ledger("patients", 1.0, 1e-5, home=home, results="own")
        assert not home.exists(), "its key was made before it was refused"


@pytest.mark.parametrize("name", [None, 3, b"patients", Path("patients")])
def test_a_lineage_is_a_name(name, place):
    with pytest.raises(BadInput, match="name for life, as text"):
        dpladder.Ledger(name, 1.0, 1e-5)
    assert not (place / "home").exists()


# --- noise ----------------------------------------------------------------------------------------


def test_noise_is_that_of_the_reserved_gaussians_alone(ledger):
    many = dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(400.0), 2)
    with ledger.spend("means", [many]) as charge:
        first, second = charge.noise(np.zeros(4000), 0.5), charge.noise(np.zeros(4000), 0.5)
        with pytest.raises(Refused, match="no room for another Gaussian"):
            charge.noise(0.0, 0.5)
        charge.finish([first, second])
    assert np.std(first) == pytest.approx(200.0, rel=0.05)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.06
    assert not (first * 2.0**-4 % 1).any(), "off the public grid"


def test_two_spends_draw_different_noise(ledger):
    drawn = []
    for name in ("one", "two"):
        with ledger.spend(name, COUNT) as charge:
            drawn.append(charge.noise(np.zeros(8), 1.0))
            charge.finish(drawn[-1])
    assert not np.array_equal(*drawn)


@pytest.mark.parametrize("sensitivity", [0.0, -1.0, float("nan"), float("inf")])
def test_noise_needs_a_sensitivity(ledger, sensitivity):
    with ledger.spend("count", COUNT) as charge:
        with pytest.raises(BadInput, match="sensitivity"):
            charge.noise(1.0, sensitivity)
        charge.finish(1)


def test_what_is_not_finite_counts_as_a_public_constant_and_bears_noise(ledger):
    odd = [float("nan"), float("inf"), -float("inf"), 0.0]
    with ledger.spend("ages", dp_event.SelfComposedDpEvent(COUNT, 2)) as charge:
        together = charge.noise(np.array(odd * 50), 1.0).reshape(-1, 4)
        alone = charge.noise(odd[0], 1.0)
        charge.finish(together)
    assert np.isfinite(together).all()
    assert len(set(together[:, 0])) > 10, "no noise where the value is no number"
    assert abs(np.append(together[:, 0], alone)).max() < 200, "another constant than 0"


# --- misuse ---------------------------------------------------------------------------------------

DRAWS = {
    "noise": lambda charge: charge.noise(1.0, 1.0),
    "a step": lambda charge: charge.accountant().step(noise_multiplier=1.0, sample_rate=0.1),
    "an end": lambda charge: charge.finish(1.0),
}
BOTH = [(1.0, 0.1, 3), COUNT]


@pytest.fixture(name="wide")
def _wide(place):
    return dpladder.Ledger("patients", epsilon=8.0, delta=1e-5)


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_nothing_is_drawn_before_commit(wide, draw):
    charge = wide.reserve("trial", BOTH)
    with pytest.raises(Refused, match="commit\\(\\) it first"):
        draw(charge)
    assert statuses() == ["RESERVED"]


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_nothing_is_drawn_after_the_end_and_nothing_ends_twice(wide, draw):
    charge = wide.spend("trial", BOTH)
    output = charge.finish(1.0)
    with pytest.raises(Refused, match="it is DONE"):
        draw(charge)
    assert wide.released("trial") == output


def test_two_that_reserve_under_one_name_cannot_both_draw(ledger):
    """Whether two objects, two processes or two hosts with one home: a reservation is committed
    once."""
    other = dpladder.Ledger("patients", epsilon=1.0, delta=1e-5).reserve("count", COUNT)
    mine = ledger.reserve("count", COUNT)
    other.commit()
    with pytest.raises(Refused, match="another process or thread"):
        mine.commit()
    with pytest.raises(Refused, match="committed once"):
        other.commit()
    assert statuses() == ["COMMITTED"]


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_another_thread_cannot_draw_on_a_charge(wide, draw):
    charge, caught = wide.spend("trial", BOTH), []

    def work():
        try:
            draw(charge)
        except Refused as refused:
            caught.append(str(refused))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "another thread" in caught[0]
    draw(charge)


def test_threads_share_a_ledger_each_with_its_own_spend(ledger):
    failed = []

    def work(number: int) -> None:
        try:
            with ledger.spend(f"trial-{number}", dp_event.GaussianDpEvent(100.0)) as charge:
                charge.finish(charge.noise(0.0, 1.0))
        except Refused as refused:
            failed.append(refused)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (failed, statuses()) == ([], ["DONE"] * 8)
    assert ledger.verify() == []


def fork(work) -> str:
    """What a forked child was refused with."""
    receive, send = get_context("fork").Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        try:
            work()
            send.send("nothing")
        except BaseException as error:
            send.send(f"{type(error).__name__}: {error}")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return receive.recv()


@pytest.mark.parametrize("draw", [*DRAWS.values(), lambda c: c.commit(), lambda c: c.refund()])
def test_a_fork_cannot_use_its_parents_charge(wide, draw):
    charge = wide.spend("trial", BOTH)
    assert fork(lambda: draw(charge)).startswith(
        "Refused: spend trial on lineage patients was reserved by another"
    )
    assert charge.status == "COMMITTED"


def test_a_fork_cannot_use_its_parents_ledger(ledger):
    said = fork(lambda: ledger.reserve("count", COUNT))
    assert said.startswith("Refused: this Ledger was opened by another process")
    assert statuses() == []


def test_a_ledger_opens_beside_one_that_spends(ledger, monkeypatch):
    load = book.load

    def quicker(known):
        state = load(known)
        monkeypatch.setattr(book, "load", load)
        with ledger.spend("count", COUNT) as charge:
            charge.finish(3.5)
        return state

    monkeypatch.setattr(book, "load", quicker)
    assert dpladder.Ledger("patients", epsilon=1.0, delta=1e-5).released("count") == digest(3.5)


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_nothing_that_can_spend_is_copied_or_sent_away(ledger, take):
    for thing in (ledger, ledger.reserve("count", COUNT)):
        with pytest.raises(Refused, match="another process or host"):
            take(thing)


def test_another_host_with_a_home_of_its_own_is_refused_beside_these_results(ledger, place):
    """A results folder that was carried to a machine whose home knows nothing of it."""
    ledger.spend("count", COUNT).finish(1)
    with pytest.raises(Refused, match="another home"):
        dpladder.Ledger("patients", epsilon=1.0, delta=1e-5, home=place / "other")


def test_a_ledger_put_back_in_time_is_refused_without_results_too(ledger, place):
    ledger.spend("count", COUNT).finish(1)
    for entry in sorted((place / "home" / "ledger" / "patients").iterdir())[1:]:
        entry.unlink()
    with pytest.raises(Refused, match="does not know"):
        dpladder.Ledger("patients", epsilon=1.0, delta=1e-5, results="elsewhere")


# --- what it ends with ----------------------------------------------------------------------------


def test_the_statement_follows_from_records_and_ledger(ledger, place, capsys):
    ledger.spend("count", COUNT).finish(1)
    ledger.spend("lost", COUNT)
    ledger.spend("count", COUNT, again=True).finish(2)
    page = ledger.statement()
    assert page == (place / "results" / "privacy.md").read_text("utf-8")
    assert "held to epsilon = 1 for each record, a limit declared beforehand and enforced" in page
    assert "(1, 1e-05)-differentially private" in page
    assert "their authors' word" in page
    for of_a_config in ("dataset.", "privacy.relation", "config", "workflow", "A run stops"):
        assert of_a_config not in page
    assert page.count("superseded") == 2
    assert ledger.verify() == []
    assert main(["verify", "results"]) == 0
    assert main(["ledger", "verify", "results"]) == 0
    assert main(["ledger", "show"]) == 0
    assert "own code/count" in capsys.readouterr().out


def test_an_edited_record_or_statement_is_found(ledger, place):
    ledger.spend("count", COUNT).finish(1)
    ledger.statement()
    record = place / "results" / "own" / "count.privacy.json"
    record.write_text(record.read_text().replace("20.0", "40.0"))
    assert "changed since the statement" in ledger.verify()[0]
    ledger.statement()
    stated = place / "results" / "privacy.json"
    document = json.loads(stated.read_text())
    document["datasets"]["patients"]["epsilon"] = 0.01
    stated.write_text(json.dumps(document))
    assert any("compose to" in problem for problem in ledger.verify())


@pytest.mark.parametrize("beside", [(), ("nobody",)], ids=["alone", "with one of no home"])
def test_a_forged_statement_is_found_whatever_lineages_it_names(ledger, place, beside, capsys):
    """Its page and its digest follow from it, and a lineage with no spend agrees with anything."""
    ledger.spend("count", COUNT).finish(1)
    ledger.statement()
    results = place / "results"
    document = json.loads((results / "privacy.json").read_text())
    dataset = document["datasets"]["patients"]
    nothing = {"epsilon": 0.0, "mu": 0.0, "lifetime_spent": 0.0, "partitions": {}, "spends": []}
    document["datasets"] = {"patients": dataset | {"unit": "user"}} | {
        name: dataset | nothing | {"ledger": dataset["ledger"] | {"lineage": name}}
        for name in beside
    }
    forged = seal(document, b"another key")
    (results / "privacy.json").write_text(json.dumps(forged))
    (results / "privacy.md").write_text(page(from_document(SealedStatement, forged)))
    assert ledger.verify() == ["privacy.json: changed since it was written"]
    assert main(["verify", "results"]) == 1
    assert "privacy.json: changed since it was written" in capsys.readouterr().err


def test_a_statement_of_another_lineage_is_not_written_over(ledger):
    ledger.spend("count", COUNT).finish(1)
    ledger.statement()
    other = dpladder.Ledger("clients", epsilon=1.0, delta=1e-5)
    with pytest.raises(Refused, match="holds the results of patients"):
        other.statement()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.zeros(3), torch.zeros(4)),
        (np.zeros(2), np.zeros(2, np.float32)),
        ({"w": np.zeros(2)}, {"w": np.ones(2)}),
        (torch.nn.Linear(2, 1, bias=False), torch.nn.Linear(2, 1)),
        ((0.5, "x", None), (0.25, "x", None)),
    ],
)
def test_what_is_released_is_told_apart_by_its_digest(one, other):
    assert digest(one) == digest(one) != digest(other)


def test_a_file_is_released_by_its_bytes(place):
    (place / "a").write_bytes(b"x")
    (place / "b").write_bytes(b"x")
    assert digest(Path("a")) == digest(Path("b"))


def test_a_release_of_an_unknown_kind_is_named_before_anything_is_written(ledger):
    charge = ledger.spend("count", COUNT)
    with pytest.raises(BadInput, match="given as object"):
        charge.finish(object())
    assert statuses() == ["COMMITTED"]
    charge.finish(1)


def test_the_package_brings_no_training_library_before_it_is_asked(place):
    code = (
        "import sys, dpladder; dpladder.Ledger('x', epsilon=1.0, delta=1e-5);"
        "print(*sorted({'torch', 'opacus', 'timm', 'dp_accounting', 'scipy'} & sys.modules.keys()))"
    )
    assert in_new_python(code).split() == []
