"""The release store: a query is answered once, its bytes are kept, and everything else is restored
or refused."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import release

from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting.draws import gaussian, to_json
from dpladder.privacy.accounting.events import Gaussian, Job, Partition, Spend
from dpladder.privacy.ledger.book import Ledger, finish, load, open_ledger, reserve, verify
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.ledger.state import Item, LedgerCharge, Terms
from dpladder.privacy.release import store
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.release.store import is_kept, query_digest

TERMS = Terms("toy", "add_remove", "record", 1, 1e-5, "hash", lifetime_epsilon=1.0)
JOB = Job("main", "run_trial", (("trial", "0"),))
SPENDS = (Spend("toy", "add_remove", Partition("hash", ("train",)), Gaussian(20.0)),)
DRAWS = (gaussian("noise", 20.0, 1.0, (4,)),)
QUERY = query_digest(data="version 1")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = open_ledger(open_home(tmp_path / "home"), TERMS)
    reserve(ledger, [Item(JOB, "static", SPENDS)])
    return ledger


def produce(meter: Meter, folder: Path) -> None:
    """Noise, and bytes that no second run would repeat."""
    (folder / "weights").write_bytes(meter.publish("noise", np.zeros(4)).tobytes() + os.urandom(8))
    (folder / "score").write_text("1")


@pytest.fixture
def outputs(tmp_path: Path) -> dict[str, Path]:
    return {
        "weights": tmp_path / "results" / "trial 0" / "weights",
        "score": tmp_path / "results" / "score",
    }


Ask = Callable[..., LedgerCharge]


@pytest.fixture
def ask(ledger: Ledger, outputs: dict[str, Path]) -> Ask:
    def ask(**changes: Any) -> LedgerCharge:
        given = {
            "ledger": Ledger(ledger.home, ledger.lineage),
            "job": JOB,
            "question": "static",
            "query": QUERY,
            "spends": SPENDS,
            "draws": DRAWS,
            "produce": produce,
            "outputs": outputs,
        }
        return release(**{**given, **changes})

    return ask


def never(meter: Meter, folder: Path) -> None:
    raise AssertionError("computed again")


def read(outputs: dict[str, Path]) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in outputs.items()}


def test_a_release_is_charged_kept_and_published(
    ledger: Ledger, ask: Ask, outputs: dict[str, Path]
) -> None:
    charge = ask()
    assert [spend.query for spend in charge.spends] == [QUERY]
    assert [*load(ledger).charges.values()] == [charge]
    draws = json.loads(json.dumps([to_json(draw) for draw in DRAWS]))
    assert (charge.status, charge.draws) == ("DONE", draws)
    kept = ledger.home.releases / "toy" / QUERY / str(charge.output)
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == read(outputs)
    assert not list(ledger.home.staging.iterdir())
    assert {path.name for path in outputs["weights"].parent.iterdir()} == {"weights"}


def noise_of(ledger: Ledger, question: str, query: str) -> bytes:
    """What the one charge of a question draws by its nonce."""
    (held,) = load(ledger).charges_for(question)
    source = store.SecretNoise(store.subkey(ledger.home, "noise"), query, str(held.nonce))
    noise: bytes = Meter(DRAWS, source).publish("noise", np.zeros(4)).tobytes()
    return noise


def test_the_noise_is_that_of_the_committed_nonce(
    ledger: Ledger, ask: Ask, outputs: dict[str, Path]
) -> None:
    ask()
    assert outputs["weights"].read_bytes()[:32] == noise_of(ledger, "static", QUERY)


SECOND = Job("main", "run_trial", (("trial", "1"),))


@pytest.fixture
def both(ledger: Ledger, tmp_path: Path) -> list[store.Question]:
    """Two questions that are committed together."""
    found = []
    for trial, job in enumerate((JOB, SECOND)):
        asked = f"trial {trial}"
        reserve(ledger, [Item(job, asked, SPENDS)])
        outputs = {"weights": tmp_path / f"weights {trial}"}
        query = query_digest(data="version 1", trial=trial)
        found.append(store.Question(job, asked, query, SPENDS, DRAWS, outputs))
    return found


def noise_alone(works: Sequence[store.Work]) -> None:
    for work in works:
        (work.folder / "weights").write_bytes(work.meter.publish("noise", np.zeros(4)).tobytes())


def test_questions_committed_together_have_each_its_own_noise(
    ledger: Ledger, both: list[store.Question]
) -> None:
    store.release_together(ledger, both, noise_alone)
    for question in both:
        expected = noise_of(ledger, question.question, question.query)
        assert question.outputs["weights"].read_bytes() == expected


def test_an_answer_with_the_noise_of_another_is_not_kept(
    ledger: Ledger, both: list[store.Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[store.Work] = []

    def with_the_first_ones_noise(*facts: Any, work: Any = store._work_of_question) -> store.Work:
        made.append(work(*facts))
        made[-1].meter.source = made[0].meter.source
        return made[-1]

    monkeypatch.setattr(store, "_work_of_question", with_the_first_ones_noise)
    with pytest.raises(Refused, match="noise of another"):
        store.release_together(ledger, both, noise_alone)
    found = [
        held.status for question in both for held in load(ledger).charges_for(question.question)
    ]
    assert found == ["COMMITTED", "COMMITTED"]
    assert not any(question.outputs["weights"].exists() for question in both)


@pytest.mark.parametrize(
    "loss", ["nothing", "one output", "all results", "another's bytes in its place"]
)
def test_what_was_released_is_restored_byte_by_byte_and_free(
    ledger: Ledger, ask: Ask, outputs: dict[str, Path], loss: str
) -> None:
    first = ask()
    published, charged = read(outputs), load(ledger).charged_spends()
    if loss == "one output":
        outputs["weights"].unlink()
    if loss == "all results":
        shutil.rmtree(outputs["score"].parent)
    if loss == "another's bytes in its place":
        outputs["weights"].write_bytes(b"other")
    again = ask(produce=never)
    assert again == first
    assert read(outputs) == published
    assert load(ledger).charged_spends() == charged


def test_another_clone_is_given_the_same_bytes(
    ask: Ask, outputs: dict[str, Path], tmp_path: Path
) -> None:
    ask()
    clone = {name: tmp_path / "clone" / name for name in outputs}
    ask(produce=never, outputs=clone)
    assert read(clone) == read(outputs)


def test_a_reservation_that_proves_needless_is_given_back(ledger: Ledger, ask: Ask) -> None:
    ask()
    (again,) = reserve(ledger, [Item(JOB, "static", SPENDS)], {"static"})
    assert ask(produce=never).token != again.token
    assert load(ledger).charges[again.token].status == "REFUNDED"


def test_new_data_is_a_new_query_and_needs_a_new_reservation(
    ledger: Ledger, ask: Ask, outputs: dict[str, Path]
) -> None:
    ask()
    published = read(outputs)
    changed = query_digest(data="version 2")
    with pytest.raises(Refused, match="respend: true"):
        ask(query=changed)
    assert read(outputs) == published
    reserve(ledger, [Item(JOB, "static", SPENDS)], {"static"})
    second = ask(query=changed)
    assert len(load(ledger).charged_spends()) == 2
    assert read(outputs)["weights"][:32] != published["weights"][:32]
    assert ask(produce=never).query != second.query


def test_identical_trials_get_independent_noise(
    ledger: Ledger, ask: Ask, outputs: dict[str, Path]
) -> None:
    ask()
    first = outputs["weights"].read_bytes()[:32]
    other = dataclasses.replace(JOB, wildcards=(("trial", "1"),))
    reserve(ledger, [Item(other, "another", SPENDS)])
    ask(job=other, question="another", query=query_digest(data="version 1", trial=1))
    assert outputs["weights"].read_bytes()[:32] != first


@pytest.mark.parametrize("first", [0, 1, 2])
def test_what_is_left_is_answered_beside_what_is_restored(
    first: int, ledger: Ledger, tmp_path: Path
) -> None:
    """A trial that is added to a rung must not be another's once more."""
    jobs = [Job("main", "run_trial", (("trial", str(number)),)) for number in range(3)]
    reserve(ledger, [Item(job, f"{job}", SPENDS) for job in jobs])
    questions = [
        store.Question(
            job, f"{job}", query_digest(of=place), SPENDS, DRAWS, {"of": tmp_path / f"{place}"}
        )
        for place, job in enumerate(jobs)
    ]
    asked: list[list[Job]] = []

    def write(works: Sequence[store.Work]) -> None:
        asked.append([work.job for work in works])
        for work in works:
            work.meter.publish("noise", np.zeros(4))
            (work.folder / "of").write_text(f"{asked[-1]}")

    store.release_together(ledger, [questions[first]], write)
    store.release_together(ledger, questions, write)
    assert asked == [[jobs[first]], [job for job in jobs if job != jobs[first]]]


def test_nothing_runs_without_a_reservation(ask: Ask, outputs: dict[str, Path]) -> None:
    with pytest.raises(Refused, match="holds no reservation"):
        ask(question="other", produce=never)
    assert not outputs["score"].exists()


def too_few(meter: Meter, folder: Path) -> None:
    (folder / "weights").write_bytes(b"no noise at all")
    (folder / "score").write_text("1")


def halved(meter: Meter, folder: Path) -> None:
    (folder / "weights").write_bytes(meter.publish("noise", np.zeros(2)).tobytes())


def caught(meter: Meter, folder: Path) -> None:
    produce(meter, folder)
    with contextlib.suppress(Refused):
        meter.publish("noise", np.zeros(4))


def one_output_only(meter: Meter, folder: Path) -> None:
    meter.publish("noise", np.zeros(4))
    (folder / "score").write_text("1")


def one_output_more(meter: Meter, folder: Path) -> None:
    produce(meter, folder)
    (folder / "accuracy.txt").write_text("0.9")


@pytest.mark.parametrize("defect", [too_few, halved, caught, one_output_only, one_output_more])
def test_a_job_publishes_nothing_when_it_was(
    ledger: Ledger, ask: Ask, outputs: dict[str, Path], defect: Callable[[Meter, Path], None]
) -> None:
    with pytest.raises(Refused):
        ask(produce=defect)
    assert not any(path.exists() for path in outputs.values())
    assert not list(ledger.home.staging.iterdir())
    assert not (ledger.home.releases / "toy").exists()
    assert len(load(ledger).charged_spends()) == 1
    ask()  # the defect mended: same query, same nonce, no new charge
    assert len(load(ledger).charged_spends()) == 1


@pytest.fixture
def kept_but_not_done(ask: Ask, outputs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store.ledgers, "finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ask()
    assert not outputs["weights"].exists()


def test_an_attempt_complete_but_for_done_is_finished_not_computed_again(
    ask: Ask, outputs: dict[str, Path], kept_but_not_done: None
) -> None:
    ask(produce=never)
    assert outputs["weights"].exists()


def test_an_answer_that_was_damaged_before_done_is_computed_again_at_no_new_charge(
    ledger: Ledger, ask: Ask, outputs: dict[str, Path], kept_but_not_done: None
) -> None:
    [kept] = (ledger.home.releases / "toy" / QUERY).iterdir()
    (kept / "score").write_text("2")
    ask()
    assert outputs["score"].read_text() == "1"
    assert len(load(ledger).charged_spends()) == 1


@pytest.mark.parametrize(
    ("query", "statuses"),
    [(QUERY, ["DONE", "REFUNDED"]), (query_digest(data="version 2"), ["COMMITTED", "DONE"])],
    ids=["the same query", "another query"],
)
def test_an_attempt_is_resumed_by_its_own_query_and_another_one_pays(
    ledger: Ledger, ask: Ask, kept_but_not_done: None, query: str, statuses: list[str]
) -> None:
    reserve(ledger, [Item(JOB, "static", SPENDS)], {"static"})
    ask(query=query)
    assert [charge.status for charge in load(ledger).charges.values()] == statuses


def test_each_file_is_on_disk_before_its_answer_has_a_name_and_the_name_before_it_is_done(
    ledger: Ledger, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`kill -9` shows nothing of this: the kernel keeps what was written. A cut of power would."""
    steps: list[tuple[str, int]] = []

    def noted(name: str, number: Callable[..., int], real: Callable[..., Any]) -> Any:
        def call(*args: Any) -> Any:
            steps.append((name, number(*args)))
            return real(*args)

        return call

    monkeypatch.setattr(os, "fsync", noted("sync", lambda fd: os.fstat(fd).st_ino, os.fsync))
    monkeypatch.setattr(os, "rename", noted("name", lambda old, _: old.stat().st_ino, os.rename))
    monkeypatch.setattr(store.ledgers, "finish", noted("done", lambda *_: 0, finish))
    output = ask().output
    query = ledger.home.releases / "toy" / QUERY
    answer = query / output
    named, done = steps.index(("name", answer.stat().st_ino)), steps.index(("done", 0))
    for path in (answer, *answer.iterdir()):
        assert ("sync", path.stat().st_ino) in steps[:named], path.name
    for folder in (query, query.parent, query.parent.parent):
        assert ("sync", folder.stat().st_ino) in steps[named:done], folder.name


@pytest.mark.parametrize(
    "moment", ["while it computes", "before it commits", "before it keeps its answer"]
)
def test_of_two_attempts_at_once_the_first_to_finish_is_published_by_both(
    ledger: Ledger, ask: Ask, outputs: dict[str, Path], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    inner: list[dict[str, bytes]] = []

    def overtaken(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if not inner:
                inner.append({})
                ask()
                inner[0] |= read(outputs)
            return real(*args, **options)

        return call

    if moment == "before it commits":
        monkeypatch.setattr(store.ledgers, "commit", overtaken(store.ledgers.commit))
    if moment == "before it keeps its answer":
        monkeypatch.setattr(store, "_move_into_store", overtaken(store._move_into_store))
    ask(produce=overtaken(produce) if moment == "while it computes" else produce)
    assert read(outputs) == inner[0]
    assert len(list((ledger.home.releases / "toy" / QUERY).iterdir())) == 1
    assert not list(ledger.home.staging.iterdir())
    assert len(load(ledger).charged_spends()) == 1
    assert verify(ledger) == []


def test_a_kept_release_that_was_damaged_is_not_published_nor_computed_again(
    ledger: Ledger, ask: Ask, outputs: dict[str, Path]
) -> None:
    kept = ledger.home.releases / "toy" / QUERY / str(ask().output)
    published = read(outputs)
    (kept / "score").write_text("2")
    with pytest.raises(Refused, match="missing or damaged"):
        ask(produce=never)
    shutil.rmtree(kept)
    with pytest.raises(Refused, match="missing or damaged"):
        ask(produce=never)
    assert read(outputs) == published


def test_a_seed_is_refused_before_anything_is_spent_on_a_release_lineage(
    ledger: Ledger, ask: Ask
) -> None:
    with pytest.raises(Refused, match="research"):
        ask(seed=0)
    assert [held.status for held in load(ledger).charges.values()] == ["RESERVED"]


def test_in_research_a_seed_repeats_the_noise(tmp_path: Path) -> None:
    drawn = []
    for number in range(2):
        ledger = open_ledger(
            open_home(tmp_path / str(number)), dataclasses.replace(TERMS, mode="research")
        )
        reserve(ledger, [Item(JOB, "static", SPENDS)])
        outputs = {name: tmp_path / f"{name} {number}" for name in ("weights", "score")}
        release(ledger, JOB, "static", QUERY, SPENDS, DRAWS, produce, outputs, seed=3)
        drawn.append(outputs["weights"].read_bytes()[:32])
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("name", ["../escape", "a/b", ".."])
def test_outputs_have_plain_names(ask: Ask, tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="plain"):
        ask(outputs={"score": tmp_path / "score", name: tmp_path / "x"})


@pytest.mark.parametrize(
    "change",
    [
        {"clip": 1.0000000000000002},
        {"clip": 1},
        {"data": b"other"},
        {"nested": {"eta": [0.01, 5.0], "steps": [5, 101]}},
        {"more": None},
    ],
)
def test_a_query_is_all_of_its_constants(change: dict[str, Any]) -> None:
    parts = {"clip": 1.0, "data": b"digest", "nested": {"steps": [5, 100], "eta": (0.01, 5.0)}}
    again = {"nested": {"eta": [0.01, 5.0], "steps": [5, 100]}, "data": b"digest", "clip": 1.0}
    assert query_digest(**parts) == query_digest(**again)
    assert query_digest(**parts) != query_digest(**{**parts, **change})


@pytest.mark.parametrize("edit", ["same size", "other size", "other name"])
def test_a_released_file_is_known_by_its_bytes(
    ledger: Ledger, ask: Ask, outputs: dict[str, Path], edit: str
) -> None:
    ask()
    assert all(is_kept(ledger.home, path, ledger.lineage) for path in outputs.values())
    assert not any(is_kept(ledger.home, path, "another") for path in outputs.values())
    if edit == "other name":
        edited = outputs["score"].rename(outputs["score"].with_name("weights"))
    else:
        edited = outputs["score"]
        edited.write_text("2" if edit == "same size" else "10")
    assert not is_kept(ledger.home, edited, ledger.lineage)


# Disks


def test_a_disk_that_is_full_at_any_moment_costs_nothing_more_and_the_next_run_completes(
    tmp_path: Path, ask: Ask, outputs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for fail_at in itertools.count(1):
        ledger = open_ledger(open_home(tmp_path / f"home {fail_at}"), TERMS)
        reserve(ledger, [Item(JOB, "static", SPENDS)])
        with monkeypatch.context() as patch:
            calls = iter(range(1, 10_000))
            for name in ("fsync", "link", "rename", "replace", "mkdir"):
                patch.setattr(os, name, failing(getattr(os, name), calls, fail_at))
            refusal = refused(lambda ledger=ledger: ask(ledger=ledger))
        if refusal is None:
            break
        assert "No space left" in refusal
        published = {name: path.read_bytes() for name, path in outputs.items() if path.exists()}
        ask(ledger=ledger)
        assert len(load(ledger).charged_spends()) == 1
        assert published.items() <= read(outputs).items()
        assert verify(ledger) == []
        shutil.rmtree(outputs["score"].parent)
    assert fail_at > 20


def refused(action: Callable[[], object]) -> str | None:
    try:
        action()
    except Refused as refusal:
        return str(refusal)
    return None


def failing(real: Callable[..., Any], calls: Iterator[int], fail_at: int) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        if next(calls) >= fail_at:
            raise OSError(28, "No space left on device")
        return real(*args, **options)

    return call


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "none", disk], capture_output=True
    ).returncode:
        pytest.skip("a small file system can only be mounted by root")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.fixture
def on_tiny_disk(tiny_disk: Path) -> Ledger:
    ledger = open_ledger(open_home(tiny_disk / "home"), TERMS)
    reserve(ledger, [Item(JOB, "static", SPENDS)])
    return ledger


def test_a_really_full_disk(tiny_disk: Path, on_tiny_disk: Ledger, ask: Ask) -> None:
    ballast = tiny_disk / "ballast"
    with pytest.raises(OSError, match="space"):
        ballast.write_bytes(bytes(1 << 17))
    with pytest.raises(Refused, match="No space left"):
        ask(ledger=on_tiny_disk)
    assert load(on_tiny_disk).charged_spends() == SPENDS
    ballast.unlink()
    ask(ledger=on_tiny_disk)
    assert verify(on_tiny_disk) == []


def test_a_home_mounted_read_only(tiny_disk: Path, on_tiny_disk: Ledger, ask: Ask) -> None:
    def remount(how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", tiny_disk], check=True)

    remount("ro")
    with pytest.raises(Refused, match="Read-only file system"):
        ask(ledger=on_tiny_disk, produce=never)
    remount("rw")
    ask(ledger=on_tiny_disk)
    remount("ro")
    ask(ledger=Ledger(on_tiny_disk.home, "toy"), produce=never)


def test_results_that_cannot_be_written_are_published_by_the_next_run(
    ledger: Ledger, ask: Ask, outputs: dict[str, Path]
) -> None:
    outputs["score"].parent.write_text("a file where the folder should be")
    with pytest.raises(Refused, match="nothing can be written"):
        ask()
    outputs["score"].parent.unlink()
    ask(produce=never)
    assert len(load(ledger).charged_spends()) == 1


def test_an_answer_that_is_gone_before_it_is_noted_is_never_done(
    ledger: Ledger, ask: Ask, outputs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as swept:
        swept.setattr(store, "_complete_answer", lambda *_: None)
        with pytest.raises(Refused, match=r"is gone from .* the next run computes it again"):
            ask()
    (held,) = load(ledger).charges.values()
    assert held.status == "COMMITTED"
    assert not any(path.exists() for path in outputs.values())
    ask()
    assert read(outputs)
