"""Features of one shard of one part: a public map of each record by itself, resumable after a kill
at any moment.

Rows of a table without a network go from its blocks to their places at once. Others go through the
network in batches of one fixed size, in manifest order. Every batch is appended to a private
journal as soon as it is done. A journal entry carries its own seal, so an entry cut
short, or left by other data or another network, is made again. One process holds the journal; a
second waits and then finds the shard finished.
"""

from __future__ import annotations

import contextlib
import fcntl
import hmac
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dpladder.config.features_sections import Features
from dpladder.config.records import Corruption
from dpladder.data import sealed
from dpladder.data.backbones import encoder
from dpladder.data.blocks import TableBlocks
from dpladder.data.cache import address, claims, open_cache
from dpladder.data.datasets import open_source
from dpladder.data.depths import spans_of, stored_depths
from dpladder.data.digests import content_digest, row_digests
from dpladder.data.encoders import Encoder
from dpladder.data.files import closed_folder, explain_os_errors, link, private_folder
from dpladder.data.parallel import ordered_arrays, ordered_map
from dpladder.data.prepare import Manifest, Part, read_manifest, write_diagnostics
from dpladder.data.rows import Problems
from dpladder.data.sealed import Attrs
from dpladder.data.shift import corrupt_image
from dpladder.data.sources import Source
from dpladder.errors import DpladderError, Refused
from dpladder.privacy.piles import Piles, blocks_of, forget_pages, mapped_zeros
from dpladder.progress import progress

Rows = NDArray[Any]
Stored = Rows | sealed.Blocks
ROWS_AT_ONCE = 4096  # of a table that are normalised together: always as many


class Check(IntEnum):
    """Why a row is zero, as a cache keeps it. Of a record's views the one with the highest number
    stands."""

    FINE = 0
    UNLABELLED = 1
    UNREADABLE = 2
    NOT_FINITE = 3


# one record ready for the network, or a blank and the reason
Load = Callable[[int], tuple[Rows, Check]]

WORDS = {
    Check.UNREADABLE: "record cannot be decoded",
    Check.NOT_FINITE: "features are not finite",
}


@dataclass(frozen=True)
class Shard:
    """What one job extracts: some rows of a manifest through one encoder.

    Attributes:
        manifest: which record is which.
        rows: places in the manifest, in its order.
        source: the records, as their owner stored them.
        encoder: the network, with its fixed batch.
        features: the config's section, which says how rows are stored.
        units_key: home's, to tell whether a record changed since the manifest.
        views: of each record.
    """

    manifest: Manifest
    rows: NDArray[np.int64]
    source: Source
    encoder: Encoder
    features: Features
    units_key: bytes
    views: int = 1

    @property
    def stored(self) -> tuple[int, ...]:
        """The shape of a record's features."""
        return (self.encoder.width,) if self.views == 1 else (self.views, self.encoder.width)

    @property
    def batches(self) -> list[NDArray[np.int64]]:
        """The rows, so many at a time as the encoder takes; the last batch may be shorter."""
        size = self.encoder.batch
        return [self.rows[start : start + size] for start in range(0, len(self.rows), size)]


def extract(
    manifest: Path,
    features: Features,
    part: Part,
    output: Path,
    diagnostics: Path,
    *,
    root: Path,
    units_key: bytes,
    cache_key: bytes,
    shard: int = 0,
    shards: int = 1,
    threads: int = 1,
    views: int = 1,
    corruption: Corruption | None = None,
) -> None:
    """Write the cache of one shard to `output`, or point it at the whole part's cache where the
    root has that already.

    Guarantee: a record's row follows from that record and public facts alone (contract:
    per-record). What cannot be read, or is not finite, is a row of zeros under the label -1
    (contract: unbreakable).

    Args:
        manifest: which record is which.
        features: the network, and what of it is kept.
        part: whose records are extracted.
        output: of the shard.
        diagnostics: where it is noted which records are bad, for the owner's eyes.
        root: of caches that are kept from run to run, private.
        units_key, cache_key: home's, for contents and for seals.
        shard, shards: which of how many.
        threads: that batches share out.
        views: of each record.
        corruption: of a further test's images.

    Raises:
        Refused: the source changed since the manifest was made, or another tokenizer cut its
            documents.
    """
    known = read_manifest(manifest, cache_key)
    source = open_source(known.source, known.layout)
    network = _corrupting_encoder(encoder(features, source, threads), corruption)
    if known.tokenizer and known.tokenizer != network.facts["tokenizer_sha256"]:
        raise Refused(
            f"the tokenizer of {features.model} is not the one that cut the documents into spans. "
            "Run prepare_dataset again, and prepare_public where a public source is named."
        )
    rows = known.rows(part, private_folder(output.parent))
    claimed = claims(features, known.commitment, part, views, corruption)
    attrs: Attrs = {
        **claimed,
        **network.facts,
        "classes": known.classes,
        **{name: known.attrs[name] for name in ("labels", "pool") if name in known.attrs},
        "units": known.everybody,
        "width": network.width,
        **{package: version(package) for package in ("dpladder", "timm", "torch")},
        "shard": f"{shard}/{shards}",
    }
    whole = address(closed_folder(root), attrs, cache_key)
    if _is_done(whole, cache_key, claimed):
        link(whole, output)
    else:
        rows = rows[len(rows) * shard // shards : len(rows) * (shard + 1) // shards]
        work = Shard(known, rows, source, network, features, units_key, views)
        seal = hmac.digest(cache_key, f"{whole.name} {attrs['shard']}".encode(), "sha256")
        path = output.with_name(f".{output.name}.journal")
        with explain_os_errors(path), _lock_journal(path) as journal:
            if not _is_done(output, cache_key, attrs):
                if source.blocks is None:
                    _fill(journal, work, seal, threads)
                    features_read = _gather(journal, work)
                else:
                    features_read = _read_blocks(work, source.blocks, output.parent)
                _write(output, *features_read, work, attrs, cache_key)
            path.unlink(missing_ok=True)
    checks = open_cache(output, cache_key).checks
    problems = Problems()
    for check, why in WORDS.items():
        problems.note(why, known.index[rows[checks == check]])
    write_diagnostics(diagnostics, source, problems)


def _corrupting_encoder(network: Encoder, how: Corruption | None) -> Encoder:
    """An encoder of images as a further test wants them: corrupted, each as a function of itself
    alone."""
    if how is None:
        return network

    def load(content: Any, number: int) -> Rows:
        return corrupt_image(network.load(content, number), how)

    return replace(network, load=load)


def _is_done(path: Path, key: bytes, expected: Attrs) -> bool:
    """Whether a sound cache with these attributes is there already."""
    try:
        open_cache(path, key, expected)
    except DpladderError:
        return False
    return True


@contextlib.contextmanager
def _lock_journal(path: Path) -> Iterator[BinaryIO]:
    """The journal, for this process alone; the kernel lets go of it when the process ends, however
    it ends."""
    with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0) as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        yield journal


def _fill(journal: BinaryIO, work: Shard, seal: bytes, threads: int) -> None:
    """Append every batch that the journal does not hold yet."""
    batches = work.batches
    done = _count_sound(journal, work, seal)
    journal.truncate(done * _entry_type(work).itemsize)
    journal.seek(0, os.SEEK_END)
    # A view of a record goes through the network like a record; its number counts on from the
    # record's own views.
    each = [rows * work.views + view for rows in batches[done:] for view in range(work.views)]
    encoded = encode(work.encoder, work.features, lambda item: _load(item, work), each, threads)
    with progress("extracting features", len(work.rows)) as advance:
        for number, (rows, checks) in enumerate(_group_views(encoded, work), done):
            entry = np.zeros((), _entry_type(work))
            entry["features"], entry["checks"] = rows, checks
            entry["seal"] = np.frombuffer(_entry_seal(entry, number, seal), np.uint8)
            journal.write(entry.tobytes())
            advance(len(batches[number]))


def _group_views(
    encoded: Iterator[tuple[Rows, NDArray[np.uint8]]], work: Shard
) -> Iterator[tuple[Rows, NDArray[np.uint8]]]:
    """Records with all their views. One whose view fails a check counts as nothing, by a look at
    this record alone."""
    while views := list(islice(encoded, work.views)):
        checks = np.max([seen for _, seen in views], axis=0)
        rows = np.stack([rows for rows, _ in views], axis=1)
        # all views of a bad record, so that none of them is trained on
        rows[checks != Check.FINE] = 0.0
        yield rows.reshape(len(rows), *work.stored), checks


def encode(
    encoder: Encoder,
    features: Features,
    load: Load,
    batches: Iterable[NDArray[np.int64]],
    threads: int,
) -> Iterator[tuple[Rows, NDArray[np.uint8]]]:
    """Batches of records as rows that can be stored, and what is wrong with each.

    A batch always fills the encoder's size: a network may round a record in another way among
    fewer.

    Args:
        encoder: of the network.
        features: how rows are stored.
        load: a record ready for the network, or a blank and the reason.
        batches: numbers of records, at most the encoder's size each.
        threads: that loading shares out.

    Yields:
        Of each batch its rows, (batch, width) of the stored type with padding, and the `Check` of
        each row. Rows that failed a check are zero.
    """
    checks: deque[NDArray[np.uint8]] = deque()
    spans = spans_of(stored_depths(encoder.facts)) or [(0, encoder.width)]

    shape = (encoder.batch, *encoder.blank.shape)

    def fill(rows: NDArray[np.int64], batch: Rows) -> NDArray[np.uint8]:
        """Fill a batch with records ready for the network, and up to its size with blanks. Returns
        what is wrong with each."""
        loaded = [load(int(row)) for row in rows]
        loaded += [(encoder.blank, Check.UNLABELLED)] * (encoder.batch - len(loaded))
        np.stack([array for array, _ in loaded], out=batch)
        return np.array([check for _, check in loaded], np.uint8)

    def load_batch(rows: NDArray[np.int64]) -> tuple[Rows, NDArray[np.uint8]]:
        batch = np.empty(shape, encoder.blank.dtype)
        return batch, fill(rows, batch)

    def arrays() -> Iterator[Rows]:
        for batch, seen in (
            ordered_arrays(fill, batches, threads, shape, encoder.blank.dtype)
            if encoder.on_gpu
            else ordered_map(load_batch, batches, threads)
        ):
            checks.append(seen)
            yield batch

    for rows in encoder.encode(arrays()):
        yield _finish(rows, checks.popleft(), features, spans)


def _load(item: int, work: Shard) -> tuple[Rows, Check]:
    """One view of a record ready for the network, or a blank and the reason."""
    row, view = divmod(item, work.views)
    if work.manifest.labels[row] < 0:
        return work.encoder.blank, Check.UNLABELLED
    index = int(work.manifest.index[row])
    content = work.source.read(index) if index < len(work.source.labels) else b""
    if content_digest(content, work.units_key) != work.manifest.contents[row].tobytes():
        raise _changed(work.source)
    return load_content(content, work.encoder, view + int(work.manifest.spans[row]))


def _changed(source: Source) -> Refused:
    return Refused(
        f"{source.name} changed after its manifest was made, so this is a new version of the "
        "lineage. Run prepare_dataset again; the lineage and its budget stay the same."
    )


def load_content(content: Any, encoder: Encoder, number: int = 0) -> tuple[Rows, Check]:
    """A record's content ready for the network; a blank and the reason where its decoder fails.

    Args:
        content: bytes of a file or a text, pixels, or a row of numbers.
        encoder: of the network.
        number: of the view, or of the span; 0 is the record itself.
    """
    try:
        return encoder.load(content, number), Check.FINE
    except Exception:  # whatever a decoder trips over in hostile bytes, it is this record's alone
        return encoder.blank, Check.UNREADABLE


def _finish(
    rows: Rows,
    checks: NDArray[np.uint8],
    features: Features,
    spans: Sequence[tuple[int, int]],
) -> tuple[Rows, NDArray[np.uint8]]:
    """Rows as they are stored. Those that failed a check are zero.

    A depth that is finite and beyond the type's range is scaled down as a whole. So it keeps its
    direction, and nobody else's row is touched.
    """
    if features.stored in ("uint8", "int32"):
        return rows * (checks == Check.FINE)[:, None].astype(rows.dtype), checks
    rows = rows.astype(np.float64)
    finite = np.isfinite(rows).all(axis=1)
    checks = np.where((checks == Check.FINE) & ~finite, Check.NOT_FINITE, checks).astype(np.uint8)
    rows[checks != Check.FINE] = 0.0
    for start, end in spans:
        depth = rows[:, start:end]
        peak = np.abs(depth).max(axis=1, keepdims=True)
        depth *= np.minimum(
            1.0, float(np.finfo(features.dtype).max) / np.where(peak > 0, peak, 1.0)
        )
        if features.normalize:
            norm = np.linalg.norm(depth, axis=1, keepdims=True)
            depth /= np.where(norm > 0, norm, 1.0)
    return rows.astype(features.dtype), checks


def _entry_type(work: Shard) -> np.dtype:
    """The bytes of one batch in the journal: its rows, their checks, and a seal."""
    size = work.encoder.batch
    return np.dtype(
        [
            ("features", work.features.stored, (size, *work.stored)),
            ("checks", np.uint8, size),
            ("seal", np.uint8, 32),
        ]
    )


def _entry_seal(entry: NDArray[Any], number: int, key: bytes) -> bytes:
    """An HMAC over a batch and its place, so that entries cannot be swapped either."""
    return hmac.digest(
        key,
        number.to_bytes(8, "little") + entry["features"].tobytes() + entry["checks"].tobytes(),
        "sha256",
    )


def _count_sound(journal: BinaryIO, work: Shard, seal: bytes) -> int:
    """How many of the journal's first entries are whole, and of this very work."""
    entries = _entries(journal, work)
    for number, entry in enumerate(entries):
        if not hmac.compare_digest(entry["seal"].tobytes(), _entry_seal(entry, number, seal)):
            return number
    return len(entries)


def _entries(journal: BinaryIO, work: Shard) -> NDArray[Any]:
    """The journal's whole entries, mapped into memory."""
    kind = _entry_type(work)
    count = min(os.fstat(journal.fileno()).st_size // kind.itemsize, len(work.batches))
    return np.memmap(journal, kind, "r", shape=(count,)) if count else np.empty(0, kind)


def _gather(journal: BinaryIO, work: Shard) -> tuple[Stored, NDArray[np.uint8]]:
    """The journal's rows and their checks, without the padding of batches."""
    entries = _entries(journal, work)
    whole = [slice(len(rows)) for rows in work.batches]
    checks = np.concatenate(
        [entry["checks"][keep] for entry, keep in zip(entries, whole, strict=True)]
        or [np.empty(0, np.uint8)]
    )
    pieces = (entry["features"][keep] for entry, keep in zip(entries, whole, strict=True))
    return sealed.Blocks((len(work.rows), *work.stored), work.features.stored, pieces), checks


def _read_blocks(work: Shard, blocks: TableBlocks, folder: Path) -> tuple[Stored, NDArray[Any]]:
    """The rows of a table and their checks: the table is read once from end to end, and each row
    goes where the manifest has it. That takes seconds, so it begins anew after a kill."""
    assert work.views == 1, "numbers have no views"
    known, rows, width = work.manifest, work.rows, work.encoder.width
    kind = np.dtype([("place", np.int64), ("features", work.features.stored, (width,))])
    checks = np.full(len(rows), Check.UNLABELLED, np.uint8)
    places, rows_met = _places_of(work, folder), 0
    piles = Piles(kind, len(rows), folder)

    def wanted(some: slice) -> NDArray[np.bool_]:
        mask = np.zeros(some.stop - some.start, bool)
        known_here = places[some] > 0
        mask[: len(known_here)] = known_here
        return mask

    with progress("extracting features", len(rows)) as advance:
        for indices, features_read in blocks.features(wanted):
            rows_met += len(indices)
            at = places[indices] - 1
            if np.any(row_digests(features_read, work.units_key) != known.contents[rows[at]]):
                raise _changed(work.source)
            finished = np.empty(len(at), kind)
            finished["place"] = at
            for start in range(0, len(at), ROWS_AT_ONCE):
                some = slice(start, min(start + ROWS_AT_ONCE, len(at)))
                count = some.stop - start
                batch = np.zeros((ROWS_AT_ONCE, width))
                batch[:count] = features_read[some]
                fine = np.full(ROWS_AT_ONCE, Check.FINE, np.uint8)
                done, seen = _finish(batch, fine, work.features, [(0, width)])
                finished["features"][some], checks[at[some]] = done[:count], seen[:count]
            piles.add_at(at, finished)
            for array in (places, rows, known.contents):
                forget_pages(array)
            advance(len(at))
    if rows_met != np.count_nonzero(places):
        raise _changed(work.source)

    def in_order() -> Iterator[Rows]:
        for places_here, pile in zip(piles.ranges(), piles, strict=True):
            table = np.zeros((len(places_here), width), work.features.stored)
            table[pile["place"] - places_here.start] = pile["features"]
            yield table

    return sealed.Blocks((len(rows), width), work.features.stored, in_order()), checks


def _places_of(work: Shard, folder: Path) -> NDArray[np.int64]:
    """Of each row of a table its place among the work's rows, counted from 1; 0 where it is none
    that counts."""
    known, rows = work.manifest, work.rows
    pieces = [*blocks_of(len(rows))]
    count = 1 + max((int(known.index[rows[some]].max()) for some in pieces), default=-1)
    places = mapped_zeros(count, np.int64, folder)
    for some in pieces:
        counts = known.labels[rows[some]] >= 0
        index = known.index[rows[some]][counts]
        places[index] = 1 + some.start + np.flatnonzero(counts)
        for array in (places, known.labels, known.index):
            forget_pages(array)
    return places


def _write(
    output: Path,
    features: Stored,
    checks: NDArray[np.uint8],
    work: Shard,
    attrs: Attrs,
    key: bytes,
) -> None:
    """Rows of features, sealed as one cache with what stands beside them."""
    known, rows = work.manifest, work.rows

    def labels() -> Iterator[NDArray[np.int64]]:
        for some in blocks_of(len(rows)):
            # a record that failed a check counts as nothing, whatever its label says
            yield np.where(checks[some] == Check.FINE, known.labels[rows[some]], -1)

    arrays: dict[str, NDArray[Any] | sealed.Blocks] = {
        "features": features,
        "labels": sealed.Blocks((len(rows),), np.int64, labels()),
        "record_ids": sealed.rows_of(known.record_ids, rows),
        "units": sealed.rows_of(known.units, rows),
        "checks": checks,
    }
    if known.groups is not None:
        arrays["groups"] = sealed.rows_of(known.groups, rows)
    sealed.write(output, arrays, attrs, key)
