"""Release once: commit, work in private staging, keep the bytes, publish copies. What was released
is only restored.

Snakemake deletes outputs before a job starts, jobs are killed, clones rerun finished work. None of
that may spend again or publish a second answer to the same query. So the released bytes live in
home, and `results/` holds copies.
"""

from __future__ import annotations

import contextlib
import filecmp
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpladder.errors import TWICE, BadInput, Refused
from dpladder.privacy.accounting.events import Job, Spend
from dpladder.privacy.ledger import book as ledgers
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.home import Home, make_folder, replace, share, subkey, sync_folder
from dpladder.privacy.ledger.state import LedgerCharge
from dpladder.privacy.release.meter import Draw, Meter, Streams
from dpladder.privacy.release.noise import ResearchNoise, SecretNoise, encode


def query_digest(**parts: object) -> str:
    """The identity of a question put to private data: every constant in full, every input by its
    digest.

    It is public, and names no private input: not even by a digest under home's key, which would
    tell whether records changed.

    Args:
        parts: plain values, mappings and sequences of them (`noise.encode`).

    Returns:
        64 hexadecimal digits, a SHA-256.
    """
    return hashlib.sha256(encode(parts)).hexdigest()


@dataclass(frozen=True, eq=False)
class Question:
    """What a job asks of private data, what that costs and draws, and where its answer goes.

    Attributes:
        job: its label, for people.
        question: what the ledger reserved it under. It is known before anything is read.
        query: digest of all that the answer follows from, upstream releases included, records not
            (`query_digest`).
        spends, draws: made from the same sensitivities; COMMIT refuses them otherwise.
        outputs: which file of the answer goes to which path.
        units: a digest of the units that there are, for home's eyes alone.
    """

    job: Job
    question: str
    query: str
    spends: Sequence[Spend]
    draws: Sequence[Draw]
    outputs: Mapping[str, Path]
    units: str = ""


@dataclass(frozen=True, eq=False)
class Work:
    """A question that has to be answered now: all randomness from the meter, its files into the
    folder, which nobody else sees.

    Attributes:
        job: whose question it answers.
        meter: holds exactly the question's declared draws.
        folder: empty, for its owner alone. What is written there is kept once the meter closed
            without a refusal.
    """

    job: Job
    meter: Meter
    folder: Path


Produce = Callable[[Sequence[Work]], None]


def release_together(
    ledger: Ledger,
    questions: Sequence[Question],
    produce: Produce,
    seed: int | None = None,
    ready: Callable[[], None] | None = None,
) -> list[LedgerCharge]:
    """Answer each of several jobs' questions once, ever, and publish the answers.

    Each is committed, kept and DONE by itself, and what is DONE already is restored, free. Killed
    at any moment, no charge and no answer is lost. A charge stands on the disk before private data
    is read, and an answer does, whole, before it is DONE and copied.

    Args:
        ledger: of the one lineage that is asked.
        questions: of jobs and with queries of their own.
        produce: Writes the files of `outputs` of those that are left into the folders that it is
            given, all randomness from their meters. It runs once, after COMMIT, and is the place to
            read private data.
        seed: Makes the noise repeatable, on research lineages only.
        ready: Runs before COMMIT: what it refuses costs nothing.

    Returns:
        The charge behind each question's answer, in their order: DONE now, or long ago.

    Raises:
        BadInput: an output is not named by a plain file name.
        Refused: a question has no reservation, or its draws are not what is charged. Or more or
            less is drawn than was declared. Or what was kept is damaged.
    """
    for question in questions:
        if any(name != Path(name).name or name.startswith(".") for name in question.outputs):
            raise BadInput("outputs are named by plain file names: no folders, no leading dot.")
    restored, charges = _finished_charges(ledger, questions), dict[str, LedgerCharge]()
    # One round answers all that is left, unless another clone finishes some of it meanwhile.
    while left := [one for one in questions if one.query not in restored | charges]:
        try:
            charges = _answer(ledger, left, produce, seed, ready)
        except Exception:
            # Another clone may have answered meanwhile, and swept away what this one was working
            # in.
            if (now := _finished_charges(ledger, questions)).keys() == restored.keys():
                raise
            restored = now
    done = charges | restored
    for question in questions:
        _publish_answer(ledger, question, done[question.query])
    return [done[question.query] for question in questions]


def _finished_charges(ledger: Ledger, questions: Sequence[Question]) -> dict[str, LedgerCharge]:
    """The charge behind each question that is DONE, by query; those that are not are left out."""
    state = ledgers.load(ledger)
    pairs = ((question.query, state.finished_charge(question.query)) for question in questions)
    return {query: charge for query, charge in pairs if charge is not None}


def _answer(
    ledger: Ledger,
    questions: Sequence[Question],
    produce: Produce,
    seed: int | None,
    ready: Callable[[], None] | None,
) -> dict[str, LedgerCharge]:
    """COMMIT all, compute what no earlier attempt kept, keep, DONE.

    An attempt that died after it kept an answer left it complete: that answer is finished, and no
    other is computed. A question whose answer is gone stays COMMITTED.
    """
    charges_found = [_charge_to_use(ledger, question) for question in questions]
    for one in charges_found:
        _research_noise(ledger, one, seed)  # refused before anything is charged
    if ready is not None:
        ready()
    charges = [
        ledgers.commit(
            ledger,
            one.token,
            question.query,
            question.spends,
            question.draws,
            question.job,
            question.units,
        )
        for one, question in zip(charges_found, questions, strict=True)
    ]
    unanswered = [
        (question, charge)
        for question, charge in zip(questions, charges, strict=True)
        if _complete_answer(ledger, question.query) is None
    ]
    if unanswered:
        _produce(ledger, unanswered, produce, seed)
    finished = {}
    for one, question in zip(charges, questions, strict=True):
        output = _complete_answer(ledger, question.query)
        if output is None:
            raise Refused(
                f"the answer of {question.job} is gone from {ledger.home.releases} "
                "before it was noted as done. It stays charged, and the next run computes it again."
            )
        finished[question.query] = ledgers.finish(ledger, one.token, output)
    return finished


def _research_noise(ledger: Ledger, charge: LedgerCharge, seed: int | None) -> ResearchNoise | None:
    """The repeatable noise of a research run, if it has a seed. Refused on any other lineage."""
    return (
        None
        if seed is None
        else ResearchNoise(ledgers.terms_of(ledger, ledger.state), charge.question, seed)
    )


def _publish_answer(ledger: Ledger, question: Question, finished: LedgerCharge) -> None:
    """Publish a finished answer. What was reserved for the same question and not used is given back
    (respend reserves once more even where nothing changed); other attempts' files go."""
    charges = ledger.state.charges_for(question.question)
    ledgers.refund(ledger, [charge.token for charge in charges if charge.status == "RESERVED"])
    _sweep(ledger, finished)
    _publish(ledger, finished, question)


def is_kept(home: Home, path: Path, lineage: str) -> bool:
    """Whether a file is, byte for byte, one that was released under this name.

    Args:
        home: where released bytes are kept.
        path: the file.
        lineage: whose release it should be.
    """
    matches = home.releases.glob(f"{lineage}/*/*/{path.name}")
    size = path.stat().st_size
    return any(
        other.stat().st_size == size and filecmp.cmp(path, other, shallow=False)
        for other in matches
    )


def _charge_to_use(ledger: Ledger, question: Question) -> LedgerCharge:
    """What the job may spend: first what an attempt at this very query left behind, else its
    question's last charge, which is its unused reservation."""
    charges = ledger.state.charges_for(question.question)
    if not charges:
        raise Refused(
            f"{question.job} holds no reservation on lineage {ledger.lineage}, or it "
            "was taken back by a later plan. Start the workflow again: it reserves before it runs."
        )
    resumed = [h for h in charges if h.status == "COMMITTED" and h.query == question.query]
    return (resumed or charges)[-1]  # commit refuses what is used


def _produce(
    ledger: Ledger,
    unanswered: Sequence[tuple[Question, LedgerCharge]],
    produce: Produce,
    seed: int | None,
) -> None:
    """Run the mechanisms in staging and keep what they made, whole and durable, each under its
    digest."""
    works = [_work_of_question(ledger, *one, seed) for one in unanswered]
    try:
        for work in works:
            with _explain_write_errors(work.folder):
                work.folder.mkdir(mode=0o700)
        produce(works)
        for work, (question, charge) in zip(works, unanswered, strict=True):
            work.meter.close()
            _check_noise(work.meter.source, question, charge)
            if {path.name for path in work.folder.iterdir()} != set(question.outputs):
                raise Refused(
                    f"{question.job} must write exactly its outputs: "
                    f"{', '.join(sorted(question.outputs))}."
                )
            with _explain_write_errors(ledger.home.releases):
                _move_into_store(work.folder, _query_folder(ledger, question.query))
    finally:
        for work in works:
            shutil.rmtree(work.folder, ignore_errors=True)


def _work_of_question(
    ledger: Ledger, question: Question, charge: LedgerCharge, seed: int | None
) -> Work:
    """Its meter, on home's noise key or research's seed, and the name of a staging folder that no
    other attempt has. The folder is not made yet."""
    noise = _research_noise(ledger, charge, seed)
    source = noise or SecretNoise(subkey(ledger.home, "noise"), question.query, str(charge.nonce))
    staging = ledger.home.staging / f"{charge.token}.{secrets.token_hex(8)}"
    return Work(question.job, Meter(question.draws, source), staging)


def _check_noise(source: Streams, question: Question, charge: LedgerCharge) -> None:
    """Refuse an answer whose noise is not that of its own query and nonce. A ledger holds no nonce
    twice, so no stream is behind two answers. Seeded noise repeats itself on purpose."""
    drawn = isinstance(source, SecretNoise) and (source.query, source.nonce)
    if not isinstance(source, ResearchNoise) and drawn != (question.query, charge.nonce):
        raise Refused(
            f"{question.job} was answered with the noise of another question. Nothing "
            "was kept or published: this is a bug in dpladder, please report it."
        )


def _move_into_store(staging: Path, folder: Path) -> str:
    """Bring a finished release into the store under the digest of its bytes. Files go first, then
    the name, each on the disk before the next. So a crash leaves all of it or nothing."""
    for path in staging.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    sync_folder(staging)
    make_folder(folder)
    share(folder, *staging.iterdir(), staging)
    output = _digest(staging)
    try:
        os.rename(staging, folder / output)
    except OSError:
        if not (folder / output).is_dir():  # another attempt may have kept the same bytes
            raise
    for parent in (folder, folder.parent, folder.parent.parent):
        sync_folder(parent)
    return output


def _complete_answer(ledger: Ledger, query: str) -> str | None:
    """The name of an answer that is kept whole, by this attempt or by one that died before DONE."""
    folders = sorted(_query_folder(ledger, query).glob("*"))
    return next((folder.name for folder in folders if _digest(folder) == folder.name), None)


def _publish(ledger: Ledger, charge: LedgerCharge, question: Question) -> None:
    """Copy the release to where it is wanted. Each file appears whole, in place of whatever was
    there."""
    folder = _query_folder(ledger, str(charge.query)) / str(charge.output)
    if not folder.is_dir() or _digest(folder) != charge.output:
        raise Refused(
            f"the release kept in {folder} is missing or damaged, and what is DONE is never "
            "computed twice. Restore the folder from a backup, or pay for a new release with "
            "respend: true."
        )
    for name, path in question.outputs.items():
        if not (folder / name).is_file():
            raise Refused(
                f"{question.job} released no {name}. Ask for what it released, or change the query."
            )
        with _explain_write_errors(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(path, (folder / name).read_bytes(), mode=0o666)  # public: the umask decides


def _sweep(ledger: Ledger, finished: LedgerCharge) -> None:
    """Remove what other attempts at a finished query left behind."""
    left = [
        folder
        for folder in _query_folder(ledger, str(finished.query)).glob("*")
        if folder.name != finished.output
    ]
    for folder in (*left, *ledger.home.staging.glob(f"{finished.token}.*")):
        shutil.rmtree(folder, ignore_errors=True)


def _query_folder(ledger: Ledger, query: str) -> Path:
    """Where answers to a query are kept in home, each in a folder that is named by `_digest`."""
    return ledger.home.releases / ledger.lineage / query


def _digest(folder: Path) -> str:
    """A SHA-256 over names and contents of a folder's files, whatever order the disk lists them
    in."""
    files = {}
    for path in folder.iterdir():
        with path.open("rb") as file:
            files[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return hashlib.sha256(encode(files)).hexdigest()


@contextlib.contextmanager
def _explain_write_errors(folder: Path) -> Iterator[None]:
    """Turn a full or read-only disk into a refusal that says what to do, without a traceback."""
    try:
        yield
    except OSError as error:
        raise Refused(
            f"nothing can be written to {folder}: {error.strerror}. {TWICE}: free space, or mount "
            "the disk for writing, and run again."
        ) from None
