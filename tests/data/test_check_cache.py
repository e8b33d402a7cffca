"""A check that is cut off goes on where it stopped, and looks again at what changed alone."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpladder.config.dataset_sections import Dataset
from dpladder.data.census import check_every_record, report
from dpladder.data.check_cache import BATCH, CheckCache
from dpladder.data.folders import from_folder
from dpladder.data.prepare import Keys, survey
from dpladder.data.sources import Source

KEY = b"u" * 32
KEYS = Keys(KEY, b"c" * 32, b"k" * 32)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for place in range(5 * BATCH):
        path = tmp_path / "photos" / ("cat", "dog")[place % 2] / f"{place:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8), place % 251, np.uint8)).save(path)
    (tmp_path / "photos/cat/broken.png").write_bytes(b"no image")
    return tmp_path / "photos"


class Reads:
    """A source that counts how often it is read, and breaks off after so many reads."""

    def __init__(self, photos: Path, most: int = 10**9) -> None:
        self.count, self.most = 0, most
        source = from_folder(photos)
        self.source: Source = dataclasses.replace(source, read=self._read)
        self._whole = source.read

    def _read(self, index: int) -> bytes:
        self.count += 1
        if self.count > self.most:
            raise KeyboardInterrupt
        return bytes(self._whole(index))


def looked(photos: Path, reads: Reads, largest: int = 2**20) -> tuple[CheckCache, list[bytes]]:
    look = CheckCache(photos.parent / "private/check/looks.jsonl", largest)
    digests = look.digests(reads.source, KEY)
    return look, [row.tobytes() for _, contents in digests for row in contents]


def test_a_check_that_is_cut_off_goes_on_where_it_stopped(photos: Path) -> None:
    total = 5 * BATCH + 1
    with pytest.raises(KeyboardInterrupt):
        looked(photos, Reads(photos, most=total - 5))
    again = Reads(photos)
    look, digests = looked(photos, again)
    assert 0 < again.count < total
    assert look.spared == total - again.count
    whole = Reads(photos)
    (photos.parent / "private/check/looks.jsonl").unlink()
    fresh, found = looked(photos, whole)
    assert whole.count == total
    assert (found, fresh.seen) == (digests, look.seen)


def test_it_looks_again_at_what_changed_and_where_a_rule_changed(photos: Path) -> None:
    looked(photos, Reads(photos))
    same = Reads(photos)
    _, before = looked(photos, same)
    assert same.count == 0
    changed = photos / "cat/0000.png"
    time = changed.stat().st_mtime_ns
    Image.fromarray(np.full((8, 8), 255, np.uint8)).save(changed)
    os.utime(changed, ns=(time, time))  # as a program does that keeps times
    later = Reads(photos)
    _, after = looked(photos, later)
    assert later.count == 1
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 1
    smaller = Reads(photos)
    bounded, _ = looked(photos, smaller, largest=60)
    assert smaller.count == 5 * BATCH + 1
    assert sum("more than 60 pixels" in str(size) for size in bounded.seen) == 5 * BATCH


def test_a_line_cut_short_and_one_of_another_kind_cost_a_look_and_no_more(photos: Path) -> None:
    look, _ = looked(photos, Reads(photos))
    lines = look.path.read_bytes().splitlines(keepends=True)
    look.path.write_bytes(b"".join([b"7\n", b'["a"]\n', *lines[:-1], lines[-1][:20]]))
    again = Reads(photos)
    looked(photos, again)
    assert again.count == 1
    last = Reads(photos)
    looked(photos, last)
    assert last.count == 0


def test_a_link_is_looked_into_each_time_for_its_target_may_change(photos: Path) -> None:
    (photos / "cat/link.png").symlink_to(photos / "dog/0001.png")
    looked(photos, Reads(photos))
    again = Reads(photos)
    looked(photos, again)
    assert again.count == 1


def test_what_is_kept_names_no_file_and_is_its_owners_alone(photos: Path) -> None:
    look, _ = looked(photos, Reads(photos))
    assert look.path.stat().st_mode & 0o777 == 0o600
    assert look.path.parent.stat().st_mode & 0o777 == 0o700
    kept = look.path.read_text()
    assert not any(word in kept for word in ("photos", "cat", "dog", "png"))


def test_the_report_is_the_same_after_a_second_look_that_reads_nothing(
    photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = Dataset(
        lineage="pets", source=f"folder:{photos}", nominal_size=9, classes=("cat", "dog")
    )
    reports = []
    for _ in range(2):
        look = CheckCache(photos.parent / "private/check/looks.jsonl", 2**20)
        found = survey(dataset, KEYS, digests=look.digests)
        reports.append(report(check_every_record(found, 2**20, look.seen)))
        monkeypatch.setattr("dpladder.data.folders.bytes_of", lambda file: pytest.fail("read"))
    monkeypatch.undo()
    assert {*reports} == {report(check_every_record(survey(dataset, KEYS), 2**20))}
    assert "image cannot be decoded" in reports[0]
