"""What a key says of each row of a source: whose it is, which record, of which class and part.

Of each row one keyed digest of 512 bits is taken. Its unit, its record and its place in the split
are cut from that.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.config.dataset_sections import Dataset
from dpladder.config.label_sets import MANY, NUMBER, Labels
from dpladder.data.columns import number_of
from dpladder.data.digests import (
    WIDE,
    content_digest,
    ids_of,
    prf,
    row_digests,
    wide_digests,
)
from dpladder.data.findings import Findings
from dpladder.data.parallel import cores, ordered_map
from dpladder.data.rows import KIND, Problems, Rows, rows_of_piles
from dpladder.data.sources import Source, Stretch, text
from dpladder.privacy.ids import ID_BYTES, Ids, id_set, words_of
from dpladder.privacy.piles import ID, ArrayOnDisk, Piles
from dpladder.progress import progress

ClassOf = Callable[[object], int]
SPELLINGS = {
    "train": 0,
    "training": 0,
    "validation": 1,
    "valid": 1,
    "val": 1,
    "validate": 1,
    "test": 2,
}
TRAIN, VALIDATION, TEST = 0, 1, 2  # places in PARTS (prepare.py)
TOO_MANY = "label is not in dataset.classes, or it has more than dataset.labels"
WRONG_LABEL: dict[Labels, str] = {
    1: "label is not in dataset.classes",
    MANY: "no class is known, or one is not 1, 0, -1 or blank",
    NUMBER: "target is missing, or no finite number",
}
BELOW = "target lies below its range, and counts as its least number"
ABOVE = "target lies above its range, and counts as its largest number"
UNIT_KIND = np.dtype([("unit", *ID), ("named", np.bool_)])
BATCH = 256  # records of files that a thread reads at a time

# Letters, then up to six digits: 17, row-17, P00017.
NUMBER_OF_A_ROW = re.compile(r"\D{0,8}0*\d{1,6}(\.0)?")


@dataclass(frozen=True)
class Names:
    """What records have of a role, as texts; empty where one has nothing.

    Attributes:
        codes: of each record which text it has.
        texts: different ones, or all.
    """

    codes: NDArray[np.int64]
    texts: Sequence[str]

    def are(self, function: Callable[[str], Any], kind: Any) -> NDArray[Any]:
        """What a function makes of each record's text."""
        return np.array([function(text) for text in self.texts], kind)[self.codes]


class RowReader:
    """Rows of a source as they are read. What is wrong with one is noted, and costs that one only.

    Args:
        dataset: the config's section.
        source: the records.
        class_of: from a label to its class, or to -1.
        key: home's, for units.
        public: the place in `PARTS` where all records lie, of a source declared public; None where
            a rule parts them.
        group_of: from a group as given to its place, or to -1; None where none are declared.
        trained: of each group whether the parts that trainings see take it; empty where they take
            all.
        folder: private, where rows are piled up.
    """

    def __init__(
        self,
        dataset: Dataset,
        source: Source,
        class_of: ClassOf,
        key: bytes,
        public: int | None,
        group_of: Callable[[object], int] | None = None,
        trained: Sequence[bool] = (),
        folder: Path | None = None,
    ) -> None:
        self.dataset, self.source, self.class_of, self.key = dataset, source, class_of, key
        self.public, self.group_of, self.trained = public, group_of, trained
        owned = source.users is not None if dataset.unit.pooled else public is None
        self.by_user = owned and dataset.unit.by == "user"
        self.problems = Problems()
        self.unknown: Counter[str] = Counter()
        self._folder = folder
        self._rows, self._everybody = (
            Piles(kind, source.largest_count, folder) for kind in (KIND, UNIT_KIND)
        )
        self._blanks = 0
        self._nothing = _as_ids(content_digest(b"", key))
        # Rows of features in which nothing is a number are no copies: a run would go on where all
        # of a table is lost, for decimal commas or a column of texts.
        is_row = source.kind == "features"
        blank = content_digest(np.full(source.width, np.nan), key) if is_row else None
        self._blank = None if blank is None else _as_ids(blank)

    def add(self, stretch: Stretch, contents: Ids) -> None:
        """Take the next records of the source.

        Args:
            stretch: of them.
            contents: a digest of each one's content.
        """
        index, note = np.arange(stretch.start, stretch.end), self.problems.note
        lost = np.all(contents == self._nothing, axis=1)
        label = self._labels(stretch)
        if lost.any():
            note(missing(self.source), index[lost])
            label[lost] = -1
            contents = contents.copy()
            contents[lost] = ids_of(
                place_key(self.source, row, self.key) for row in index[lost].tolist()
            )
        group = self._groups(stretch)
        ids, users = _names(stretch, "id"), _names(stretch, "user")
        numbered = users if self.dataset.unit.by == "user" else ids
        users = users if self.by_user else None
        has_id, has_user = (
            np.zeros(len(stretch), bool) if names is None else names.are(bool, bool)
            for names in (ids, users)
        )
        unit, record, place = self._identify(stretch, contents, ids, users)
        part = self._parts(stretch, place)

        taken = np.ones(len(stretch), bool)
        if self.trained:
            seen = (part == TRAIN) | (part == VALIDATION)
            taken = ~seen | (group < 0) | np.append(self.trained, False)[group]
        blank = np.zeros(len(stretch), bool)
        if self._blank is not None:
            blank = taken & ~has_id & ~has_user & np.all(contents == self._blank, axis=1)
        self._blanks += int(blank.sum())
        everybody = np.empty(len(stretch), UNIT_KIND)
        everybody["unit"], everybody["named"] = unit, taken & ~blank
        self._everybody.add(unit, everybody)
        note("split names no part", index[taken & (part < 0)])
        taken &= part >= 0

        right = ~lost
        if self.source.ids is not None and not self.source.some_have_ids:
            note("id is missing", index[taken & ~has_id])
            label[~has_id] = -1
            right &= has_id
        if self.by_user:
            note("user is missing", index[taken & ~has_user])
            label[~has_user] = -1
            right &= has_user
        wrong = taken & right & (label < 0)
        note(WRONG_LABEL.get(self.dataset.labels, TOO_MANY), index[wrong])
        if self.group_of is not None:
            note("group is none of the declared ones", index[taken & (group < 0)])
            label[group < 0] = -1

        is_number = np.zeros(len(stretch), bool)
        if numbered is not None:
            is_number = numbered.are(lambda name: bool(NUMBER_OF_A_ROW.fullmatch(name)), bool)
        span = np.zeros(len(stretch), np.int64)
        of_part = part.astype(np.int8)
        rows = Rows(unit, record, contents, label, of_part, index, group, span, is_number)
        rows.keep(taken)
        self._rows.add(rows.unit, rows.table())

    def rows(self) -> Iterator[Rows]:
        """The rows that were taken, a pile of units at a time; a unit's in the order of the
        source."""
        return rows_of_piles(self._rows)

    def everybody(self) -> tuple[Ids, int]:
        """All units, each once and sorted; and how many units the rows name that are read. Rows
        without an id in which nothing is a number are a unit each."""
        everybody, count = ArrayOnDisk(ID, self._folder), self._blanks
        for pile in self._everybody:
            units, counts = id_set(pile["unit"]), pile["named"]
            everybody.append(units)
            count += len(units if counts.all() else id_set(pile["unit"][counts]))
        return everybody.array(), count

    def _labels(self, stretch: Stretch) -> NDArray[np.int64]:
        """The class of each record, or its number; -1 where it has none."""
        distinct = stretch.values("label")
        if distinct is None:
            return np.full(len(stretch), self.class_of(None))
        codes, values = distinct
        if self.dataset.target is not None:
            numbers = [number_of(value) for value in values]
            self._note_beyond(stretch.start, np.array(numbers)[codes], self.dataset.target.range)
            return np.array([self.class_of(number) for number in numbers], np.int64)[codes]
        counts = np.bincount(codes, minlength=len(values)).tolist()
        for value, count in zip(values, counts, strict=True):
            for name in self._unknown_names(value) if count else ():
                self.unknown[name] += count
        return np.array([self.class_of(value) for value in values], np.int64)[codes]

    def _note_beyond(
        self, start: int, numbers: NDArray[np.float64], range_: tuple[float, float]
    ) -> None:
        """Note which records' targets are cut to their range."""
        for why, beyond in ((BELOW, numbers < range_[0]), (ABOVE, numbers > range_[1])):
            self.problems.note(why, start + np.flatnonzero(beyond & np.isfinite(numbers)))

    def _unknown_names(self, label: object) -> Iterator[str]:
        """What a record's label says that is no class."""
        if isinstance(self.class_of, Findings):
            yield from self.class_of.unknown_names(label)
        elif self.class_of(label) < 0:
            yield text(label)

    def _groups(self, stretch: Stretch) -> NDArray[np.int64]:
        """The place of each record's group; -1 where it is of none."""
        distinct = stretch.values("group")
        if self.group_of is None or distinct is None:
            return np.full(len(stretch), -1)
        codes, values = distinct
        return np.array([self.group_of(value) for value in values], np.int64)[codes]

    def _identify(
        self, stretch: Stretch, contents: Ids, ids: Names | None, users: Names | None
    ) -> tuple[Ids, Ids, NDArray[np.uint64]]:
        """Of each record whose it is, which record within its unit, and its unit's place among all
        that a split cuts."""
        digests = np.empty((len(stretch), WIDE), np.uint8)
        has_id = np.zeros(len(stretch), bool) if ids is None else ids.are(bool, bool)
        if ids is not None and has_id.any():
            of_id = wide_digests(self.key, b"id", map(_name_bytes, ids.texts))
            digests[has_id] = of_id[ids.codes[has_id]]
        if not has_id.all():
            kind, said = self._identifying_bytes(stretch, contents)
            chosen = compress(said, ~has_id) if has_id.any() else said
            digests[~has_id] = wide_digests(self.key, kind, chosen)
        unit, record, place = (digests[:, start : start + ID_BYTES] for start in (0, 16, 32))
        if users is not None and (has_user := users.are(bool, bool)).any():
            of_user = wide_digests(self.key, b"user", map(_name_bytes, users.texts))[users.codes]
            whose = of_user[has_user, :ID_BYTES]
            within = np.hstack([whose, unit[has_user]])
            unit[has_user], place[has_user] = whose, of_user[has_user, 32:48]
            record[has_user] = ids_of(prf(self.key, b"row", both.tobytes()) for both in within)
        return unit, record, words_of(place)[0]

    def _identifying_bytes(self, stretch: Stretch, contents: Ids) -> tuple[bytes, Iterable[Any]]:
        """What each record without an id is known by, and of what kind that is. Two people may well
        label one image differently."""
        lines = stretch.lines()
        if lines is not None and self.source.line_is_all:
            return b"line", lines
        content = (one.tobytes() for one in contents)
        if lines is not None:
            pairs = zip(content, lines, strict=True)
            return b"line and content", (b"".join(pair) for pair in pairs)
        labels = _names(stretch, "label")
        if labels is None:
            return b"content", content
        names = [_name_bytes(name) for name in labels.texts]
        places = zip(content, labels.codes.tolist(), strict=True)
        return b"content and label", (one + names[code] for one, code in places)

    def _parts(self, stretch: Stretch, place: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The part of each record: where its unit's digest falls in [0, 1), cut at the declared
        fractions, or as the source says. -1 where that is none."""
        if self.public is not None:
            return np.full(len(stretch), self.public)
        split = self.dataset.split
        if split.rule == "given":
            names = _names(stretch, "split")
            if names is None:
                return np.full(len(stretch), -1)
            return names.are(lambda name: SPELLINGS.get(name.lower(), -1), np.int64)
        share = place / 2.0**64
        held_out = share < split.held_out + split.validation
        return np.where(share < split.held_out, TEST, np.where(held_out, VALIDATION, TRAIN))


def read_contents(source: Source, key: bytes) -> Iterator[tuple[Stretch, Ids]]:
    """A source's records in order, some at a time, with digests of their contents; files are read
    by several threads."""
    with progress("reading records", source.likely_count) as advance:
        if source.blocks is not None:
            for block in source.blocks:
                stretch = Stretch(source, block.start, block.start + len(block), block)
                yield stretch, row_digests(block.features, key)
                advance(len(block))
            return

        count = len(source.labels)

        def digests(start: int) -> tuple[Stretch, Ids]:
            stretch = Stretch(source, start, min(start + BATCH, count))
            rows = range(stretch.start, stretch.end)
            return stretch, ids_of(content_digest(source.read(row), key) for row in rows)

        for stretch, contents in ordered_map(digests, range(0, count, BATCH), cores()):
            yield stretch, contents
            advance(len(stretch))


def place_of(source: Source, index: int) -> str | int:
    """Where the owner finds a record: its file, or its row."""
    return str(source.files[index]) if source.files else int(index)


def missing(source: Source) -> str:
    """What is wrong with a record without content, in words."""
    return "text is missing or empty" if source.kind == "texts" else "file is missing or empty"


def place_key(source: Source, index: int, key: bytes) -> bytes:
    """What a record is known by that says nothing."""
    return prf(key, b"missing", _name_bytes(str(place_of(source, index))))


def _names(stretch: Stretch, role: str) -> Names | None:
    """What records have of a role, as texts; None where the source holds none."""
    distinct = stretch.values(role)
    return (
        None
        if distinct is None
        else Names(distinct[0], [_text_or_empty(one) for one in distinct[1]])
    )


def _text_or_empty(value: object) -> str:
    """A value as text; empty where there is none."""
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else text(value)


def _name_bytes(name: str) -> bytes:
    """A name's bytes. Half a pair of surrogates is no character, but as good a name as another."""
    return name.encode("utf-8", "surrogatepass")


def _as_ids(digest: bytes) -> Ids:
    return np.frombuffer(digest, np.uint8)
