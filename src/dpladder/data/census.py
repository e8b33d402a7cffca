"""What a source holds, counted for its owner's eyes.

Counts are private: they go to the operator's terminal when asked for, or into the private
folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.config.features_sections import LARGEST_IMAGE
from dpladder.config.label_sets import MANY, Labels, each_class, each_finding
from dpladder.config.wording import printable
from dpladder.data import texts
from dpladder.data.equal_rows import WAYS_OUT, equal_rows, many_equal
from dpladder.data.findings import Findings
from dpladder.data.images import decode
from dpladder.data.parallel import cores, in_order
from dpladder.data.prepare import PARTS, Row, Survey, ids_of, missing, place_of
from dpladder.data.sources import Source, text
from dpladder.data.stops import what_stops

UNREAD = (
    "row does not parse: a quote that is not closed, or more cells than the header has "
    "(dataset.multiline: true where cells hold line ends)"
)
HEIF = (
    '. Convert them first: for f in *.heic; do heif-convert "$f" "${f%.*}.jpg"; done (libheif), or '
    "on macOS: sips -s format jpeg *.heic --out converted"
)
SHOWN = 3  # examples of each problem
LABELS = 20  # unknown labels that are listed
MEASURED = {"features": "length of a feature vector", "texts": "characters of a text"}
Place = str | int
Seen = float | str  # the size of a record, or what is wrong with it


def units_by_class(
    units: NDArray[np.uint8], labels: NDArray[np.int64], classes: int, most: Labels = 1
) -> NDArray[np.int64]:
    """How many units count, and how many of them are of each class; of findings, how many have
    none, some and all.

    Sensitivity: a unit is counted once at most, by the first of its records that counts and by the
    first of that one's classes, whoever else is there. So it adds 1 to the first count and to one
    of the others.
    """
    counting = np.flatnonzero(labels >= 0)
    _, first = np.unique(units[counting], axis=0, return_index=True)
    of_units = labels[counting[first]]
    if most == MANY:
        found = [*each_finding(of_units, classes)]
        some = np.any([present for present, _ in found], axis=0)
        lacking = np.any([known & ~present for present, known in found], axis=0)
        cells = [~some, some & lacking, ~lacking]
    else:
        cells, left = [], np.ones(len(of_units), bool)
        for own in each_class(of_units, classes, most):
            cells.append(own & left)
            left &= ~own
    return np.array([len(of_units), *map(np.count_nonzero, cells)], np.int64)


def class_counts(labels: NDArray[np.int64], classes: int, most: Labels = 1) -> NDArray[np.int64]:
    """How many records are of each class."""
    return np.array([np.count_nonzero(own) for own in each_class(labels, classes, most)], np.int64)


def count_units(ids: NDArray[np.uint8]) -> int:
    return len(set(map(bytes, ids)))


@dataclass(frozen=True)
class Census:
    """`counting`: the records of each part that count; `parts`: the same by class, of which a
    record may have several. `problems`: the records that count as nothing, or twice, by what is
    wrong with them. `sizes`: how long feature vectors are, how large images."""

    source: str
    rows: int
    records: int
    units: int
    usable: int  # units with a record that counts
    counting: Mapping[str, int]
    parts: Mapping[str, Mapping[str, int]]
    labels: Mapping[str, int]  # those that name no class
    problems: Mapping[str, Sequence[Place]]
    # the same of each part by group, where groups are declared
    groups: Mapping[str, Mapping[str, int]]
    sizes: str = "not looked at"
    equal: int = 0  # rows that are lost as copies of another one, though nobody said that they are
    stops: bool = False  # whether a run would stop before it spends anything
    shut: Sequence[Place] = ()  # links that are not followed
    skipped: Mapping[str, int] = field(default_factory=dict)  # files of other suffixes
    unnamed: Sequence[Place] = ()  # images that no row of a table is about


def census(found: Survey, lost: Collection[int] = ()) -> Census:
    """From what a survey read, without a second look at the records. `lost`: rows that are known to
    count as nothing, whatever their label."""
    source = found.source
    counting = [row for row in found.kept if row.label >= 0 and row.index not in lost]
    if found.dataset.unit.pooled:  # one record each, under one label
        counting = [*{row.unit: row for row in counting}.values()]
    unknown = Counter(name for label in source.labels for name in _named_none(found, label))
    return Census(
        source=source.name,
        rows=len(source.labels),
        records=len(found.kept),
        units=len(found.units),
        usable=len({row.unit for row in counting}),
        counting=Counter(PARTS[row.part] for row in counting),
        parts={
            part: dict(zip(found.names, _by_class(counting, place, found), strict=True))
            for place, part in enumerate(PARTS)
            if any(row.part == place for row in found.kept)
        },
        labels=dict(unknown.most_common()),
        groups=_by_group(found, counting),
        problems=_grouped(
            (check, place_of(source, index))
            for index, check in (*((row, UNREAD) for row in source.unread), *found.problems)
        ),
        equal=equal_rows(found),
        shut=tuple(map(str, source.shut)),
        unnamed=tuple(map(str, source.unnamed)),
        skipped=source.skipped,
    )


def _named_none(found: Survey, label: object) -> Iterator[str]:
    """What a record's label says that is no class."""
    if isinstance(found.class_of, Findings):
        yield from found.class_of.others(label)
    elif found.class_of(label) < 0:
        yield text(label)


def _by_class(counting: Sequence[Row], part: int, found: Survey) -> list[int]:
    labels = np.array([row.label for row in counting if row.part == part], np.int64)
    counts: list[int] = class_counts(labels, len(found.names), found.dataset.labels).tolist()
    return counts


def _by_group(found: Survey, counting: Iterable[Row]) -> dict[str, dict[str, int]]:
    if found.grouping is None:
        return {}
    counts = Counter((row.part, row.group) for row in counting)
    return {
        part: {name: counts[place, group] for group, name in enumerate(found.grouping.names)}
        for place, part in enumerate(PARTS)
        if any(row.part == place for row in found.kept)
    }


def _grouped(problems: Iterator[tuple[str, Place]]) -> dict[str, list[Place]]:
    grouped: dict[str, list[Place]] = {}
    for check, place in problems:
        grouped.setdefault(check, []).append(place)
    return grouped


def looked_into(
    found: Survey,
    largest: int = LARGEST_IMAGE,
    seen: Sequence[Seen] | None = None,
    expected: int | None = None,
) -> Census:
    """With a look into every record: what cannot be read, and how large the others are. `largest`:
    features.largest_image. `seen`: what such a look saw, where there was one. `expected`: how many
    units train by declaration; None: all that there are should count."""
    source = found.source
    seen = [*_each(source, largest)] if seen is None else seen
    bad = {index: size for index, size in enumerate(seen) if isinstance(size, str)}
    sizes = np.array([size for size in seen if not isinstance(size, str)], np.float64)
    counted = census(found, bad)
    what = MEASURED.get(source.kind, "shorter side of an image")
    told = (
        ", ".join(f"{value:.4g}" for value in np.quantile(sizes, (0, 0.5, 1)))
        if len(sizes)
        else "none"
    )
    return replace(
        counted,
        problems={
            **counted.problems,
            **_grouped((why, place_of(source, index)) for index, why in bad.items()),
        },
        stops=_stops(found, bad, expected),
        sizes=f"{what}, least, median, most: {told}",
    )


def _stops(found: Survey, lost: Collection[int], expected: int | None) -> bool:
    """As a run would find it without noise."""
    dataset, train = found.dataset, PARTS.index("train")
    kept = [
        row
        for row in found.kept
        if row.label >= 0 and row.index not in lost and (expected is None or row.part == train)
    ]
    units = ids_of(row.unit for row in kept)
    labels = np.array([row.label for row in kept], np.int64)
    counts = units_by_class(units, labels, len(found.names), dataset.labels)
    seen = len(found.units) if expected is None else expected
    return what_stops(counts, seen, dataset.stops, dataset.labels) is not None


def _each(source: Source, largest: int) -> Iterator[Seen]:
    return in_order(
        lambda index: size_of(source, source.read(index), largest),
        range(len(source.labels)),
        cores(),
    )


def size_of(source: Source, content: Any, largest: int) -> Seen:
    """The size of a record of this content, or what is wrong with it."""
    if isinstance(content, bytes) and not content:
        return missing(source)
    if source.bags and isinstance(content, bytes):
        return f"bag cannot be used: {content.decode()}"
    if source.kind == "features":
        length = float(np.linalg.norm(np.asarray(content, np.float64)))
        return (
            length if np.isfinite(length) and length > 0 else "features are all zero, or not finite"
        )
    if source.kind == "texts":
        return _characters(content)
    try:
        return float(min(decode(content, largest).size))
    except Exception as error:  # whatever a decoder trips over
        return f"image cannot be decoded: {_reason(error)}"


def _characters(content: bytes) -> Seen:
    try:
        return float(len(texts.decode(content)))
    except ValueError as error:
        return f"text cannot be read: {error}"


def _reason(error: Exception) -> str:
    """What a decoder says, without the place in memory that Pillow names the file by."""
    return str(error).partition(" <_io")[0].strip() or type(error).__name__


def lines(found: Census) -> Iterator[str]:
    """A census in words."""
    yield f"source   {found.source}"
    yield f"rows     {found.rows:,}"
    yield f"records  {found.records:,} are kept"
    yield f"units    {found.units:,}, of which {found.usable:,} count"
    yield f"sizes    {found.sizes}"
    if found.stops:
        yield (
            "warning  this cannot be what the config means: fewer than half of the units that it "
            "declares count as something, or nearly all of them are of one class "
            "(dataset.nominal_size, dataset.rare). A run stops, of private data where counts "
            "under noise can tell (dataset.census)"
        )
    if many_equal(found.rows, found.equal):
        yield (
            f"warning  {found.equal:,} of {found.rows:,} rows equal another one, and a run counts "
            f"equal rows as one record. {WAYS_OUT}"
        )
    for part, counts in found.parts.items():
        told = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        yield f"part     {part}: {found.counting.get(part, 0):,} that count: {told}"
    for part, counts in found.groups.items():
        yield f"groups   {part}: {', '.join(f'{name} {count:,}' for name, count in counts.items())}"
    for label, count in [*found.labels.items()][:LABELS]:
        yield f"label    {label!r} is not in dataset.classes: {count:,} rows"
    if len(found.labels) > LABELS:
        yield f"label    and {len(found.labels) - LABELS:,} more that are not in dataset.classes"
    for check, places in found.problems.items():
        yield f"problem  {check}: {_some(places)}"
    for suffix, count in found.skipped.items():
        how = HEIF if suffix in (".heic", ".heif", ".hif") else ""
        yield f"skipped  {count:,} files ({suffix}) are no records: that is not read{how}"
    if found.unnamed:
        yield f"images   no row of the table is about them: {_some(found.unnamed)}"
    if found.shut:
        yield (
            "links    not followed, and what they lead to counts as nothing (dataset.links): "
            f"{_some(found.shut)}"
        )


def _some(places: Sequence[Place]) -> str:
    more = ", ..." if len(places) > SHOWN else ""
    return f"{len(places):,} ({', '.join(map(str, places[:SHOWN]))}{more})"


def report(found: Census) -> str:
    """Printable, whatever a file is called."""
    return "".join(f"{printable(line)}\n" for line in lines(found))


def contact_sheet(
    found: Survey, side: int = 96, each: int = 10, largest: int = LARGEST_IMAGE
) -> Any:
    """A few images of each class, a row per class, as a run would see them; blank where one cannot
    be decoded."""
    from PIL import Image, ImageDraw, ImageOps

    names = found.names
    rows: dict[int, list[int]] = {label: [] for label in range(-1, len(names))}
    for row in found.kept:
        held = each_class(np.array([row.label]), len(names), found.dataset.labels)
        own = [label for label, is_so in enumerate(held) if is_so[0]]
        for label in own or [-1]:
            if len(rows[label]) < each:
                rows[label].append(row.index)
    sheet = Image.new("RGB", (side * each, (side + 16) * len(rows)), "white")
    for line, (label, indices) in enumerate(rows.items()):
        top = line * (side + 16)
        name = "counts as nothing" if label < 0 else names[label]
        ImageDraw.Draw(sheet).text((2, top + 2), name.encode("ascii", "replace").decode(), "black")
        for place, index in enumerate(indices):
            try:
                image = decode(found.source.read(index), largest)
            except Exception:
                continue
            sheet.paste(ImageOps.contain(image, (side - 2, side - 2)), (place * side, top + 16))
    return sheet
