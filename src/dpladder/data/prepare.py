"""The manifest: which record is which, which unit owns it, which part it lies in, and what version of the data this is.

Everything about a unit follows from that unit's own records and a key, never from its position or its neighbours, so
one unit more or less changes one unit's rows in one part.

**Copies.** A record without an id of its own *is* its content: exact copies are one record and count once. The map from
a list to its set moves neighbours to neighbours, randomness drawn from record ids stays independent between rows (two
rows under one id would fall into a Poisson batch together, which its amplification does not allow), and an image that
someone stored twice is protected as the one image it is. Data in which equal rows are different people has ids to say
so. Of rows that claim one identity but differ, the one with the smallest keyed hash stays.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpladder.config.model import Dataset, Split
from dpladder.data import sealed
from dpladder.data.datasets import class_count, class_index, classes, open_source
from dpladder.data.files import write_private
from dpladder.data.parallel import cores, in_order
from dpladder.data.progress import progress
from dpladder.data.sources import Source, text
from dpladder.errors import BadInput

Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = ("train", "validation", "test")
SPELLINGS = {"train": 0, "training": 0, "validation": 1, "valid": 1, "val": 1, "test": 2}
ID_BYTES = 16


@dataclass(frozen=True)
class Keys:
    """Home's keys for the three purposes of this room, and the one that seals its files."""

    units: bytes
    split: bytes
    commitment: bytes
    cache: bytes


@dataclass(frozen=True)
class Manifest:
    """A version of a lineage, sorted by record id. Private."""

    source: str
    classes: int
    commitment: str
    record_ids: NDArray[np.uint8]
    units: NDArray[np.uint8]
    contents: NDArray[np.uint8]
    labels: NDArray[np.int64]
    parts: NDArray[np.uint8]
    index: NDArray[np.int64]
    digest: str

    def rows(self, part: Part) -> NDArray[np.int64]:
        return np.flatnonzero(self.parts == PARTS.index(part))


@dataclass(frozen=True)
class _Row:
    unit: bytes
    record: bytes
    rank: bytes
    content: bytes
    label: int
    part: int
    index: int


def prepare(dataset: Dataset, keys: Keys, path: Path, diagnostics: Path, public: Part | None = None) -> None:
    """Write the manifest of a dataset, or of its source declared public for the part `public`, all of it in that part."""
    name = {None: dataset.source, "test": dataset.public_test, "validation": dataset.public_validation}[
        public
    ]
    if name is None:
        raise BadInput(
            f"dataset.public_{public} is not set, so there is no public {public} source to prepare."
        )
    source = open_source(name)
    _check(source, dataset, public)
    problems: list[tuple[int, str]] = []
    rows = _rows(source, dataset, keys, public, problems)
    kept = sorted(
        _chosen(rows, dataset.unit.cap if public is None else None, problems), key=lambda row: row.record
    )
    columns: dict[str, NDArray[Any]] = {
        "record_ids": _ids(row.record for row in kept),
        "units": _ids(row.unit for row in kept),
        "contents": _ids(row.content for row in kept),
        "labels": np.array([row.label for row in kept], np.int64),
        "parts": np.array([row.part for row in kept], np.uint8),
    }
    commitment = blake2b(
        b"".join(array.tobytes() for array in columns.values()), key=keys.commitment, digest_size=32
    )
    attrs: sealed.Attrs = {
        "kind": "manifest",
        "source": name,
        "classes": class_count(classes(dataset, name)),
        "commitment": commitment.hexdigest(),
    }
    write_diagnostics(diagnostics, source, problems)
    index = np.array([row.index for row in kept], np.int64)
    sealed.write(path, columns | {"index": index}, attrs, keys.cache)


def read_manifest(path: Path, key: bytes) -> Manifest:
    file = sealed.read(path, key)
    if file.attrs.get("kind") != "manifest":
        raise BadInput(f"{path} is not a manifest. Run prepare_dataset again.")
    return Manifest(
        source=str(file.attrs["source"]),
        classes=int(file.attrs["classes"]),
        commitment=str(file.attrs["commitment"]),
        digest=file.digest,
        **file.arrays,
    )


def content_digest(content: Any, key: bytes) -> bytes:
    """A keyed digest of what a record says, the same for a matrix of float32 as for its exact copy in float64."""
    if isinstance(content, bytes):
        return prf(key, b"file", content)
    array = np.ascontiguousarray(content, "<f8" if content.ndim == 1 else None)
    return prf(key, b"array", f"{array.dtype.str}{array.shape}".encode(), array.tobytes())


def prf(key: bytes, *parts: bytes) -> bytes:
    """Keyed BLAKE2b, 128 bits, over parts that cannot run into one another."""
    digest = blake2b(key=key, digest_size=ID_BYTES)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


def write_diagnostics(path: Path, source: Source, problems: Iterable[tuple[int, str]]) -> None:
    """Which records failed which check, for the owner's eyes. Written also when empty: its presence tells nothing."""
    lines = [
        json.dumps({"record": str(source.files[index]) if source.files else int(index), "check": check})
        + "\n"
        for index, check in sorted(problems)
    ]
    write_private(path, "".join(lines).encode())


def _check(source: Source, dataset: Dataset, public: Part | None) -> None:
    name = source.name
    if not source.labels:
        raise BadInput(
            f"{name} holds no records. Check the path, and for a folder the suffixes of its images."
        )
    if public is None and dataset.unit.by == "user" and source.users is None:
        raise BadInput(
            f"dataset.unit.by is user, but {name} has no user column. Add one, or protect records."
        )
    if public is None and dataset.split.rule == "given" and source.parts is None:
        raise BadInput(
            f"dataset.split.rule is given, but {name} has no split column. Add one, or use rule: hash."
        )


def _rows(
    source: Source, dataset: Dataset, keys: Keys, public: Part | None, problems: list[tuple[int, str]]
) -> Iterator[_Row]:
    """Every record with its identity; what is wrong with one is noted and costs that one only."""
    class_of = class_index(classes(dataset, source.name))
    part_of = _part_rule(source, dataset.split, keys.split, public)
    by_user = public is None and dataset.unit.by == "user"
    for index, content in enumerate(_digests(source, keys.units)):
        given = _given(source.ids, index)
        own = prf(keys.units, b"id", given.encode()) if given else content
        user = _given(source.users, index) if by_user else ""
        unit = prf(keys.units, b"user", user.encode()) if user else prf(keys.units, b"record", own)
        part = part_of(unit, index)
        label = class_of(source.labels[index])
        if part < 0:
            problems.append((index, "split names no part"))
            continue
        if by_user and not user:
            problems.append((index, "user is missing"))
            label = -1
        elif label < 0:
            problems.append((index, "label is not in dataset.classes"))
        rank = prf(keys.units, b"rank", content, bytes([part]), text(source.labels[index]).encode())
        yield _Row(unit, prf(keys.units, b"row", unit, own), rank, content, label, part, index)


def _digests(source: Source, key: bytes, batch: int = 256) -> Iterator[bytes]:
    """Content digests in the source's order; files are read by several threads."""
    count = len(source.labels)

    def digests(start: int) -> list[bytes]:
        indices = range(start, min(start + batch, count))
        return [content_digest(source.read(index), key) for index in indices]

    with progress("reading records", count) as advance:
        for found in in_order(digests, range(0, count, batch), cores()):
            yield from found
            advance(len(found))


def _part_rule(source: Source, split: Split, key: bytes, public: Part | None) -> Callable[[bytes, int], int]:
    """From a unit, and its record's index for parts as given, to the unit's part; -1 for none."""
    if public is not None:
        return lambda unit, index: PARTS.index(public)
    if split.rule == "given":
        return lambda unit, index: SPELLINGS.get(_given(source.parts, index).lower(), -1)
    return lambda unit, index: _hashed_part(unit, split, key)


def _given(column: Sequence[Any] | None, index: int) -> str:
    """A value of an optional column as text; empty where there is none."""
    value = None if column is None else column[index]
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else text(value)


def _hashed_part(unit: bytes, split: Split, key: bytes) -> int:
    """A unit's part: where its keyed hash falls in [0, 1), cut at the declared fractions."""
    place = int.from_bytes(prf(key, b"part", unit)[:8], "little") / 2**64
    if place < split.test:
        return PARTS.index("test")
    return PARTS.index("validation" if place < split.test + split.validation else "train")


def _chosen(rows: Iterable[_Row], cap: int | None, problems: list[tuple[int, str]]) -> Iterator[_Row]:
    """One row per record and at most `cap` per unit, all in one part, chosen by keyed hash among the unit's own."""
    ordered = sorted(rows, key=lambda row: (row.unit, row.record, row.rank, row.index))
    for _, own in groupby(ordered, lambda row: row.unit):
        records = []
        for _, copies in groupby(own, lambda row: row.record):
            first, *others = copies
            records.append(first)
            problems += [(row.index, "copy of another record") for row in others]
        together = [row for row in records if row.part == records[0].part]
        yield from islice(together, cap)
        problems += [
            (row.index, "in another part than its unit") for row in records if row.part != records[0].part
        ]
        problems += [(row.index, "over its unit's cap") for row in together[cap:] if cap is not None]


def _ids(values: Iterable[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(values), np.uint8).reshape(-1, ID_BYTES)
