"""What a source holds, counted for its owner's eyes.

Counts are private: they go to the operator's terminal when asked for, or into the private folder.
Nothing of them may reach a log, a result or an exit code (contract: no-tell); a run counts under
noise instead (jobs/count_units.py).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.config.features_sections import LARGEST_IMAGE
from dpladder.config.label_sets import NUMBER, Labels, members_by_class, place_in_range
from dpladder.data import texts
from dpladder.data.equal_rows import WAYS_OUT, equal_rows, too_many_equal
from dpladder.data.images import decode
from dpladder.data.parallel import cores, ordered_map
from dpladder.data.prepare import PARTS, Survey
from dpladder.data.reading import missing, place_of
from dpladder.data.sources import Source
from dpladder.data.stops import reason_to_stop
from dpladder.learn.counts import units_by_class
from dpladder.privacy.ids import id_order, id_set, starts_of_equal
from dpladder.privacy.piles import blocks_of, forget_pages, large_id_set, pieces_of
from dpladder.wording import first_of, printable

UNREAD = "row does not parse: a quote that is not closed, or more cells than the header has"
HEIF = (
    '. Convert them first: for f in *.heic; do heif-convert "$f" "${f%.*}.jpg"; done (libheif), or '
    "on macOS: sips -s format jpeg *.heic --out converted"
)
EXAMPLES = 3  # examples of each problem
LABELS = 20  # unknown labels that are listed
MEASURED = {"features": "length of a feature vector", "texts": "characters of a text"}
Place = str | int
Seen = float | str  # the size of a record, or what is wrong with it


def class_counts(labels: NDArray[np.int64], classes: int, most: Labels = 1) -> NDArray[np.int64]:
    """How many records are of each class, in their order; a record of several counts for each.

    Exact, and so private.

    Args:
        labels: (records,), a number for each record's set of classes; below 0 it is of none.
        classes: how many there are.
        most: classes of a record, or `many` where each is a finding.

    Returns:
        int64 (classes,).
    """
    return np.array(
        [np.count_nonzero(members) for members in members_by_class(labels, classes, most)], np.int64
    )


def count_units(ids: NDArray[np.uint8]) -> int:
    """How many different units these ids name. Exact, and so private.

    Args:
        ids: uint8 (records, 16).
    """
    return len(id_set(ids))


@dataclass(frozen=True)
class Census:
    """Exact counts of what a source holds. Private.

    Attributes:
        source: as the config calls it.
        rows: of the source.
        records: that are kept, whether they count or not.
        units: that any row names.
        usable: units with a record that counts.
        counting: the records of each part that count.
        units_of_parts: units with a record in each part that counts.
        parts: the same by class, of which a record may have several.
        labels: those that name no class, and how often.
        problems: where records stand that count as nothing, or twice, by what is wrong with them.
        groups: records of each part that count, by group, where groups are declared.
        sizes: how long feature vectors are, how large images: least, median, most.
        equal: rows that are lost as copies of another one, though nobody said that they are.
        stops: whether a run would stop before it spends anything.
        shut: links that are not followed.
        skipped: files of other suffixes, by suffix.
        unnamed: images that no row of a table is about.
        shared: what rows of a table call images of several folders.
        spread: rows of a table that go over several lines.
        targets: of each part where the numbers lie that are learnt, in words.
        narrow: whether nearly all of them lie in a tenth of their range.
    """

    source: str
    rows: int
    records: int
    units: int
    usable: int
    counting: Mapping[str, int]
    units_of_parts: Mapping[str, int]
    parts: Mapping[str, Mapping[str, int]]
    labels: Mapping[str, int]
    problems: Mapping[str, Sequence[Place]]
    groups: Mapping[str, Mapping[str, int]]
    sizes: str = "not looked at"
    equal: int = 0
    stops: bool = False
    shut: Sequence[Place] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    unnamed: Sequence[Place] = ()
    shared: Sequence[Place] = ()
    spread: Sequence[Place] = ()
    targets: Mapping[str, str] = field(default_factory=dict)
    narrow: bool = False


def census(surveyed: Survey, lost: Collection[int] = ()) -> Census:
    """Count what a survey read, without a second look at the records.

    Args:
        surveyed: what the source holds.
        lost: rows that are known to count as nothing, whatever their label.

    Returns:
        The counts, without sizes, and without whether a run would stop.
    """
    source, rows = surveyed.source, surveyed.rows
    counts = np.asarray(rows.label >= 0)
    forget_pages(rows.label)
    if lost:
        counts &= ~np.isin(rows.index, [*lost])
    if surveyed.dataset.unit.pooled:  # one record each, under one label
        counting = np.flatnonzero(counts)
        counting = counting[id_order(rows.unit[counting])]
        counts[:] = False
        counts[counting[starts_of_equal(rows.unit[counting])]] = True
    parts = {place: part for place, part in enumerate(PARTS) if np.any(rows.part == place)}
    by_part = {place: counts & (rows.part == place) for place in parts}
    target = surveyed.dataset.target
    least, largest = (0.0, 0.0) if target is None else target.range
    numbers = {  # the targets that count, cut to their range
        parts[place]: least + place_in_range(rows.label[some]) * (largest - least)
        for place, some in by_part.items()
        if target is not None and some.any()
    }
    return Census(
        source=source.name,
        rows=len(source.labels),
        records=len(rows),
        units=surveyed.units,
        usable=_units_among(surveyed, counts),
        counting={
            parts[place]: int(np.count_nonzero(some))
            for place, some in by_part.items()
            if some.any()
        },
        units_of_parts={
            parts[place]: _units_among(surveyed, some)
            for place, some in by_part.items()
            if some.any()
        },
        parts={parts[place]: _counts_by_class(surveyed, some) for place, some in by_part.items()},
        labels=dict(Counter(surveyed.unknown).most_common()),
        groups={
            parts[place]: _counts_by_group(_pieces(rows.group, some), surveyed.grouping.names)
            for place, some in by_part.items()
        }
        if surveyed.grouping is not None
        else {},
        problems=_group_problems(
            (
                *((UNREAD, place) for place in source.unread),
                *((check, place_of(source, index)) for index, check in surveyed.problems),
            )
        ),
        equal=equal_rows(surveyed),
        shut=tuple(map(str, source.shut)),
        unnamed=tuple(map(str, source.unnamed)),
        shared=tuple(source.shared),
        spread=tuple(source.spread),
        targets={
            part: ", ".join(f"{value:.4g}" for value in np.quantile(some, (0.05, 0.5, 0.95)))
            for part, some in numbers.items()
        },
        narrow=target is not None
        and any(
            float(np.ptp(np.quantile(some, (0.025, 0.975))))
            < (target.range[1] - target.range[0]) / 10
            for some in numbers.values()
        ),
        skipped=source.skipped,
    )


def _units_among(surveyed: Survey, some: NDArray[np.bool_]) -> int:
    """How many units the records that a mask names are of."""
    units = pieces_of(surveyed.rows.unit, some)
    return len(large_id_set(units, len(some), surveyed.folder))


def _pieces(column: NDArray[np.int64], some: NDArray[np.bool_]) -> Iterator[NDArray[np.int64]]:
    """What records that a mask names have in a column, which may be too large for memory."""
    for block in blocks_of(len(column)):
        yield column[block][some[block]]
        forget_pages(column)


def _counts_by_class(surveyed: Survey, some: NDArray[np.bool_]) -> dict[str, int]:
    """The records that a mask names, class by class; of numbers that are predicted none."""
    if surveyed.dataset.labels == NUMBER:
        return {}
    counts = np.zeros(len(surveyed.names), np.int64)
    for labels in _pieces(surveyed.rows.label, some):
        counts += class_counts(labels, len(surveyed.names), surveyed.dataset.labels)
    return dict(zip(surveyed.names, counts.tolist(), strict=True))


def _counts_by_group(pieces: Iterable[NDArray[np.int64]], names: Sequence[str]) -> dict[str, int]:
    """Records by group."""
    counts = np.zeros(len(names), np.int64)
    for groups in pieces:
        counts += np.bincount(groups[groups >= 0], minlength=len(names))
    return dict(zip(names, counts.tolist(), strict=True))


def _group_problems(problems: Iterable[tuple[str, Place]]) -> dict[str, list[Place]]:
    """Where each problem occurs, in the order in which problems were met."""
    grouped: dict[str, list[Place]] = {}
    for check, place in problems:
        grouped.setdefault(check, []).append(place)
    return grouped


def check_every_record(
    surveyed: Survey,
    largest: int = LARGEST_IMAGE,
    seen: Sequence[Seen] | None = None,
    expected: int | None = None,
) -> Census:
    """Count with a look into every record: what cannot be read, and how large the others are.

    Args:
        surveyed: what the source holds.
        largest: features.largest_image, in pixels.
        seen: what such a look saw of each row, where there was one (data/check_cache.py).
        expected: how many units train by declaration; None: all that there are should count.
    """
    source = surveyed.source
    seen = [*_record_sizes(source, largest)] if seen is None else seen
    bad = {index: size for index, size in enumerate(seen) if isinstance(size, str)}
    sizes = np.array([size for size in seen if not isinstance(size, str)], np.float64)
    counted = census(surveyed, bad)
    what = MEASURED.get(source.kind, "shorter side of an image")
    reasons = (
        ", ".join(f"{value:.4g}" for value in np.quantile(sizes, (0, 0.5, 1)))
        if len(sizes)
        else "none"
    )
    return replace(
        counted,
        problems={
            **counted.problems,
            **_group_problems((why, place_of(source, index)) for index, why in bad.items()),
        },
        stops=_stops(surveyed, bad, expected),
        sizes=f"{what}, least, median, most: {reasons}",
    )


def _stops(surveyed: Survey, lost: Collection[int], expected: int | None) -> bool:
    """Whether a run would stop on this data, as it would find without noise.

    A run cannot use this exact answer: whoever chooses configs could put the data on the line
    (data/stops.py).
    """
    dataset, rows = surveyed.dataset, surveyed.rows
    counts = rows.label >= 0
    if expected is not None:
        counts &= rows.part == PARTS.index("train")
    if lost:
        counts &= ~np.isin(rows.index, [*lost])
    units, labels = rows.unit[counts], rows.label[counts]
    by_class = units_by_class(units, labels, len(surveyed.names), dataset.labels)
    seen = surveyed.units if expected is None else expected
    return reason_to_stop(by_class, seen, dataset.stops, dataset.labels) is not None


def _record_sizes(source: Source, largest: int) -> Iterator[Seen]:
    """For each row its size, or what is wrong with it, several at a time."""
    return ordered_map(
        lambda index: size_of(source, source.read(index), largest),
        range(len(source.labels)),
        cores(),
    )


def size_of(source: Source, content: Any, largest: int) -> Seen:
    """The size of a record of this content, or what is wrong with it in words.

    Args:
        source: tells what kind of records it holds.
        content: one record's.
        largest: pixels that an image may have.

    Returns:
        The length of a feature vector, the shorter side of an image in pixels, or the characters of
        a text.
    """
    if isinstance(content, bytes) and not content:
        return missing(source)
    if source.bags and isinstance(content, bytes):
        return f"bag cannot be used: {content.decode()}"
    if source.kind == "features":
        (size,) = sizes_of(np.asarray(content, np.float64)[None])
        return size
    if source.kind == "texts":
        try:
            return float(len(texts.decode(content)))
        except ValueError as error:
            return f"text cannot be read: {error}"
    try:
        return float(min(decode(content, largest).size))
    except Exception as error:  # whatever a decoder trips over
        # without the place in memory that Pillow names the file by
        reason = str(error).partition(" <_io")[0].strip() or type(error).__name__
        return f"image cannot be decoded: {reason}"


def sizes_of(rows: NDArray[np.float64]) -> list[Seen]:
    """The length of each row of features, or what is wrong with it."""
    return [
        length if math.isfinite(length) and length > 0 else "features are all zero, or not finite"
        for length in np.linalg.norm(rows, axis=1).tolist()
    ]


def lines(totals: Census) -> Iterator[str]:
    """A census in words."""
    yield f"source   {totals.source}"
    yield f"rows     {totals.rows:,}"
    yield f"records  {totals.records:,} are kept"
    yield f"units    {totals.units:,}, of which {totals.usable:,} count"
    yield f"sizes    {totals.sizes}"
    if totals.stops:
        yield (
            "warning  this cannot be what the config means: fewer than half of the units that it "
            "declares count as something"
            + (
                ", or nearly all of them are of one class (dataset.nominal_size, dataset.rare)"
                if any(totals.parts.values())
                else " (dataset.nominal_size)"
            )
            + ". A run stops, of private data where counts under noise can tell (dataset.census)"
        )
    if too_many_equal(totals.rows, totals.equal):
        yield (
            f"warning  {totals.equal:,} of {totals.rows:,} rows equal another one, and a run "
            f"counts equal rows as one record. {WAYS_OUT}"
        )
    for part, counts in totals.parts.items():
        text = first_of([f"{name} {count:,}" for name, count in counts.items()])
        if part in totals.targets:
            text = f"5 %, median and 95 % of the target: {totals.targets[part]}"
        units, records = totals.units_of_parts.get(part, 0), totals.counting.get(part, 0)
        of_units = f" records of {units:,} units" if units < records else ""
        yield f"part     {part}: {records:,}{of_units} that count{': ' if text else ''}{text}"
    if totals.narrow:
        yield (
            "warning  nearly all targets lie in a tenth of dataset.target.range. Noise is as large "
            "as the range, so a narrower one tells more. Take it from what is publicly known, and "
            "never from these records"
        )
    for part, counts in totals.groups.items():
        text = first_of([f"{name} {count:,}" for name, count in counts.items()])
        yield f"groups   {part}, in records: {text}"
    for label, count in [*totals.labels.items()][:LABELS]:
        yield f"label    {label!r} is not in dataset.classes: {count:,} rows"
    if len(totals.labels) > LABELS:
        yield f"label    and {len(totals.labels) - LABELS:,} more that are not in dataset.classes"
    for check, places in totals.problems.items():
        yield f"problem  {check}: {_sample_of_places(places)}"
    if totals.spread:
        yield (
            "spread   rows of several lines, for a cell between quotes holds line ends, each one "
            f"record: {_sample_of_places(totals.spread)}. Where such a row is several people's, "
            "somebody's quote was not doubled: write the table as .jsonl or .parquet"
        )
    for suffix, count in totals.skipped.items():
        how = HEIF if suffix in (".heic", ".heif", ".hif") else ""
        yield f"skipped  {count:,} files ({suffix}) are not read{how}"
    if totals.shared:
        yield (
            "warning  names in the table that images of several folders have: "
            f"{_sample_of_places(totals.shared)}. A row is about all of them, so one person's row "
            "changes what others count as, which no guarantee covers. Name images by their path "
            "(dataset.source.names: path)"
        )
    if totals.unnamed:
        yield f"images   no row of the table is about them: {_sample_of_places(totals.unnamed)}"
    if totals.shut:
        yield (
            "links    not followed, and what they lead to counts as nothing (dataset.links): "
            f"{_sample_of_places(totals.shut)}"
        )


def _sample_of_places(places: Sequence[Place]) -> str:
    """How often something occurs, and the first few places."""
    more = ", ..." if len(places) > EXAMPLES else ""
    return f"{len(places):,} ({', '.join(map(str, places[:EXAMPLES]))}{more})"


def report(totals: Census) -> str:
    """A census in lines of text, printable whatever a file is called."""
    return "".join(f"{printable(line)}\n" for line in lines(totals))
