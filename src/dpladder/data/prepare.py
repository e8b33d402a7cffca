"""The manifest: which record is which, which unit owns it, which part it lies in, and what version
of the data this is.

Everything about a unit follows from that unit's own records and a key, never from its position or
its neighbours. So one unit more or less changes one unit's rows in one part.

**Copies.** Where a source has no ids, a record *is* all that its source says of it. That is its
content, and what stands with it: its row in a table, its folder, its values in other arrays. It
does not matter which of these the config reads (`Source.line`). So two experiments with other
labels, columns, groups or classes part the same people alike. Exact copies are one record and count
once, for three reasons. The map from a list to its set moves neighbours to neighbours. Randomness
drawn from ids stays independent between rows. Two rows under one id would fall into a Poisson batch
together, which its amplification does not allow. And an image that someone stored twice is
protected as the one image it is. Data in which equal rows are different people has ids to say so.

**Conflicts.** Rows of one unit that claim one id but differ count as nothing, all of them. So one
row more adds a record or takes one away. It never puts one in the place of another, which would
move a sum twice as far as is charged. A record's id holds within its unit: no user's rows meet
another user's, whatever ids they claim.

**Missing records.** A file or a text that is missing or empty is a record by its place alone, and
counts as nothing. By their content all of them would be one record for each label, and nobody would
see that they are many.

**Spans.** A document that is cut into spans stands here first as one row. So copies and conflicts
are found as above, and its part follows from the document. Then each span is a record, by its
document's id and its place. All of them are the document's unit, or its user's, and where there are
more than the cap, the same keyed ids choose among them. That is random to everybody without the
key, whatever other units there are.

**Pools.** With `dataset.unit.pool` all records of a user that count get one label (`pooled_label`),
and data/cache.py makes one row of theirs. None is over a cap then: a unit is one record.

**Versions.** A version of the data is a number that the operator declares (`dataset.version`), and
no digest of it leaves. Parts of different versions add up: a record may be edited between them, or
come under another id, and lie in another part. Within a version nobody does. The ledger notes which
units there were when the version was first asked; of what is read later those alone count
(jobs/features.py). So a unit is in the part where it was first or counts as nothing, whoever else
came or went. One unit more or less still changes one unit's rows in one part. When a file of the
source was last written may show (plan/follows.fingerprint), and never what changed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpladder.config.dataset_sections import Dataset, Split
from dpladder.config.label_sets import MANY, Labels, number_of, pooled_label
from dpladder.config.shift import Grouping, Matching
from dpladder.data import sealed
from dpladder.data.datasets import class_count, class_index, classes, open_source
from dpladder.data.files import write_private
from dpladder.data.findings import Findings
from dpladder.data.layout import Layout, as_attrs, from_attrs, layout_of
from dpladder.data.parallel import cores, ordered_map
from dpladder.data.shift import class_mapping
from dpladder.data.sources import Source, labels_of_record, text
from dpladder.data.spans import Cutter
from dpladder.errors import BadInput
from dpladder.progress import progress

ClassOf = Callable[[object], int]
Digests = Callable[[Source, bytes], Iterator[bytes]]  # of each record in order, under this key
Part = Literal["train", "validation", "test", "sample", "unlabelled"]
PARTS: tuple[Part, ...] = get_args(Part)
PUBLIC_PARTS: tuple[Part, ...] = ("sample", "unlabelled")  # parts whose labels tell nothing of them
SPELLINGS = {
    "train": 0,
    "training": 0,
    "validation": 1,
    "valid": 1,
    "val": 1,
    "validate": 1,
    "test": 2,
}
ID_BYTES = 16
COPY = "copy of another record"
EMPTY = "holds no records. Check the path, and for a folder the suffixes of its files."
TOO_MANY = "label is not in dataset.classes, or it has more than dataset.labels"
WRONG_LABEL: dict[Labels, str] = {
    1: "label is not in dataset.classes",
    MANY: "no class is known, or one is not 1, 0, -1 or blank",
}


@dataclass(frozen=True)
class Keys:
    """Home's keys for the three purposes of this room, and the one that seals its files.

    Each purpose has a key of its own, so that a digest of one kind is never one of another kind.

    Attributes:
        units: names units, records and contents, and ranks the records of a unit.
        split: decides which part a unit lies in. Nobody without it can choose ids that fall into
            one part.
        commitment: makes the digest of a version of the data, and of its set of units.
        cache: seals manifests and caches (data/sealed.py).
    """

    units: bytes
    split: bytes
    commitment: bytes
    cache: bytes


@dataclass(frozen=True)
class Manifest:
    """A version of a lineage, sorted by record id. Private.

    Arrays have an entry, or a row, for each record that is kept. Records that count as nothing are
    among them, under the label -1.

    Attributes:
        source: the config's name of it.
        layout: where the source holds what belongs to a record.
        classes: how many there are; a public constant.
        commitment: a keyed digest of ids, units, contents, labels, parts and groups, in hex.
        everybody: a keyed digest of all units of the source, whatever the config reads of them.
        record_ids: uint8 (records, 16).
        units: uint8 (records, 16), whose each record is.
        contents: uint8 (records, 16), keyed digests. A source that changed since does not match
            them.
        labels: (records,), the class, or the number of a set of classes (config/label_sets.py).
        parts: (records,), places in `PARTS`.
        index: (records,), the row of the source, or its document's.
        spans: (records,), which span of the document; 0 where texts are not cut into spans.
        tokenizer: a digest of what cut documents; empty where nothing did.
        digest: the file's seal, which names these exact bytes.
        groups: (records,), places among the declared groups; None where none are declared.
        attrs: what the file says of itself.
    """

    source: str
    layout: Layout
    classes: int
    commitment: str
    everybody: str
    record_ids: NDArray[np.uint8]
    units: NDArray[np.uint8]
    contents: NDArray[np.uint8]
    labels: NDArray[np.int64]
    parts: NDArray[np.uint8]
    index: NDArray[np.int64]
    spans: NDArray[np.int64]
    tokenizer: str
    digest: str
    groups: NDArray[np.int64] | None = None
    attrs: sealed.Attrs = field(default_factory=dict)

    def rows(self, part: Part) -> NDArray[np.int64]:
        """The rows of one part, in the manifest's order. How many they are is private."""
        return np.flatnonzero(self.parts == PARTS.index(part))


@dataclass(frozen=True)
class Row:
    """One row of a source, by what its owner and a key say of it.

    Attributes:
        unit: whose it is, a keyed digest of 16 bytes.
        record: which record it is, within its unit: rows with one `record` are copies or conflict.
        rank: a keyed digest of content, part, label and group. Rows of one record that differ in it
            conflict.
        content: a keyed digest of what is stored.
        label: below 0 where the row counts as nothing.
        part: a place in `PARTS`.
        index: its row in the source.
        group: a place among the declared groups; -1 where it is of none.
        span: which span of a document it is.
    """

    unit: bytes
    record: bytes
    rank: bytes
    content: bytes
    label: int
    part: int
    index: int
    group: int = -1
    span: int = 0


@dataclass(frozen=True, eq=False)
class Survey:
    """What a source holds, as a run would take it. Private.

    Attributes:
        source: the records, as their owner stored them.
        dataset: the config's section.
        rows: those that are kept, sorted by record id.
        problems: what is wrong with which row of the source, sorted.
        units: every unit that any row names, kept or not. A row without an id in which nothing is a
            number is a unit here, though one of them alone is kept.
        class_of: from a label to the place of its class among `names`.
        names: of the classes, in their order.
        everybody: all units, whatever the config reads of them.
        grouping: where the records' groups stand; None where none are declared.
    """

    source: Source
    dataset: Dataset
    rows: Sequence[Row]
    problems: Sequence[tuple[int, str]]
    units: Set[bytes]
    class_of: ClassOf
    names: tuple[str, ...]
    everybody: Set[bytes]
    grouping: Grouping | None = None


@dataclass(frozen=True)
class Sorter:
    """Finds a record's group and whether its part takes it, by that record alone.

    Attributes:
        names: of the groups, in the declared order.
        trained: the groups that alone are taken into the parts that trainings see; all where none
            is named.
    """

    names: tuple[str, ...] = ()
    trained: tuple[str, ...] = ()

    @cached_property
    def _places(self) -> dict[str, int]:
        return {text(name): place for place, name in enumerate(self.names)}

    def place(self, group: object) -> int:
        """The place of a group, as given, among the names; -1 where it is none of them."""
        return -1 if group is None else self._places.get(text(group), -1)

    def takes(self, group: int, part: int) -> bool:
        """Whether a record of this group belongs in this part: by its own group and part alone. One
        of no group stays, and counts as nothing."""
        elsewhere = PARTS[part] not in ("train", "validation") or group < 0
        return elsewhere or not self.trained or self.names[group] in self.trained


def survey(
    dataset: Dataset,
    keys: Keys,
    public: Part | None = None,
    matching: Matching | None = None,
    cutting: Cutter | None = None,
    digests: Digests | None = None,
) -> Survey:
    """Read a dataset, or its source declared public for the part `public`, all of it in that part.

    Every row is read once and no row decides about another unit's. So one unit more or less changes
    one unit's rows in one part (contract: disjoint-parts, unbreakable).

    Args:
        dataset: the config's section.
        keys: home's, without which no id can be told from another.
        public: the part whose public source is read; None for the lineage itself.
        matching: of a further test, how labels find their class and records their group.
        cutting: how documents become spans, where they do.
        digests: who reads the records' contents, if somebody else does. `dpladder check` keeps what
            it saw.

    Raises:
        BadInput: the source cannot be opened as the config says, or lacks a column that the config
            needs. A public source without a record is refused too; a private one never, for that
            would tell the last person from nobody.
    """
    name: str | None = dataset.source if public is None else getattr(dataset, f"public_{public}")
    if name is None:
        raise BadInput(
            f"dataset.public_{public} is not set, so there is no public {public} source to prepare."
        )
    grouping = _grouping(dataset, public, matching)
    labelled = class_count(classes(dataset, name)) > 1
    source = open_source(name, layout_of(dataset, grouping, labelled))
    _check(source, dataset, public)
    problems: list[tuple[int, str]] = []
    units: set[bytes] = set()
    everybody: set[bytes] = set()
    class_of, names = _classes(dataset, source.name, matching)
    trained = () if dataset.group is None or matching is not None else dataset.group.train
    sorter = None if grouping is None else Sorter(grouping.names, trained)
    contents = (digests or _digests)(source, keys.units)
    rows = _rows(
        source, contents, dataset, class_of, keys, public, problems, units, everybody, sorter
    )
    pool = _pool(dataset, len(names), problems) if dataset.unit.pooled else None
    cap = dataset.unit.cap if public is None and pool is None else None
    spans = None if cutting is None else _spans(source, cutting, keys.units)
    rows_kept = sorted(_select_rows(rows, cap, problems, spans, pool), key=lambda row: row.record)
    return Survey(
        source, dataset, rows_kept, sorted(problems), units, class_of, names, everybody, grouping
    )


def units_digest(units: Iterable[bytes], keys: Keys) -> str:
    """A keyed digest of a set of units, in hex of 32 digits. Home notes it to see whether the same
    units come again; it tells nothing without the key."""
    return blake2b(b"".join(sorted(units)), key=keys.commitment, digest_size=16).hexdigest()


def _grouping(dataset: Dataset, public: Part | None, matching: Matching | None) -> Grouping | None:
    """Where a source's groups stand: a further test's are its own, and of a sample nobody asks."""
    if matching is not None:
        return matching.grouping
    return None if dataset.group is None or public in PUBLIC_PARTS else dataset.group.grouping


def _classes(
    dataset: Dataset, name: str, matching: Matching | None
) -> tuple[ClassOf, tuple[str, ...]]:
    """How labels find their class, and what the classes are called: a number where they have no
    names."""
    if matching is not None:
        class_of, count = class_mapping(matching)
        names = matching.names or tuple(map(str, range(count)))
    else:
        known = classes(dataset, name)
        names = tuple(map(str, range(known) if isinstance(known, int) else known))
        class_of = class_index(known)
    return _label_of(class_of, len(names), dataset), names


def _label_of(class_of: ClassOf, count: int, dataset: Dataset) -> ClassOf:
    """From a record's label as given to its class, or to the number of its classes where it may be
    of several. It is -1 where one of them is none, or they are more."""
    most = dataset.labels
    if most == 1:
        return class_of
    if most == MANY:
        return Findings(class_of, count, dataset)

    def number(label: object) -> int:
        numbers = {class_of(one) for one in labels_of_record(label, count)}
        return number_of(numbers, count) if -1 not in numbers and len(numbers) <= most else -1

    return number


def prepare(
    dataset: Dataset,
    keys: Keys,
    path: Path,
    diagnostics: Path,
    public: Part | None = None,
    matching: Matching | None = None,
    cutting: Cutter | None = None,
) -> Survey:
    """Write the manifest of what a survey finds, sealed, and the diagnostics beside it.

    Args:
        dataset: the config's section.
        keys: home's.
        path: of the manifest, in the private folder.
        diagnostics: where it is noted which record failed which check, for the owner's eyes.
        public: the part whose public source is read; None for the lineage itself.
        matching: of a further test, how labels find their class.
        cutting: how documents become spans, where they do.

    Returns:
        What was found. Private.

    Raises:
        BadInput: as in `survey`.
    """
    surveyed = survey(dataset, keys, public, matching, cutting)
    rows, source = surveyed.rows, surveyed.source
    columns: dict[str, NDArray[Any]] = {
        "record_ids": ids_of(row.record for row in rows),
        "units": ids_of(row.unit for row in rows),
        "contents": ids_of(row.content for row in rows),
        "labels": np.array([row.label for row in rows], np.int64),
        "parts": np.array([row.part for row in rows], np.uint8),
    }
    if surveyed.grouping is not None:
        columns["groups"] = np.array([row.group for row in rows], np.int64)
    commitment = blake2b(
        b"".join(array.tobytes() for array in columns.values()), key=keys.commitment, digest_size=32
    )
    attrs: sealed.Attrs = {
        "kind": "manifest",
        "source": source.name,
        **as_attrs(layout_of(surveyed.dataset, surveyed.grouping)),
        "classes": len(surveyed.names),
        "commitment": commitment.hexdigest(),
        "units": units_digest(surveyed.everybody, keys),
        "tokenizer": "" if cutting is None else cutting.sha256,
        **({"labels": MANY} if dataset.labels == MANY else {}),
        **({"pool": dataset.unit.pool} if dataset.unit.pooled else {}),
    }
    write_diagnostics(diagnostics, source, surveyed.problems)
    places = {
        "index": np.array([row.index for row in rows], np.int64),
        "spans": np.array([row.span for row in rows], np.int64),
    }
    sealed.write(path, columns | places, attrs, keys.cache)
    return surveyed


def read_manifest(path: Path, key: bytes) -> Manifest:
    """A manifest as it was sealed.

    Raises:
        BadInput: it is damaged, another home's, or no manifest.
    """
    file = sealed.read(path, key)
    if file.attrs.get("kind") != "manifest":
        raise BadInput(f"{path} is not a manifest. Run prepare_dataset again.")
    count = int(file.attrs["classes"])
    return Manifest(
        source=str(file.attrs["source"]),
        layout=from_attrs(file.attrs, labelled=count > 1),
        classes=count,
        commitment=str(file.attrs["commitment"]),
        everybody=str(file.attrs["units"]),
        tokenizer=str(file.attrs["tokenizer"]),
        digest=file.digest,
        attrs=file.attrs,
        **file.arrays,
    )


# Letters, then up to six digits: 17, row-17, P00017.
NUMBER_OF_A_ROW = re.compile(r"\D{0,8}0*\d{1,6}(\.0)?")


def numbered_units(surveyed: Survey) -> set[bytes]:
    """The units whose id could be the number of a row in any table, which says nothing of who they
    are."""
    source = surveyed.source
    column = source.users if surveyed.dataset.unit.by == "user" else source.ids
    return {
        row.unit
        for row in surveyed.rows
        if NUMBER_OF_A_ROW.fullmatch(_text_or_empty(column, row.index)) is not None
    }


def content_digest(content: Any, key: bytes) -> bytes:
    """A keyed digest of what a record says, of 16 bytes.

    It is the same for a row of float32 as for its exact copy in float64. So a table saved in
    another type makes no new people. Pixels keep their type, for 8 and 16 bits show different
    images.
    """
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
    """Which records failed which check, for the owner's eyes. Written also when empty: its presence
    tells nothing."""
    lines = [
        json.dumps({"record": place_of(source, index), "check": check}) + "\n"
        for index, check in sorted(problems)
    ]
    write_private(path, "".join(lines).encode())


def place_of(source: Source, index: int) -> str | int:
    """Where the owner finds a record: its file, or its row."""
    return str(source.files[index]) if source.files else int(index)


def missing(source: Source) -> str:
    return "text is missing or empty" if source.kind == "texts" else "file is missing or empty"


def _check(source: Source, dataset: Dataset, public: Part | None) -> None:
    """Refuse a source that lacks a column that the config needs, and a public one without any
    record."""
    name = source.name
    if not source.labels and (public is not None or dataset.declared_public):
        # of private data a refusal would tell the last person from nobody
        raise BadInput(f"{name} {EMPTY}")
    if public is None and dataset.unit.by == "user" and source.users is None:
        raise BadInput(
            f"dataset.unit.by is user, but {name} has no user column. Add one (of jsonl, name it "
            "in dataset.columns), or protect records."
        )
    if public is None and dataset.split.rule == "given" and source.parts is None:
        raise BadInput(
            f"dataset.split.rule is given, but {name} has no split column. Add one (of jsonl, name "
            "it in dataset.columns), or use rule: hash."
        )


def _rows(
    source: Source,
    contents: Iterable[bytes],
    dataset: Dataset,
    class_of: ClassOf,
    keys: Keys,
    public: Part | None,
    problems: list[tuple[int, str]],
    units: set[bytes],
    everybody: set[bytes],
    sorter: Sorter | None = None,
) -> Iterator[Row]:
    """Every record with its identity; what is wrong with one is noted and costs that one only. One
    of a group that is not trained on is not there, where a training would see it."""
    nothing, blank = content_digest(b"", keys.units), _blank(source, keys.units)
    part_of = _part_rule(source, dataset.split, keys.split, public)
    owned = source.users is not None if dataset.unit.pooled else public is None
    by_user = owned and dataset.unit.by == "user"
    for index, content in enumerate(contents):
        id_text, lost = _text_or_empty(source.ids, index), content == nothing
        label = -1 if lost else class_of(source.labels[index])
        if lost:
            problems.append((index, missing(source)))
            content = _place_key(source, index, keys.units)
        group = (
            -1 if sorter is None or source.groups is None else sorter.place(source.groups[index])
        )
        of_group = () if group < 0 else (str(group).encode(),)
        unit_id = prf(
            keys.units,
            *((b"id", _name(id_text)) if id_text else _content_key(source, index, content)),
        )
        user = _text_or_empty(source.users, index) if by_user else ""
        unit = (
            prf(keys.units, b"user", _name(user)) if user else prf(keys.units, b"record", unit_id)
        )
        part = part_of(unit, index)
        everybody.add(unit)
        if sorter is not None and part >= 0 and not sorter.takes(group, part):
            continue
        anonymous = not id_text and not user
        units.add(_place_key(source, index, keys.units) if anonymous and content == blank else unit)
        if part < 0:
            problems.append((index, "split names no part"))
            continue
        if source.ids is not None and not (id_text or source.some_have_ids):
            problems.append((index, "id is missing"))
            label = -1
        if by_user and not user:
            problems.append((index, "user is missing"))
            label = -1
        elif label < 0 and not lost and (id_text or source.ids is None or source.some_have_ids):
            problems.append((index, WRONG_LABEL.get(dataset.labels, TOO_MANY)))
        if sorter is not None and group < 0:
            problems.append((index, "group is none of the declared ones"))
            label = -1
        rank = prf(keys.units, b"rank", content, bytes([part]), str(label).encode(), *of_group)
        yield Row(
            unit, prf(keys.units, b"row", unit, unit_id), rank, content, label, part, index, group
        )


def _content_key(source: Source, index: int, content: bytes) -> tuple[bytes, ...]:
    """What a record without an id is known by. Two people may well label one image differently."""
    if source.line is None:
        return b"content", content, _name(text(source.labels[index]))
    return (
        (b"line", source.line(index))
        if source.line_is_all
        else (b"line", source.line(index), content)
    )


def _place_key(source: Source, index: int, key: bytes) -> bytes:
    """What a record is known by that says nothing."""
    return prf(key, b"missing", str(place_of(source, index)).encode("utf-8", "surrogateescape"))


def _blank(source: Source, key: bytes) -> bytes | None:
    """The content of a row of features in which nothing is a number. Such rows are no copies: a
    run would go on where all of a table is lost, for decimal commas or a column of texts."""
    if source.kind != "features":
        return None
    return content_digest(np.full(source.width, np.nan), key)


def _digests(source: Source, key: bytes, batch: int = 256) -> Iterator[bytes]:
    """Content digests in the source's order; files are read by several threads."""
    count = len(source.labels)

    def digests(start: int) -> list[bytes]:
        indices = range(start, min(start + batch, count))
        return [content_digest(source.read(index), key) for index in indices]

    with progress("reading records", count) as advance:
        for digests_of_batch in ordered_map(digests, range(0, count, batch), cores()):
            yield from digests_of_batch
            advance(len(digests_of_batch))


def _part_rule(
    source: Source, split: Split, key: bytes, public: Part | None
) -> Callable[[bytes, int], int]:
    """From a unit, and its record's index for parts as given, to the unit's part; -1 for none."""
    if public is not None:
        return lambda unit, index: PARTS.index(public)
    if split.rule == "given":
        return lambda unit, index: SPELLINGS.get(_text_or_empty(source.parts, index).lower(), -1)
    return lambda unit, index: _hashed_part(unit, split, key)


def _text_or_empty(column: Sequence[Any] | None, index: int) -> str:
    """A value of an optional column as text; empty where there is none."""
    value = None if column is None else column[index]
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else text(value)


def _name(text_: str) -> bytes:
    """A name's bytes. Half a pair of surrogates is no character, but as good a name as another."""
    return text_.encode("utf-8", "surrogatepass")


def _hashed_part(unit: bytes, split: Split, key: bytes) -> int:
    """A unit's part: where its keyed hash falls in [0, 1), cut at the declared fractions."""
    place = int.from_bytes(prf(key, b"part", unit)[:8], "little") / 2**64
    if place < split.held_out:
        return PARTS.index("test")
    return PARTS.index("validation" if place < split.held_out + split.validation else "train")


Into = Callable[[Row], Iterator[Row]]
Pool = Callable[[Sequence[Row]], Sequence[Row]]


def _spans(source: Source, cutting: Cutter, key: bytes) -> Into:
    """From a document to its spans, each a record by its document's id and its place."""

    def spans(row: Row) -> Iterator[Row]:
        for place in range(cutting.count(source.read(row.index))):
            record = prf(key, b"span", row.record, place.to_bytes(8, "little"))
            yield replace(row, record=record, span=place)

    return spans


def _pool(dataset: Dataset, count: int, problems: list[tuple[int, str]]) -> Pool:
    """From a user's records to the same under one label, which follows from them alone."""

    def pool(rows: Sequence[Row]) -> Sequence[Row]:
        labelled = [row for row in rows if row.label >= 0]
        label = pooled_label(
            [row.label for row in labelled], dataset.unit.conflicts, count, dataset.labels
        )
        why = "labels of its user's records differ"
        if len({row.group for row in labelled}) > 1:
            label, why = -1, "records of its user are of several groups"
        problems.extend((row.index, why) for row in labelled if label < 0)
        return [row if row.label < 0 else replace(row, label=label) for row in rows]

    return pool


def _select_rows(
    rows: Iterable[Row],
    cap: int | None,
    problems: list[tuple[int, str]],
    spans: Into | None = None,
    pool: Pool | None = None,
) -> Iterator[Row]:
    """One row per record and at most `cap` per unit, all in one part, chosen by keyed hash among
    the unit's own. Those that count as nothing come last: a missing one is known by its place
    alone, which other units move, so it must decide nothing."""
    ordered = sorted(rows, key=lambda row: (row.unit, row.record, row.rank, row.index))
    for _, rows_of_unit in groupby(ordered, lambda row: row.unit):
        records = []
        for _, copies in groupby(rows_of_unit, lambda row: row.record):
            first, *further = copies
            if any(row.rank != first.rank for row in further):
                problems += [
                    (row.index, "differs from another row with its id") for row in (first, *further)
                ]
                continue
            records.append(first)
            problems += [(row.index, COPY) for row in further]
        if not records:
            continue
        records.sort(key=_sort_key)
        together = [row for row in records if row.part == records[0].part]
        if spans is not None:
            together = sorted((span for row in together for span in spans(row)), key=_sort_key)
        yield from islice(together if pool is None else pool(together), cap)
        problems += [
            (row.index, "in another part than its unit")
            for row in records
            if row.part != records[0].part
        ]
        problems += [
            (row.index, "over its unit's cap") for row in together[cap:] if cap is not None
        ]


def _sort_key(row: Row) -> tuple[bool, bytes]:
    """Records that count first, then by keyed id: random to everybody without the key, and the same
    whoever else is there."""
    return row.label < 0, row.record


def ids_of(values: Iterable[bytes]) -> NDArray[np.uint8]:
    """Digests of 16 bytes each, one below the other: uint8 (records, 16)."""
    return np.frombuffer(b"".join(values), np.uint8).reshape(-1, ID_BYTES)
