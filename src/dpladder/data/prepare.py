"""The manifest: which record is which, which unit owns it, which part it lies in, and what version
of the data this is.

Everything about a unit follows from that unit's own records and a key, never from its position or
its neighbours. So one unit more or less changes one unit's rows in one part.

**Copies.** Where a source has no ids, a record is known by its content and by all that stands with
it: its row in a table, its folder, its values in other arrays, whichever of these the config reads
(`Source.line`). So two experiments with other labels, columns, groups or classes part the same
people alike. Exact copies are one record and count once, for three reasons. The map from a list to
its set moves neighbours to neighbours. Randomness drawn from ids stays independent between rows.
Two rows under one id would fall into a Poisson batch together, which its amplification does not
allow. And an image that someone stored twice is protected as the one image it is. Data in which
equal rows are different people has ids to say so.

**Conflicts.** Rows of one unit that claim one id but differ count as nothing, all of them. So one
row more adds a record or takes one away. It never puts one in the place of another, which would
move a sum twice as far as is charged. A record's id holds within its unit: no user's rows meet
another user's, whatever ids they claim.

**Missing records.** A file or a text that is missing or empty is known by its path or row number
alone, and counts as nothing. By their content all of them would be one record for each label, and
nobody would see that they are many.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpladder.config.dataset_sections import Dataset
from dpladder.config.label_sets import (
    MANY,
    NUMBER,
    number_of,
    number_of_target,
    pooled_label,
)
from dpladder.config.records import Grouping, Matching
from dpladder.data import sealed
from dpladder.data.columns import number_of as number_in_cell
from dpladder.data.datasets import class_count, class_index, classes, open_source
from dpladder.data.digests import ids_of, prf
from dpladder.data.files import private_folder, write_private
from dpladder.data.findings import Findings
from dpladder.data.layout import Layout, as_attrs, from_attrs, layout_of
from dpladder.data.reading import ClassOf, RowReader, place_of, read_contents
from dpladder.data.rows import (
    KIND,
    Problems,
    Rows,
    select_rows,
    sorted_rows,
    unit_slices,
)
from dpladder.data.shift import class_mapping
from dpladder.data.sources import Source, Stretch, labels_of_record, text
from dpladder.data.spans import Cutter
from dpladder.errors import BadInput
from dpladder.privacy.ids import Ids, id_set
from dpladder.privacy.piles import ID, ArrayOnDisk, Piles, blocks_of, forget_pages

# records in order, some at a time, each with a digest of its content under this key
Digests = Callable[[Source, bytes], Iterator[tuple[Stretch, Ids]]]
Part = Literal["train", "validation", "test", "sample", "unlabelled"]
PARTS: tuple[Part, ...] = get_args(Part)
PUBLIC_PARTS: tuple[Part, ...] = ("sample", "unlabelled")  # parts whose labels tell nothing of them
EMPTY = "holds no records. Check the path, and for a folder the suffixes of its files."


@dataclass(frozen=True)
class Keys:
    """Home's keys for the two purposes of this room, and the one that seals its files.

    Each purpose has a key of its own, so that a digest of one kind is never one of another kind.

    Attributes:
        units: names units, records and contents, ranks the records of a unit, and decides which
            part it lies in. Nobody without it can choose ids that fall into one part.
        commitment: makes the digest of a version of the data, and of its set of units.
        cache: seals manifests and caches (data/sealed.py).
    """

    units: bytes
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

    def rows(self, part: Part, folder: Path | None = None) -> NDArray[np.int64]:
        """The rows of one part, in the manifest's order. How many they are is private.

        Args:
            part: its name.
            folder: private, where they lie while they are used.
        """
        rows_of_part = ArrayOnDisk(np.int64, folder)
        for some in blocks_of(len(self.parts)):
            rows_of_part.append(some.start + np.flatnonzero(self.parts[some] == PARTS.index(part)))
        return rows_of_part.array()


@dataclass(frozen=True, eq=False)
class Survey:
    """What a source holds, as a run would take it. Private.

    Attributes:
        source: the records, as their owner stored them.
        dataset: the config's section.
        rows: those that are kept, sorted by record id.
        problems: what is wrong with which row of the source.
        units: how many units any row names, kept or not. A row without an id in which nothing is a
            number is a unit here, though one of them alone is kept.
        class_of: from a label to the place of its class among `names`.
        names: of the classes, in their order.
        everybody: all units, whatever the config reads of them, each once and sorted.
        numbered: the units whose id could be the number of a row in any table, which says nothing
            of who they are; as a set too.
        unknown: labels that name no class, and how often.
        grouping: where the records' groups stand; None where none are declared.
        folder: private, where what is too much for memory may lie for a while.
    """

    source: Source
    dataset: Dataset
    rows: Rows
    problems: Problems
    units: int
    class_of: ClassOf
    names: tuple[str, ...]
    everybody: Ids
    numbered: Ids
    unknown: Mapping[str, int]
    grouping: Grouping | None = None
    folder: Path | None = None


def group_index(names: Sequence[str]) -> Callable[[object], int]:
    """A function from a group, as given, to its place among the names; -1 where it is none of
    them."""
    places = {text(name): place for place, name in enumerate(names)}
    return lambda group: -1 if group is None else places.get(text(group), -1)


def survey(
    dataset: Dataset,
    keys: Keys,
    public: Part | None = None,
    matching: Matching | None = None,
    cutting: Cutter | None = None,
    digests: Digests | None = None,
    folder: Path | None = None,
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
        folder: private, where rows are piled up, which may be too many for memory.

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
    labelled = dataset.target is not None or class_count(classes(dataset, name)) > 1
    source = open_source(name, layout_of(dataset, grouping, labelled))
    _check(source, dataset, public)
    class_of, names = _classes(dataset, source.name, matching)
    trained = () if dataset.group is None or matching is not None else dataset.group.train
    group_of, taken = None, []
    if grouping is not None:
        group_of = group_index(grouping.names)
        taken = [name in trained for name in grouping.names] if trained else []
    place = None if public is None else PARTS.index(public)
    reading = RowReader(dataset, source, class_of, keys.units, place, group_of, taken, folder)
    for stretch, contents in (digests or read_contents)(source, keys.units):
        reading.add(stretch, contents)
    problems = reading.problems
    pool = _pool(dataset, len(names), problems) if dataset.unit.pooled else None
    cap = dataset.unit.cap if public is None and pool is None else None
    spans = None if cutting is None else _spans(source, cutting, keys.units)
    by_record, numbered = Piles(KIND, len(source.labels), folder), ArrayOnDisk(ID, folder)
    for rows in reading.rows():
        select_rows(rows, cap, problems, reading.by_user, spans, pool)
        numbered.append(id_set(rows.unit[rows.numbered]))
        by_record.add(rows.record, rows.table())
    everybody, units = reading.everybody()
    return Survey(
        source,
        dataset,
        sorted_rows(by_record, folder),
        problems,
        units,
        class_of,
        names,
        everybody,
        numbered.array(),
        reading.unknown,
        grouping,
        folder,
    )


def units_digest(units: Ids, keys: Keys) -> str:
    """A keyed digest of a set of units, in hex of 32 digits. Home notes it to see whether the same
    units come again; it tells nothing without the key."""
    return blake2b(units.data, key=keys.commitment, digest_size=16).hexdigest()


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
    if most == NUMBER:
        assert dataset.target is not None, "which sets it (config/load.py)"
        least, largest = dataset.target.range
        return lambda label: number_of_target(number_in_cell(label), least, largest)
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
    surveyed = survey(dataset, keys, public, matching, cutting, folder=private_folder(path.parent))
    rows, source = surveyed.rows, surveyed.source
    columns: dict[str, NDArray[Any]] = {
        "record_ids": rows.record,
        "units": rows.unit,
        "contents": rows.content,
        "labels": rows.label,
        "parts": rows.part.view(np.uint8),
    }
    if surveyed.grouping is not None:
        columns["groups"] = rows.group
    commitment = blake2b(key=keys.commitment, digest_size=32)
    for array in columns.values():
        for some in blocks_of(len(array), array[:1].nbytes):
            commitment.update(array[some].data)
            forget_pages(array)
    attrs: sealed.Attrs = {
        "kind": "manifest",
        "source": source.name,
        **as_attrs(layout_of(surveyed.dataset, surveyed.grouping)),
        "classes": len(surveyed.names),
        "commitment": commitment.hexdigest(),
        "units": units_digest(surveyed.everybody, keys),
        "tokenizer": "" if cutting is None else cutting.sha256,
        **({"labels": dataset.labels} if dataset.labels in (MANY, NUMBER) else {}),
        **({"pool": dataset.unit.pool} if dataset.unit.pooled else {}),
    }
    write_diagnostics(diagnostics, source, surveyed.problems)
    places = {"index": rows.index, "spans": rows.span}
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


def write_diagnostics(path: Path, source: Source, problems: Iterable[tuple[int, str]]) -> None:
    """Which records failed which check, for the owner's eyes. Written also when empty: its presence
    tells nothing."""
    lines = [
        json.dumps({"record": place_of(source, index), "check": check}) + "\n"
        for index, check in problems
    ]
    write_private(path, "".join(lines).encode())


def _check(source: Source, dataset: Dataset, public: Part | None) -> None:
    """Refuse a source that lacks a column that the config needs, and a public one without any
    record."""
    name = source.name
    # a long table is not read for it
    if (public is not None or dataset.declared_public) and not source.labels:
        # of private data a refusal would tell the last person from nobody
        raise BadInput(f"{name} {EMPTY}")
    if public is None and dataset.unit.by == "user" and source.users is None:
        raise BadInput(
            f"dataset.unit.by is user, but {name} has no user column. Name it in "
            "dataset.user, add one, or protect records."
        )
    if public is None and dataset.split.rule == "given" and source.parts is None:
        raise BadInput(
            f"dataset.split.rule is given, but {name} has no split column. Add one (of jsonl, name "
            "it in dataset.columns), or use rule: hash."
        )


def _spans(source: Source, cutting: Cutter, key: bytes) -> Callable[[Rows], None]:
    """Makes a row of each span of a document, known by the document's id and its place."""

    def spans(rows: Rows) -> None:
        counts = np.array(
            [cutting.count(source.read(row)) for row in rows.index.tolist()], np.int64
        )
        rows.keep(np.repeat(np.arange(len(rows)), counts))
        starts = np.repeat(np.cumsum(counts) - counts, counts)
        rows.span = np.arange(len(rows)) - starts
        pairs = zip(rows.record, rows.span.tolist(), strict=True)
        rows.record = ids_of(
            prf(key, b"span", record.tobytes(), place.to_bytes(8, "little"))
            for record, place in pairs
        )

    return spans


def _pool(dataset: Dataset, count: int, problems: Problems) -> Callable[[Rows], None]:
    """Gives a user's records that count one label, which follows from them alone."""

    def pool(rows: Rows) -> None:
        rows.label = rows.label.copy()
        for unit in unit_slices(rows):
            labelled = np.flatnonzero(rows.label[unit] >= 0) + unit.start
            labels = rows.label[labelled].tolist()
            label = pooled_label(labels, dataset.unit.conflicts, count, dataset.labels)
            why = "labels of its user's records differ"
            if len({*rows.group[labelled].tolist()}) > 1:
                label, why = -1, "records of its user are of several groups"
            if label < 0:
                problems.note(why, rows.index[labelled])
            rows.label[labelled] = label

    return pool
