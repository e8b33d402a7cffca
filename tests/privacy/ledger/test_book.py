"""The ledger: what is charged, what is refused and why, and every way of tampering named."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import math
import os
import secrets
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import commit, noise_for

from dpladder.errors import BadInput, Refused
from dpladder.formats import Newer
from dpladder.privacy.accounting import booking, gdp
from dpladder.privacy.accounting.composition import compose
from dpladder.privacy.accounting.draws import Draw, gaussian, to_json
from dpladder.privacy.accounting.events import (
    Booked,
    Counted,
    Event,
    Gaussian,
    Job,
    Laplace,
    Nothing,
    Partition,
    RepeatAndSelect,
    Sampled,
    Spend,
)
from dpladder.privacy.ledger import book, home, journal
from dpladder.privacy.ledger.book import (
    Ledger,
    admit,
    cost_so_far,
    finish,
    head,
    lineages,
    load,
    open_ledger,
    refund,
    reserve,
    verify,
)
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.ledger.limits import caps
from dpladder.privacy.ledger.state import Anchor, Item, LedgerCharge, Terms

TERMS = Terms("toy", "add_remove", "record", 1, 1e-5, "hash", lifetime_epsilon=1.0)
MU = gdp.mu_from_epsilon(0.1, 1e-5)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return open_ledger(open_home(tmp_path / "home"), TERMS)


def spends(
    trial: int, mu: float = MU, event: Event | None = None, **facts: Any
) -> tuple[Spend, ...]:
    event = event or Gaussian(gdp.sigma(mu, 1))
    spend = Spend("toy", "add_remove", Partition("hash", ("train",)), event)
    return (dataclasses.replace(spend, **facts),)


def job(trial: int) -> Job:
    return Job("main", "run_trial", (("trial", str(trial)),))


def item(trial: int, question: str = "", **facts: Any) -> Item:
    return Item(job(trial), question or f"trial {trial}", spends(trial, **facts))


def reserve_one(ledger: Ledger, trial: int = 0, **facts: Any) -> LedgerCharge:
    return reserve(ledger, [item(trial, **facts)])[0]


def finish_one(ledger: Ledger, trial: int = 0, query: str = "query", **facts: Any) -> LedgerCharge:
    held = reserve_one(ledger, trial, **facts)
    held = commit(ledger, held.token, query, held.spends)
    return finish(ledger, held.token, "output")


def fresh(ledger: Ledger) -> Ledger:
    """The same ledger as another process sees it."""
    return Ledger(ledger.home, ledger.lineage)


def entries(ledger: Ledger) -> list[Path]:
    return sorted(ledger.folder.glob("[0-9]*.json"))


# What a life costs


def test_an_item_is_charged_from_reservation_on(ledger: Ledger) -> None:
    held = reserve_one(ledger)
    assert held.status == "RESERVED"
    assert cost_so_far(ledger, load(ledger)).epsilon == pytest.approx(0.1)
    held = commit(ledger, held.token, "query", held.spends)
    assert (held.status, held.query, held.draws) == (
        "COMMITTED",
        "query",
        json.loads(json.dumps([to_json(draw) for draw in noise_for(held.spends)])),
    )
    assert {spend.query for spend in held.spends} == {"query"}
    held = finish(ledger, held.token, "output")
    assert (held.status, held.output) == ("DONE", "output")
    assert cost_so_far(ledger, load(ledger)).epsilon == pytest.approx(0.1)
    assert load(fresh(ledger)) == load(ledger)
    assert load(ledger).finished_charge("query") == held
    assert verify(ledger) == []


def test_trials_and_what_a_job_spends_twice_add_up_as_gaussians(ledger: Ledger) -> None:
    reserve(ledger, [item(0), Item(job(1), "trial 1", spends(1) + spends(1))])
    assert cost_so_far(ledger, load(ledger)).mu == pytest.approx(math.sqrt(3) * MU)


def test_what_is_known_is_not_reserved_again(ledger: Ledger) -> None:
    first = reserve_one(ledger)
    assert reserve_one(fresh(ledger)) == first
    committed = commit(ledger, first.token, "query", first.spends)
    assert reserve_one(fresh(ledger)) == committed
    done = finish(ledger, first.token, "output")
    before = len(entries(ledger))
    assert reserve_one(fresh(ledger)) == done
    assert len(entries(ledger)) == before


def test_who_resumes_what_was_committed_has_seen_what_was_released_meanwhile(
    ledger: Ledger,
) -> None:
    """Whether it is resumed may hang on that."""
    cut_off = reserve_one(ledger)
    commit(ledger, cut_off.token, "query", cut_off.spends)
    looked_at = finish_one(ledger, 1, query="another")
    resumed = reserve_one(ledger)
    assert (resumed.token, resumed.status) == (cut_off.token, "COMMITTED")
    assert (resumed.continued or 0) > (looked_at.released or 0)
    commit(ledger, resumed.token, "query", resumed.spends)
    finish(ledger, resumed.token, "output")
    assert reserve_one(ledger).continued == resumed.continued, "what is done is only restored"
    assert load(fresh(ledger)) == load(ledger)


def test_own_code_counts_as_released_from_commit_on(ledger: Ledger) -> None:
    """What an attempt that never finished has shown, nobody knows."""
    held = reserve_one(ledger)
    unfinished = book.commit_elsewhere(ledger, held.token, "query", held.spends)
    assert unfinished.released == len(entries(ledger))
    later = reserve_one(ledger, 1)
    assert later.reserved > unfinished.released
    assert finish(ledger, held.token, "output").released == unfinished.released


def test_a_price_that_changed_takes_back_the_unused_reservation(ledger: Ledger) -> None:
    first = reserve_one(ledger)
    second = reserve_one(ledger, mu=2 * MU)
    assert load(ledger).charges[first.token].status == "REFUNDED"
    assert cost_so_far(ledger, load(ledger)).mu == pytest.approx(2 * MU)
    with pytest.raises(Refused, match="REFUNDED"):
        commit(ledger, first.token, "query", first.spends)
    commit(ledger, second.token, "query", second.spends)


def test_a_question_has_one_answer_under_every_name(ledger: Ledger) -> None:
    """Renaming, swapping and bringing back experiments has no code of its own."""
    done = finish_one(ledger)
    renamed = dataclasses.replace(item(0), job=Job("another", "run_trial"))
    assert reserve(ledger, [renamed]) == (done,)
    assert load(ledger).answer(renamed.question) == done
    assert len(load(ledger).charged_spends()) == 1


def test_a_refusal_names_the_job_by_its_name_of_today(ledger: Ledger) -> None:
    """Whoever asked first may be another experiment by now, and its advice would be wrong."""
    held = finish_one(ledger)
    asking = Job("swapped", "run_trial", (("trial", "0"),))
    with pytest.raises(Refused, match=r"^swapped/run_trial trial=0 is DONE"):
        book.commit(
            ledger, held.token, "other", held.spends, noise_for(held.spends), asked_by=asking
        )


def test_with_consent_finished_work_is_reserved_once_more_and_once_only(ledger: Ledger) -> None:
    finish_one(ledger)
    (first,) = reserve(ledger, [item(0)], {item(0).question})
    (second,) = reserve(ledger, [item(0)], {item(0).question})
    assert first.status == "RESERVED"
    assert second == first


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.sampled_from([0.5, 1.0]), st.booleans(), st.booleans()), max_size=8))
def test_of_a_questions_charges_only_the_last_can_be_unused(
    tmp_path: Path, steps: list[tuple[float, bool, bool]]
) -> None:
    """Whatever its price is meanwhile, and however often it is asked anew and committed."""
    ledger = open_ledger(open_home(tmp_path / secrets.token_hex(8)), TERMS)
    for price, anew, uses in steps:
        asked = item(0, mu=price * MU)
        (held,) = reserve(ledger, [asked], {asked.question} if anew else ())
        *earlier, last = load(fresh(ledger)).charges_for(asked.question)
        assert held == last
        assert all(charge.used for charge in earlier)
        if uses and not last.used:
            commit(ledger, last.token, secrets.token_hex(8), last.spends)


def test_a_plan_is_said_once_and_with_what_it_reserves(ledger: Ledger) -> None:
    first = {"main": {"keys": {"clip": 1.0}, "questions": [], "inputs": ["a"], "chosen": {"r": 1}}}
    other = first["main"] | {"inputs": ["a", "b"], "chosen": {"r": 2}}
    second = first | {"other": other}
    (charge,) = reserve(ledger, [item(0)], plan=first)
    begun = charge.reserved
    assert ledger.state.entry_of(first) == begun
    for plan in (first, second, first):  # back to it: nothing is left to say
        reserve(ledger, [item(0)], plan=plan)
    reserve(ledger, [item(1)])
    assert [*ledger.state.plans] == [begun, begun + 1]
    said = json.loads(entries(ledger)[begun].read_text())["body"]["plan"]
    assert said == {"main": begun, "other": other}, "each experiment once"
    assert load(fresh(ledger)).plans == {begun: first, begun + 1: second}
    assert ledger.state.choices == {"a": [{"r": 1}, {"r": 2}], "b": [{"r": 2}]}
    with pytest.raises(Refused, match="lifetime"):
        reserve(ledger, [item(2, mu=10 * MU)], plan={"other": first["main"]})
    assert [*load(fresh(ledger)).plans] == [begun, begun + 1]


def test_all_of_a_plan_is_reserved_or_nothing(ledger: Ledger) -> None:
    before = load(ledger).chain.head
    with pytest.raises(Refused, match="lifetime"):
        reserve(ledger, [item(0), item(1, mu=10 * MU)])
    assert head(ledger).sha256 == before


def test_admission_says_what_would_be_new_and_writes_nothing(ledger: Ledger) -> None:
    reserve_one(ledger)
    before = head(ledger)
    new, replaced = admit(TERMS, load(ledger), [item(0), item(1)])
    assert (new, replaced) == ([item(1)], [])
    assert head(ledger) == before


# The lifetime


def test_the_lifetime_can_be_used_to_the_last_bit_and_no_further(ledger: Ledger) -> None:
    reserve_one(ledger)
    left = gdp.remaining(gdp.mu_from_epsilon(1.0, 1e-5), [gdp.mu_from_sigma(gdp.sigma(MU, 1), 1)])
    full = reserve_one(ledger, 1, mu=left)
    assert cost_so_far(ledger, load(ledger)).epsilon <= 1.0
    assert cost_so_far(ledger, load(ledger)).epsilon == pytest.approx(1.0, abs=1e-9)
    with pytest.raises(Refused, match=r"epsilon = 1 at delta = 1e-05.*so far: 1\.0000"):
        reserve_one(ledger, 2, mu=1e-5)
    concrete = (dataclasses.replace(full.spends[0], event=Gaussian(gdp.sigma(left, 70)), count=70),)
    commit(ledger, full.token, "query", concrete)


def test_a_refusal_names_what_remains(ledger: Ledger) -> None:
    reserve_one(ledger, mu=gdp.mu_from_epsilon(0.5, 1e-5))
    with pytest.raises(
        Refused, match=r"so far: 0\.5000, which leaves epsilon = 0\.8342\. Asked for: 0\.9000"
    ):
        reserve_one(ledger, 1, mu=gdp.mu_from_epsilon(0.9, 1e-5))


def test_a_refund_makes_room(ledger: Ledger) -> None:
    full = gdp.mu_from_epsilon(1.0, 1e-5)
    first = reserve_one(ledger, mu=full)
    with pytest.raises(Refused, match="lifetime"):
        reserve_one(ledger, 1, mu=full)
    refund(ledger, [first.token])
    assert reserve_one(ledger, 1, mu=full).status == "RESERVED"


def test_research_is_refused_where_its_samples_are_booked_at_all_of_delta(tmp_path: Path) -> None:
    """Beyond that there is no figure to state."""
    terms = dataclasses.replace(TERMS, lineage="open", mode="research", share=0.3)
    ledger = open_ledger(open_home(tmp_path / "home"), terms)
    half = Booked((Counted(Gaussian(4.0)),), TERMS.delta / 2)
    reserve(ledger, [Item(job(0), "one", spends(0, event=half, lineage="open"))])
    with pytest.raises(Refused, match=r"all of delta.*lower privacy\.share"):
        reserve(ledger, [Item(job(1), "other", spends(1, event=half, lineage="open"))])


def test_without_a_limit_or_in_research_nothing_is_refused(tmp_path: Path) -> None:
    made = open_home(tmp_path / "home")
    for terms in (
        dataclasses.replace(TERMS, lineage="free", lifetime_epsilon=None),
        dataclasses.replace(TERMS, lineage="open", mode="research"),
    ):
        ledger = open_ledger(made, terms)
        held = reserve(ledger, [Item(job(0), "trial 0", spends(0, mu=50.0, lineage=terms.lineage))])
        assert held[0].status == "RESERVED"


SELECTION = RepeatAndSelect(Gaussian(12.0), 10.0, 1.0, 66)


def test_selections_share_a_limit_only_where_room_was_declared_for_them(tmp_path: Path) -> None:
    """A filter on every component: the limit's mu follows from what is kept for losses, weights and
    booked events."""
    home = open_home(tmp_path / "other")
    plain = open_ledger(home, dataclasses.replace(TERMS, lineage="plain", lifetime_epsilon=8.0))
    with pytest.raises(Refused, match=r"privacy\.lifetime\.loss and"):
        reserve(plain, [item(0, event=SELECTION, lineage="plain")])
    terms = dataclasses.replace(
        TERMS, lineage="shared", lifetime_epsilon=8.0, loss=1.0, weight=100.0, share=0.1
    )
    shared = open_ledger(home, terms)
    reserve(shared, [item(0, event=SELECTION, lineage="shared")])
    assert caps(terms).mu == pytest.approx(gdp.mu_from_epsilon(7.0, 0.9 * terms.delta / 100))
    assert booking.epsilon(caps(terms), terms.delta) == pytest.approx(8.0, rel=1e-6)


def test_a_selection_that_exceeds_its_cap_is_refused_however_little_the_rest_is(
    tmp_path: Path,
) -> None:
    terms = dataclasses.replace(
        TERMS, lineage="shared", lifetime_epsilon=8.0, loss=0.31, weight=101.0
    )
    shared = open_ledger(open_home(tmp_path / "other"), terms)
    reserve(shared, [item(0, event=SELECTION, lineage="shared")])
    # losses 0.15 each, weights 10 each
    reserve(shared, [item(1, event=SELECTION, lineage="shared")])
    with pytest.raises(
        Refused,
        match=r"leaves private selections a loss of 0\.31 and a weight of "
        r"101",
    ):
        reserve(shared, [item(2, event=SELECTION, lineage="shared")])


def test_a_dearer_part_hides_no_selection_on_another(tmp_path: Path) -> None:
    terms = dataclasses.replace(TERMS, lineage="plain", lifetime_epsilon=8.0)
    undeclared = open_ledger(open_home(tmp_path / "other"), terms)
    dear = Gaussian(1 / (0.999 * gdp.mu_from_epsilon(8.0, terms.delta)))
    reserve(undeclared, [on("test", 0, event=dear, lineage="plain")])
    with pytest.raises(Refused, match="private selections"):
        reserve(undeclared, [on("train", 1, event=SELECTION, lineage="plain")])


def test_a_lineage_opened_without_a_share_of_delta_takes_no_booked_event(tmp_path: Path) -> None:
    home, booked = open_home(tmp_path / "other"), Booked((Counted(Gaussian(50.0)),), 1e-8)
    with pytest.raises(Refused, match=r"privacy\.share"):
        reserve(open_ledger(home, TERMS), [item(0, event=booked)])
    shared = open_ledger(home, dataclasses.replace(TERMS, lineage="shared", share=0.0025))
    reserve(shared, [item(trial, event=booked, lineage="shared") for trial in range(2)])
    with pytest.raises(Refused, match="would use more"):
        reserve(shared, [item(2, event=booked, lineage="shared")])


def on(part: str, trial: int, version: str = "", **facts: Any) -> Item:
    """An item that reads one part of a version."""
    partition = Partition("hash", (part,), version)
    return Item(job(trial), f"trial {trial}", spends(trial, partition=partition, **facts))


def test_parts_of_versions_that_follow_each_other_add_up(ledger: Ledger) -> None:
    """A person in train may be edited, or come under another id, and lie in test: bears both."""
    items = on("train", 0), on("test", 1), on("test", 2, "2")
    first, second, third = reserve(ledger, items)
    commit(ledger, first.token, "one", first.spends)
    commit(ledger, second.token, "two", second.spends)
    together = compose(load(ledger).charged_spends(third.token), TERMS.delta)
    assert together.mu == pytest.approx(MU)  # in parallel
    with pytest.raises(Refused, match="would spend more than it reserved, or something else"):
        commit(ledger, third.token, "three", on("test", 2).spends)
    commit(ledger, third.token, "three", third.spends)
    assert compose(load(ledger).charged_spends(), TERMS.delta).mu == pytest.approx(
        math.sqrt(2) * MU
    )


def test_the_first_commit_on_a_version_says_who_belongs_to_it(ledger: Ledger) -> None:
    asked = [("", "a"), ("", "b"), ("2", "b"), ("2", "")]
    held = reserve(ledger, [on("train", t, version) for t, (version, _) in enumerate(asked)])
    assert load(ledger).first_units == {}
    for one, (_, units) in zip(held, asked, strict=True):
        book.commit(ledger, one.token, one.token, one.spends, noise_for(one.spends), units=units)
    assert load(fresh(ledger)).first_units == {"": "a", "2": "b"}


def test_the_filter_holds_for_a_unit_that_is_not_the_dearest(tmp_path: Path) -> None:
    """Who was in test in both versions bears the largest mu, and no delta0, which makes others
    dearer."""
    terms = dataclasses.replace(TERMS, share=0.9)
    ledger = open_ledger(open_home(tmp_path / "home"), terms)
    each = caps(terms).mu / math.sqrt(2)
    booked = Booked((Counted(Gaussian(1 / (0.98 * each))),), 4.4e-6)
    counted = Gaussian(1 / (1.005 * each))
    for one in (
        on("train", 0, "v1", event=booked),
        on("test", 1, "v1", event=counted),
        on("train", 2, "v2", event=booked),
    ):
        (held,) = reserve(ledger, [one])
        book.commit_elsewhere(ledger, held.token, held.token, held.spends)
    with pytest.raises(Refused, match="lifetime limit"):
        reserve(ledger, [on("test", 3, "v2", event=counted)])


def test_units_that_are_known_by_another_column_are_refused(ledger: Ledger) -> None:
    """They would lie in other parts, and nothing would add what one person bears in two."""
    case, other = {"dataset.id": "case"}, {"dataset.id": "alt"}
    reserve(ledger, [item(0)], units=case)
    for units, told in ((other, "case, and the config says alt"), ({}, "config says empty")):
        with pytest.raises(Refused, match=told):
            reserve(ledger, [item(1)], units=units)
    (held,) = reserve(ledger, [item(1)], units=case)
    commit(ledger, held.token, "query", held.spends)
    reserve(ledger, [item(1)], units=other)  # nothing new: no part is read
    with pytest.raises(Refused, match="case, and the config says alt"):
        reserve(ledger, [item(0)], units=other)  # nothing new either, and what is unused would read
    assert load(ledger).units == {"": case}


def test_another_version_may_know_its_units_by_another_column_and_adds(ledger: Ledger) -> None:
    """By its content a record lies in one part, by its id perhaps in another."""
    (before,) = reserve(ledger, [on("train", 0)], units={})
    commit(ledger, before.token, "before", before.spends)
    ids = {"dataset.id": "case"}
    with pytest.raises(Refused, match=r"knows its units by.*dataset\.version"):
        reserve(ledger, [on("test", 1)], units=ids)
    (held,) = reserve(ledger, [on("test", 1, "2")], units=ids)
    commit(ledger, held.token, "after", held.spends)
    assert compose(load(ledger).charged_spends(), TERMS.delta).mu == pytest.approx(
        math.sqrt(2) * MU
    )
    with pytest.raises(Refused, match="case, and the config says alt"):
        reserve(ledger, [on("test", 2, "2")], units={"dataset.id": "alt"})
    with pytest.raises(Refused, match="empty, and the config says case"):
        reserve(ledger, [on("test", 2)], units=ids)


def test_what_was_reserved_for_units_by_another_column_reads_none_by_this_one(
    ledger: Ledger,
) -> None:
    """Not in a clone that still runs either, whose parts would be others than this one's."""
    case, other = {"patient": 1}, {"patient": 2}
    (before,) = reserve(ledger, [item(0)], units=case)
    (now,) = reserve(ledger, [item(0)], units=other)
    assert load(ledger).units == {"": other}
    with pytest.raises(Refused, match="taken back, by a later plan"):
        commit(ledger, before.token, "query", before.spends)
    commit(ledger, now.token, "query", now.spends)


def test_a_column_may_be_corrected_while_nothing_is_charged(ledger: Ledger) -> None:
    (held,) = reserve(ledger, [item(0)], units={"dataset.id": "cas"})
    refund(ledger, [held.token])
    reserve(ledger, [item(0)], units={"dataset.id": "case"})
    with pytest.raises(Refused, match="knows its units by"):
        reserve(ledger, [item(1)], units={"dataset.id": "cas"})


def test_other_mechanisms_count_toward_the_lifetime(ledger: Ledger) -> None:
    reserve(ledger, [item(0, event=Laplace(8.0))])
    with pytest.raises(Refused, match="lifetime"):
        reserve(ledger, [item(1, event=Laplace(4.0))])


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(st.sampled_from(["reserve", "commit", "finish", "refund"]), st.integers(0, 5)),
        max_size=25,
    )
)
def test_whatever_happens_charges_fall_only_by_refunds_and_the_limit_holds(
    tmp_path: Path, steps: list[tuple[str, int]]
) -> None:
    terms = dataclasses.replace(TERMS, lifetime_epsilon=0.3)
    ledger = open_ledger(open_home(tmp_path / secrets.token_hex(8)), terms)
    tokens: dict[int, str] = {}
    for action, trial in steps:
        before = len(load(ledger).charged_spends())
        try:
            if action == "reserve":
                tokens[trial] = reserve_one(ledger, trial, mu=1.5 * MU).token
            elif trial in tokens and action == "commit":
                commit(ledger, tokens[trial], f"query {trial}", spends(trial, 1.5 * MU))
            elif trial in tokens:
                refund(ledger, [tokens[trial]]) if action == "refund" else finish(
                    ledger, tokens[trial], "output"
                )
        except Refused:
            assert len(load(ledger).charged_spends()) == before
        state = load(ledger)
        assert action == "refund" or len(state.charged_spends()) >= before
        assert cost_so_far(ledger, state).epsilon <= 0.3
    assert load(fresh(ledger)) == load(ledger)
    assert verify(ledger) == []


# COMMIT, DONE, REFUND


def test_a_retry_of_the_same_query_gets_the_same_nonce_free(ledger: Ledger) -> None:
    held = reserve_one(ledger)
    wide = [dataclasses.replace(draw, shape=(2, 3)) for draw in noise_for(held.spends)]
    first = commit(ledger, held.token, "query", held.spends, wide)
    assert commit(fresh(ledger), held.token, "query", held.spends, wide) == first
    assert len(entries(ledger)) == 3


@pytest.mark.parametrize(
    ("query", "concrete", "draws"),
    [
        ("other", spends(0), ()),
        ("query", spends(0, MU / 2), ()),
        ("query", spends(0), (Draw("more", "uniform"),)),
    ],
)
def test_a_committed_item_serves_no_other_query(
    ledger: Ledger, query: str, concrete: tuple[Spend, ...], draws: tuple[Draw, ...]
) -> None:
    held = reserve_one(ledger)
    commit(ledger, held.token, "query", held.spends)
    with pytest.raises(Refused, match=r"COMMITTED.*respend: true"):
        commit(ledger, held.token, query, concrete, (*noise_for(concrete), *draws))


def test_done_work_commits_to_nothing_more_and_is_told_the_free_way_before_the_dear_one(
    ledger: Ledger,
) -> None:
    done = finish_one(ledger)
    for query in ("query", "other"):
        with pytest.raises(Refused, match=r"DONE.*Undo.*free.*edited, delete it.*respend: true"):
            commit(ledger, done.token, query, done.spends)
    held = reserve_one(ledger, 1)
    refund(ledger, [held.token])
    with pytest.raises(Refused, match=r"REFUNDED.*Start the workflow again") as refusal:
        commit(ledger, held.token, "query", held.spends)
    assert "respend" not in str(refusal.value)


def test_a_query_that_was_released_is_not_asked_again(ledger: Ledger) -> None:
    finish_one(ledger)
    held = reserve_one(ledger, 1)
    with pytest.raises(Refused, match="Restore"):
        commit(ledger, held.token, "query", held.spends)


def test_nonces_and_tokens_are_fresh(ledger: Ledger) -> None:
    held = reserve(ledger, [item(trial) for trial in range(10)])
    nonces = {commit(ledger, h.token, h.token, h.spends).nonce for h in held}
    assert len(nonces) == len({h.token for h in held}) == 10
    assert {len(str(nonce)) for nonce in nonces} == {32}


@pytest.mark.parametrize(
    "concrete",
    [
        spends(0, MU * (1 + 1e-9)),
        spends(0) + spends(0, 1e-6),
        spends(0) + spends(0, partition=Partition("hash", ("test",))),
        spends(0, partition=Partition("hash", ("test",))),
        spends(0, event=Laplace(1.0)),
        spends(0, event=Booked((Counted(Gaussian(1e6)),), 1e-9)),
        spends(0, event=Gaussian(gdp.sigma(MU, 10)), count=11),
    ],
)
def test_the_concrete_spend_may_not_exceed_the_reserved(
    ledger: Ledger, concrete: tuple[Spend, ...]
) -> None:
    held = reserve_one(ledger)
    with pytest.raises(Refused, match="more than it reserved"):
        commit(ledger, held.token, "query", concrete)
    assert load(ledger).charges[held.token].status == "RESERVED"


@pytest.mark.parametrize("steps", [1, 3, 7, 100, 12345])
def test_any_number_of_steps_fits_the_reserved_mu(ledger: Ledger, steps: int) -> None:
    held = reserve_one(ledger)
    reserved = gdp.mu_from_sigma(held.spends[0].event.sigma, 1)  # type: ignore[union-attr]
    concrete = spends(0, event=Gaussian(gdp.sigma(reserved, steps)), count=steps)
    assert commit(ledger, held.token, "query", concrete).spends[0].count == steps


def test_a_booked_event_fits_a_reservation_of_its_mu_and_delta0(tmp_path: Path) -> None:
    ledger = open_ledger(
        open_home(tmp_path / "other"), dataclasses.replace(TERMS, share=0.1, lifetime_epsilon=8.0)
    )
    room = Booked((Counted(Gaussian(2.0)),), 1e-7)
    held = reserve_one(ledger, event=room)
    run = Sampled(0.05, Gaussian(2.0))
    with pytest.raises(Refused, match="more than it reserved"):
        # mu 0.558
        commit(ledger, held.token, "query", spends(0, event=Booked((Counted(run, 400),), 1e-7)))
    with pytest.raises(Refused, match="more than it reserved"):
        commit(ledger, held.token, "query", spends(0, event=Booked((Counted(run, 200),), 2e-7)))
    commit(ledger, held.token, "query", spends(0, event=Booked((Counted(run, 200),), 1e-7)))


def test_the_first_to_finish_wins(ledger: Ledger) -> None:
    held = reserve_one(ledger)
    with pytest.raises(Refused, match="not COMMITTED"):
        finish(ledger, held.token, "early")
    commit(ledger, held.token, "query", held.spends)
    assert finish(ledger, held.token, "first").output == "first"
    assert finish(fresh(ledger), held.token, "second").output == "first"


def test_only_an_unused_reservation_is_refunded_and_then_it_is_gone(ledger: Ledger) -> None:
    unused, used = reserve(ledger, [item(0), item(1)])
    commit(ledger, used.token, "query", used.spends)
    with pytest.raises(Refused, match="stays charged"):
        refund(ledger, [unused.token, used.token])
    refund(ledger, [unused.token])
    refund(ledger, [unused.token])
    with pytest.raises(Refused, match="REFUNDED"):
        commit(ledger, unused.token, "query", unused.spends)
    assert load(ledger).charged_spends() == load(ledger).charges[used.token].spends
    assert verify(ledger) == []


def test_unknown_tokens_are_refused(ledger: Ledger) -> None:
    for use in (
        lambda: commit(ledger, "none", "query", spends(0)),
        lambda: finish(ledger, "none", "output"),
        lambda: refund(ledger, ["none"]),
    ):
        with pytest.raises(Refused, match="no such reservation"):
            use()


# Terms, lineages and bad input


@pytest.mark.parametrize(
    "change",
    [
        {"relation": "replace_one"},
        {"unit": "user"},
        {"cap": 2},
        {"delta": 1e-6},
        {"split_rule": "other"},
        {"lifetime_epsilon": 2.0},
        {"lifetime_epsilon": None},
        {"mode": "research"},
    ],
)
def test_terms_hold_for_life_from_the_first_commit_on(
    ledger: Ledger, change: dict[str, Any]
) -> None:
    other = dataclasses.replace(TERMS, **change)
    (revoked,) = reserve(ledger, [item(0)])
    assert open_ledger(ledger.home, other).state.terms == other
    open_ledger(ledger.home, TERMS)
    with pytest.raises(Refused, match="was taken back, by a later plan"):
        commit(ledger, revoked.token, "query", revoked.spends)
    (held,) = reserve(ledger, [item(0)])
    commit(ledger, held.token, "query", held.spends)
    before = head(ledger)
    ((key, value),) = change.items()
    with pytest.raises(Refused, match=rf"{key} is .*not {value}"):
        open_ledger(ledger.home, dataclasses.replace(TERMS, **change))
    assert head(ledger) == before
    assert open_ledger(ledger.home, TERMS) == ledger


@pytest.mark.parametrize(
    "change",
    [
        {"lineage": "../toy"},
        {"lineage": ""},
        {"relation": "other"},
        {"mode": "other"},
        {"cap": 0},
        {"delta": 0.0},
        {"delta": math.nan},
        {"lifetime_epsilon": -1.0},
        {"lifetime_epsilon": math.nan},
        {"lifetime_epsilon": math.inf},
    ],
)
def test_impossible_terms_are_bad_input(change: dict[str, Any]) -> None:
    (key,) = change
    with pytest.raises(BadInput, match=key):
        dataclasses.replace(TERMS, **change)


@pytest.mark.parametrize(
    "facts",
    [{"lineage": "other"}, {"relation": "replace_one"}],
    ids=["another lineage", "another relation"],
)
def test_spends_of(ledger: Ledger, facts: dict[str, str]) -> None:
    charge = reserve_one(ledger)
    before = head(ledger)
    with pytest.raises(Refused, match="own ledger"):
        reserve(ledger, [Item(job(1), "trial 1", spends(1, **facts))])
    with pytest.raises(Refused, match="own ledger"):
        commit(ledger, charge.token, "query", spends(0, **facts))
    assert head(ledger) == before


def test_a_commit_holds_samples_to_the_relation_of_the_lineage(tmp_path: Path) -> None:
    """Under replace_one a unit moves a sum over a sample twice as far as when it enters."""
    terms = dataclasses.replace(TERMS, relation="replace_one", share=0.1, lifetime_epsilon=8.0)
    ledger = open_ledger(open_home(tmp_path / "other"), terms)
    event = Booked((Counted(Sampled(0.1, Gaussian(4.0)), 5),), 1e-7)
    charge = reserve_one(ledger, event=event, relation="replace_one")
    sample = Draw("sample", "mask", 0.1, count=5)
    step = gaussian("step", 4.0, 1.0, (3,), 5, under="sample", entering=1.0)
    with pytest.raises(Refused, match="Under replace_one the sensitivity must be at least 2"):
        book.commit(ledger, charge.token, "query", charge.spends, (sample, step))
    twice = dataclasses.replace(step, sensitivity=2.0, scale=8.0)
    book.commit(ledger, charge.token, "query", charge.spends, (sample, twice))


def test_a_question_is_declared_once(ledger: Ledger) -> None:
    with pytest.raises(BadInput, match="twice"):
        reserve(ledger, [item(0), item(1, item(0).question)])


def test_a_new_version_of_the_data_gets_no_new_budget(ledger: Ledger) -> None:
    """The version is part of the query and the question, never of the lineage."""
    finish_one(ledger, query="version 1", mu=gdp.mu_from_epsilon(0.9, 1e-5))
    again = open_ledger(ledger.home, TERMS)
    with pytest.raises(Refused, match="lifetime"):
        reserve(again, [item(0, "version 2", mu=gdp.mu_from_epsilon(0.9, 1e-5))])


def test_two_lineages_have_two_ledgers(ledger: Ledger) -> None:
    other = open_ledger(ledger.home, dataclasses.replace(TERMS, lineage="other"))
    reserve_one(ledger)
    assert cost_so_far(other, load(other)).epsilon == 0.0
    assert lineages(ledger.home) == ["other", "toy"]


def test_where_nothing_was_spent_looking_finds_and_creates_nothing(tmp_path: Path) -> None:
    nowhere = Ledger(open_home(tmp_path / "home", create=False), "toy")
    assert load(nowhere).terms is None
    assert lineages(nowhere.home) == []
    assert verify(nowhere) == []
    assert not list(tmp_path.iterdir())


def test_nothing_is_reserved_on_a_lineage_never_opened(ledger: Ledger) -> None:
    with pytest.raises(Refused, match="no ledger"):
        reserve(Ledger(ledger.home, "other"), [item(0)])


def test_a_ledger_gone_while_its_releases_are_there_is_not_begun_anew(ledger: Ledger) -> None:
    (ledger.home.releases / "toy" / "query").mkdir(parents=True)
    shutil.rmtree(ledger.folder)
    with pytest.raises(Refused, match="does not know"):
        open_ledger(ledger.home, TERMS)
    assert not list(ledger.folder.iterdir())


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_releases_that_a_ledger_cut_short_does_not_know_stop_everything(
    ledger: Ledger, cut: int
) -> None:
    finish_one(ledger)
    (ledger.home.releases / "toy" / "query").mkdir(parents=True)
    assert verify(ledger) == []
    for entry in entries(ledger)[-cut:]:
        entry.unlink()
    if cut == 1:  # COMMITTED knows its query, and its kept bytes are the answer
        assert (
            load(fresh(ledger)).charged_spends() == load(fresh(ledger)).charges.popitem()[1].spends
        )
        return
    assert verify(ledger) == ["releases are kept that it does not know: rolled back or truncated"]
    for use in (lambda: load(fresh(ledger)), lambda: open_ledger(ledger.home, TERMS)):
        with pytest.raises(Refused, match="does not know") as refusal:
            use()
        assert "free" not in str(refusal.value)


def test_a_release_kept_while_the_ledger_is_read_is_no_stranger(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process commits and keeps its answer after the journal was read."""
    advance = journal.advance

    def overtaken(*args: Any) -> None:
        advance(*args)
        monkeypatch.setattr(journal, "advance", advance)
        finish_one(fresh(ledger))
        (ledger.home.releases / "toy" / "query").mkdir(parents=True)

    monkeypatch.setattr(journal, "advance", overtaken)
    assert load(fresh(ledger)).charges == {}


def test_a_key_removed_between_attempts_stops_everything(ledger: Ledger) -> None:
    held = reserve_one(ledger)
    ledger.home.key.unlink()
    for attempt in (
        lambda: commit(ledger, held.token, "query", held.spends),
        lambda: load(fresh(ledger)),
        lambda: verify(ledger),
        lambda: open_home(ledger.home.path),
    ):
        with pytest.raises(BadInput, match="missing"):
            attempt()


def test_a_clock_moved_back_changes_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = reserve_one(ledger)

    class Past(journal.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls(1970, 1, 2, tzinfo=tz)

    monkeypatch.setattr(journal, "datetime", Past)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    commit(ledger, held.token, "query", held.spends)
    finish(ledger, held.token, "output")
    assert "1970" in entries(ledger)[-1].read_text()
    assert verify(ledger) == []
    assert load(fresh(ledger)).finished_charge("query")


# Tampering, by name


def life(ledger: Ledger) -> list[Path]:
    """OPENED, RESERVED, COMMITTED, DONE, RESERVED, COMMITTED, REFUNDED of a third."""
    finish_one(ledger)
    held, other = reserve(ledger, [item(1), item(2)])
    commit(ledger, held.token, "query 1", held.spends)
    refund(ledger, [other.token])
    return entries(ledger)


def assert_found(ledger: Ledger, *words: str) -> None:
    problems = verify(ledger)
    assert problems, "nothing was found"
    for word in words:
        assert any(word in problem for problem in problems), problems
    before = {path.name: path.read_bytes() for path in ledger.folder.iterdir()}
    for use in (lambda: load(fresh(ledger)), lambda: reserve_one(fresh(ledger), 3)):
        with pytest.raises(Refused, match="not as it was written"):
            use()
    assert {path.name: path.read_bytes() for path in ledger.folder.iterdir()} == before


@pytest.mark.parametrize("seq", range(1, 8))
def test_an_edited_entry(ledger: Ledger, seq: int) -> None:
    path = life(ledger)[seq - 1]
    path.write_bytes(path.read_bytes().replace(b'"time": "2', b'"time": "3'))
    assert_found(ledger, f"entry {seq} was edited")


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.long)])
def test_every_single_byte_of_an_entry_is_guarded(ledger: Ledger, step: int) -> None:
    path = life(ledger)[2]
    whole = path.read_bytes()
    for offset in range(0, len(whole), step):
        path.write_bytes(whole[:offset] + bytes([whole[offset] ^ 1]) + whole[offset + 1 :])
        try:
            problems = verify(ledger)
        except Newer:  # the format's number was raised
            continue
        assert any(problem.startswith(("entry 3", "entry 4 does not")) for problem in problems), (
            offset
        )


@pytest.mark.parametrize("seq", range(1, 7))
def test_a_deleted_entry(ledger: Ledger, seq: int) -> None:
    life(ledger)[seq - 1].unlink()
    assert_found(ledger, f"entry {seq} is missing")


def test_two_entries_swapped(ledger: Ledger) -> None:
    paths = life(ledger)
    third, sixth = paths[2].read_bytes(), paths[5].read_bytes()
    paths[2].write_bytes(sixth)
    paths[5].write_bytes(third)
    assert_found(ledger, "entry 3 does not follow", "entry 6 does not follow")


def test_deleted_entries_closed_up(ledger: Ledger) -> None:
    paths = life(ledger)
    for gone, (old, new) in zip(paths[4:], zip(paths[6:], paths[4:], strict=False), strict=False):
        gone.unlink()
        old.rename(new)
    paths[5].unlink()
    assert_found(ledger, "entry 5 does not follow")


@pytest.mark.parametrize("seq", range(1, 7))
def test_an_earlier_entry_cut_short(ledger: Ledger, seq: int) -> None:
    path = life(ledger)[seq - 1]
    path.write_bytes(path.read_bytes()[:-20])
    assert_found(ledger, f"entry {seq} is damaged")


def test_a_ledger_of_another_key(ledger: Ledger, tmp_path: Path) -> None:
    life(ledger)
    stranger = open_ledger(open_home(tmp_path / "stranger"), TERMS)
    shutil.rmtree(stranger.folder)
    shutil.copytree(ledger.folder, stranger.folder)
    assert_found(stranger, "another key")


def test_a_ledger_under_another_name(ledger: Ledger) -> None:
    life(ledger)
    shutil.copytree(ledger.folder, ledger.home.ledgers / "cheap")
    assert_found(Ledger(ledger.home, "cheap"), "opens lineage toy inside the ledger of cheap")


@pytest.mark.parametrize(
    "entry", [("BORROWED", {}), ("DONE", {"token": "?", "output": "o"}), ("OPENED", {"new": 1})]
)
def test_an_entry_that_this_version_cannot_know(
    ledger: Ledger, entry: tuple[str, dict[str, Any]]
) -> None:
    life(ledger)
    forge(ledger, *entry)
    assert_found(
        ledger,
        "newer version, or before 1.0"
        if entry[0] != "BORROWED"
        else "BORROWED, which this version does not know",
    )


def test_an_event_that_this_version_cannot_know(ledger: Ledger) -> None:
    body = json.loads(life(ledger)[4].read_bytes())["body"]
    body["replaces"] = []
    body["items"][0]["spends"][0]["event"] = {"type": "Quantum", "spin": 0.5}
    forge(ledger, "RESERVED", body)
    assert_found(ledger, "Quantum", "newer version")


def forge(ledger: Ledger, kind: str, body: dict[str, Any]) -> None:
    """An entry that is well signed, as a defect or another version would write it."""
    signed = journal.Journal(ledger.folder, home.subkey(ledger.home, "ledger"))
    journal.append(signed, journal.Chain(), lambda *_: None, iter([(kind, body), None]).__next__)


@pytest.mark.parametrize("kind", ["COMMITTED", "DONE", "REFUNDED"])
def test_what_is_done_is_done_once_and_never_given_back(ledger: Ledger, kind: str) -> None:
    _, _, committed, done, *_ = (json.loads(path.read_bytes())["body"] for path in life(ledger))
    body = {
        "COMMITTED": committed | {"nonce": "new"},
        "DONE": done,
        "REFUNDED": {"tokens": [done["token"]]},
    }[kind]
    forge(ledger, kind, body)
    assert_found(ledger, f"{kind} when it is DONE")


def test_a_nonce_used_twice(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = reserve(ledger, [item(0), item(1)])
    monkeypatch.setattr(secrets, "token_hex", lambda size: "ab" * size)
    monkeypatch.setattr(home.secrets, "token_hex", lambda size: "ab" * size)
    commit(ledger, first.token, "query 0", first.spends)
    with pytest.raises(Refused, match="nonce"):
        commit(ledger, second.token, "query 1", second.spends)
    assert_found(ledger, "nonce that was used before")


# Going back in time


def test_anchors_find_a_truncated_a_rolled_back_and_a_rewritten_ledger(
    ledger: Ledger, tmp_path: Path
) -> None:
    finish_one(ledger)
    early = head(ledger)
    shutil.copytree(ledger.folder, tmp_path / "backup")
    finish_one(ledger, 1, "query 1")
    late = head(ledger)
    assert verify(ledger, [early, late]) == []

    shutil.rmtree(ledger.folder)
    shutil.copytree(tmp_path / "backup", ledger.folder)
    back = fresh(ledger)
    assert verify(back) == []
    assert verify(back, [early]) == []
    assert any("rolled back or truncated" in problem for problem in verify(back, [late]))

    finish_one(back, 2, "query 2")
    assert len(entries(back)) == late.seq
    assert any("not the one that results saw" in problem for problem in verify(back, [early, late]))

    shutil.rmtree(ledger.folder)
    assert any("ledger ends at 0" in problem for problem in verify(fresh(ledger), [early]))


def test_anchors_of_other_lineages_say_nothing(ledger: Ledger) -> None:
    assert verify(ledger, [Anchor("other", 99, "f" * 64), Anchor("toy", 0, journal.START)]) == []


# A half-written last entry


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "last", ["OPENED", "RESERVED", "COMMITTED", "DONE", "REFUNDED", "REPAIRED"]
)
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.long)])
def test_an_entry_cut_at_any_byte_is_repaired_and_no_charge_is_lost(
    tmp_path: Path, last: str, step: int
) -> None:
    ledger = open_ledger(open_home(tmp_path / "home"), TERMS)
    if last != "OPENED":
        held, other = reserve(ledger, [item(0), item(1)])
        if last in ("COMMITTED", "DONE"):
            commit(ledger, held.token, "query", held.spends)
        if last == "DONE":
            finish(ledger, held.token, "output")
        if last == "REFUNDED":
            refund(ledger, [other.token])
        if last == "REPAIRED":
            entries(ledger)[-1].write_bytes(b"{")
            reserve_one(fresh(ledger), 2)
            entries(ledger)[-1].unlink()
    path = entries(ledger)[-1]
    whole = path.read_bytes()
    assert f'"type": "{last}"'.encode() in whole
    path.write_bytes(b"")
    charged = load(fresh(ledger)).charged_spends()
    assert len(charged) == (2 if last in ("COMMITTED", "DONE", "REFUNDED") else 0)
    for cut in (*range(0, len(whole), step), len(whole) - 1):
        path.write_bytes(whole[:cut])
        torn = fresh(ledger)
        assert verify(torn) == [f"entry {int(path.stem)} is half-written; the next run repairs it"]
        assert load(torn).charged_spends() == charged
        if cut % (97 * step) and cut < len(whole) - 1:
            continue
        if load(torn).terms is None:
            open_ledger(torn.home, TERMS)
        reserve_one(torn, 3)
        assert '"type": "REPAIRED"' in entries(torn)[int(path.stem)].read_text()
        assert verify(torn) == []
        assert load(fresh(torn)).charged_spends() == charged + spends(3)
        for later in entries(ledger)[int(path.stem) :]:
            later.unlink()


def test_the_repaired_bytes_are_sealed(ledger: Ledger) -> None:
    reserve_one(ledger)
    path = entries(ledger)[-1]
    path.write_bytes(path.read_bytes()[:100])
    reserve_one(fresh(ledger), 1)
    assert verify(ledger) == []
    path.write_bytes(path.read_bytes()[:99])
    assert_found(ledger, "entry 3 does not follow entry 2")


def test_a_damaged_entry_with_a_signature_is_tampering_not_a_crash(ledger: Ledger) -> None:
    reserve_one(ledger)
    path = entries(ledger)[-1]
    path.write_bytes(path.read_bytes()[:-70] + b"0" * 66 + b'"\n}\n')
    assert_found(ledger, "entry 2 was edited")


def test_left_over_temporary_files_are_ignored(ledger: Ledger) -> None:
    (ledger.folder / ".00000002.json.0123456789abcdef").write_bytes(b"half")
    reserve_one(ledger)
    assert verify(ledger) == []


# Disks


@pytest.mark.parametrize("call", ["fsync", "link", "open"])
def test_a_full_disk_charges_nothing_and_says_so(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    real: Callable[..., Any] = getattr(home.os, call)

    def full(*args: Any, **options: Any) -> Any:
        if call != "open" or ".json." in str(args[0]):
            raise OSError(28, "No space left on device")
        return real(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(home.os, call, full)
        with pytest.raises(
            Refused,
            match=r"nothing can be written.*No space.*nothing is charged "
            r"twice",
        ):
            reserve_one(ledger)
    assert load(fresh(ledger)).charged_spends() == ()
    assert [path.name for path in ledger.folder.iterdir()] == ["00000001.json"]
    assert reserve_one(ledger).status == "RESERVED"


def test_a_disk_that_fills_up_after_commit_is_not_said_to_cost_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = reserve_one(ledger)
    commit(ledger, held.token, "query", held.spends)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(home.os, "link", full)
    with pytest.raises(Refused, match=r"stays charged.*nothing is charged twice") as refusal:
        finish(ledger, held.token, "output")
    assert "othing was charged" not in str(refusal.value)


def test_a_file_where_the_ledger_should_be(ledger: Ledger) -> None:
    (ledger.home.ledgers / "other").write_text("")
    with pytest.raises(Refused, match="nothing can be written"):
        open_ledger(ledger.home, dataclasses.replace(TERMS, lineage="other"))


def test_locks_that_do_not_work_or_never_come_free_stop_nobody(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error in (OSError(38, "Function not implemented"), BlockingIOError(11, "busy")):

        def broken(*_: Any, error: OSError = error) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(journal.fcntl, "flock", broken)
            patch.setattr(journal, "TURN", 0.05)
            reserve_one(ledger, len(entries(ledger)))
    assert len(load(ledger).charged_spends()) == 2


@pytest.mark.ci
def test_a_queue_that_moves_is_waited_for_and_one_that_stands_still_is_not(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand that went ahead together, each as its own time was up, took each other's place
    until they gave up."""
    monkeypatch.setattr(journal, "TURN", 0.5)
    before = entries(ledger)
    in_front = os.open(ledger.folder, os.O_RDONLY)
    fcntl.flock(in_front, fcntl.LOCK_EX)
    behind = Thread(target=reserve_one, args=(ledger,))
    behind.start()
    for step in range(12):
        time.sleep(0.1)
        (ledger.folder / f".{step}").touch()
        assert entries(ledger) == before
    behind.join(timeout=200)
    os.close(in_front)
    assert len(entries(ledger)) == len(before) + 1


def test_an_append_gives_up_when_others_always_win(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "create_once", lambda *_: False)
    monkeypatch.setattr(journal, "PATIENCE", 0.1)
    with pytest.raises(Refused, match=r"others kept writing.*nothing is charged twice"):
        reserve_one(ledger)


def test_free_work_is_held_without_cost(ledger: Ledger) -> None:
    finish_one(ledger, event=Nothing("a map of public data"))
    assert cost_so_far(ledger, load(ledger)).epsilon == 0.0


def test_noise_for_another_charge_is_not_committed_and_nothing_is_written(ledger: Ledger) -> None:
    held = reserve_one(ledger)
    before = entries(ledger)
    [spend] = held.spends
    for draws in ((), noise_for(spends(0, mu=2 * MU)), 2 * noise_for(spends(0))[:1]):
        with pytest.raises(Refused, match="is not what the declared noise costs"):
            book.commit(ledger, held.token, "query", [spend], draws)
    assert entries(ledger) == before
    commit(ledger, held.token, "query", [spend], noise_for([spend]))


def test_a_version_that_adds_to_an_earlier_one_is_refused_where_there_is_no_room(
    ledger: Ledger,
) -> None:
    most = gdp.mu_from_epsilon(0.9, 1e-5)
    (train,) = reserve(ledger, [on("train", 0, mu=most)])
    commit(ledger, train.token, "train", train.spends)
    with pytest.raises(Refused, match="lifetime limit"):
        reserve(ledger, [on("test", 1, "2", mu=most)])
    reserve(ledger, [on("test", 1, mu=most)])


def test_commit_asks_the_lifetime_once_more(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what was reserved together, by whatever bug."""
    most = gdp.mu_from_epsilon(0.9, 1e-5)
    with monkeypatch.context() as broken:
        broken.setattr(book, "check_lifetime", lambda *_: None)
        first, _ = reserve(ledger, [item(trial, mu=most) for trial in range(2)])
    with pytest.raises(Refused, match="lifetime limit"):
        commit(ledger, first.token, "one", first.spends)
