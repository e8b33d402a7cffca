"""Release once: commit, work in private staging, keep the bytes, publish copies. What was released is only restored.

Snakemake deletes outputs before a job starts, jobs are killed, clones rerun finished work. None of that may spend
again or publish a second answer to the same query, so the released bytes live in home and `results/` holds copies.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpladder.errors import BadInput, Refused
from dpladder.privacy import ledger as books
from dpladder.privacy.home import replace, subkey, sync_folder
from dpladder.privacy.ledger import Held, Ledger, State
from dpladder.privacy.meter import Draw, Meter
from dpladder.privacy.noise import ResearchNoise, SecretNoise, encode
from dpladder.privacy.spend import Job, Spend


@dataclass(frozen=True)
class Outcome:
    """What a job released, what that cost, and whether it had been released before."""

    restored: bool
    query: str
    output: str
    spends: tuple[Spend, ...]


def query_digest(**parts: object) -> str:
    """The identity of a question put to private data: every constant in full, every input by its digest.

    It is public. So a private input enters by a digest under home's key, which nobody else can compute and compare.
    """
    return hashlib.sha256(encode(parts)).hexdigest()


def release(
    ledger: Ledger,
    job: Job,
    static: str,
    query: str,
    spends: Sequence[Spend],
    draws: Sequence[Draw],
    produce: Callable[[Meter, Path], None],
    outputs: Mapping[str, Path],
    seed: int | None = None,
) -> Outcome:
    """Answer `query` once, ever, and publish the answer: `outputs` says which file of it goes where.

    `produce` writes those files into the folder it is given, all randomness from the meter. It runs after COMMIT and is
    the place to read private data. `seed` makes the noise repeatable, on research lineages only.
    """
    if any(name != Path(name).name or name.startswith(".") for name in outputs):
        raise BadInput("outputs are named by plain file names: no folders, no leading dot.")
    state = books.load(ledger)
    done = state.done(query)
    if done is None:
        held = _held(ledger, state, job, static, query)
        research = None if seed is None else ResearchNoise(books.terms_of(ledger, state), held.job, seed)
        held = books.commit(ledger, held.token, query, spends, [dataclasses.asdict(draw) for draw in draws])
        output = _kept(ledger, query)
        if output is None:
            source = research or SecretNoise(subkey(ledger.home, "noise"), held.job, query, str(held.nonce))
            output = _produce(ledger, held, Meter(draws, source), produce, outputs)
        finished = books.finish(ledger, held.token, output)
    else:
        finished = done
    unused = [h.token for h in state.of(job) if h.static == static and h.status == "RESERVED"]
    books.refund(ledger, [token for token in unused if token != finished.token])
    _sweep(ledger, finished)
    _publish(ledger, finished, outputs)
    return Outcome(done is not None, query, str(finished.output), finished.spends)


def _held(ledger: Ledger, state: State, job: Job, static: str, query: str) -> Held:
    """What the job may spend: first what an attempt at this very query left behind, else its reservation."""
    held = state.of(job)
    resumed = [h for h in held if h.status == "COMMITTED" and h.query == query]
    mine = [h for h in held if h.static == static]
    unused = [h for h in mine if h.status == "RESERVED"]
    if not (resumed or mine):
        raise Refused(
            f"{books.name(job)} holds no reservation on lineage {ledger.lineage}, or it was taken back by a later plan. "
            "Start the workflow again: it reserves before it runs."
        )
    return (resumed or unused or mine)[-1]  # commit refuses what is used


def _produce(
    ledger: Ledger,
    held: Held,
    meter: Meter,
    produce: Callable[[Meter, Path], None],
    outputs: Mapping[str, Path],
) -> str:
    """Run the mechanism in staging and keep what it made, whole and durable; the digest is its name."""
    staging = ledger.home.staging / f"{held.token}.{secrets.token_hex(8)}"
    try:
        with _writing(staging):
            staging.mkdir(mode=0o700)
        produce(meter, staging)
        meter.close()
        if {path.name for path in staging.iterdir()} != set(outputs):
            raise Refused(
                f"{books.name(held.job)} must write exactly its outputs: {', '.join(sorted(outputs))}."
            )
        with _writing(ledger.home.releases):
            return _keep(staging, _query_folder(ledger, str(held.query)))
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _keep(staging: Path, folder: Path) -> str:
    for path in staging.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    sync_folder(staging)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    output = _digest(staging)
    try:
        os.rename(staging, folder / output)
    except OSError:
        if not (folder / output).is_dir():  # another attempt may have kept the same bytes
            raise
    for parent in (folder, folder.parent, folder.parent.parent):
        sync_folder(parent)
    return output


def _kept(ledger: Ledger, query: str) -> str | None:
    """An answer that was complete when its attempt died before DONE."""
    folders = sorted(_query_folder(ledger, query).glob("*"))
    return next((folder.name for folder in folders if _digest(folder) == folder.name), None)


def _publish(ledger: Ledger, held: Held, outputs: Mapping[str, Path]) -> None:
    """Copy the release to where it is wanted. Each file appears whole, in place of whatever was there."""
    folder = _query_folder(ledger, str(held.query)) / str(held.output)
    if not folder.is_dir() or _digest(folder) != held.output:
        raise Refused(
            f"the release kept in {folder} is missing or damaged, and what is DONE is never computed twice. Restore the "
            "folder from a backup, or pay for a new release with respend: true."
        )
    for name, path in outputs.items():
        if not (folder / name).is_file():
            raise Refused(
                f"{books.name(held.job)} released no {name}. Ask for what it released, or change the query."
            )
        with _writing(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(path, (folder / name).read_bytes(), mode=0o666)  # public: the umask decides


def _sweep(ledger: Ledger, finished: Held) -> None:
    """Remove what other attempts at a finished query left behind."""
    left = [
        folder
        for folder in _query_folder(ledger, str(finished.query)).glob("*")
        if folder.name != finished.output
    ]
    for folder in (*left, *ledger.home.staging.glob(f"{finished.token}.*")):
        shutil.rmtree(folder, ignore_errors=True)


def _query_folder(ledger: Ledger, query: str) -> Path:
    return ledger.home.releases / ledger.lineage / query


def _digest(folder: Path) -> str:
    files = {}
    for path in folder.iterdir():
        with path.open("rb") as file:
            files[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return hashlib.sha256(encode(files)).hexdigest()


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Refused(
            f"nothing can be written to {folder}: {error.strerror}. No charge is lost and none is added: free space, or "
            "mount the disk for writing, and run again."
        ) from None
