"""Extraction: a map of each record by itself, the same after any kill, and no record's trouble is
another's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from extracted import KEYS, dataset_of, extract_part, manifest_of, open_part
from PIL import Image

from dpladder.config.dataset_sections import Split
from dpladder.config.features_sections import Features
from dpladder.data import extract as extraction
from dpladder.data import images, sealed
from dpladder.data.cache import FeatureCache, merge, open_cache
from dpladder.errors import BadInput, DpladderError, Refused

MATRIX = Features(model="none", batch_size=4, dtype="float32")
LITE = Features(batch_size=8, image_size=32)
RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.integers(0, 256, (30, 20, 24, 3), np.uint8)


def prepared(folder: Path, source: str, classes: Any = 10) -> Path:
    manifest_of(folder, dataset_of(source, classes=classes, split=Split(test=0.0)))
    return folder / "manifest.h5"


def matrix(folder: Path, rows: Any, labels: Any = None) -> Path:
    np.savez(
        folder / "data.npz", features=rows, labels=[0] * len(rows) if labels is None else labels
    )
    return prepared(folder, f"npz:{folder / 'data.npz'}")


def pictures(folder: Path, images: np.ndarray) -> Path:
    np.savez(folder / "data.npz", images=images, labels=[0] * len(images))
    return prepared(folder, f"npz:{folder / 'data.npz'}")


def run(manifest: Path, features: Features, name: str = "train.h5", **options: Any) -> Path:
    return extract_part(manifest.parent, features, name, **options)


def rows_of(path: Path) -> dict[bytes, bytes]:
    """Each record's features by its id, to the last bit."""
    cache = open_part(path)
    return {
        record.tobytes(): row.tobytes()
        for record, row in zip(cache.record_ids, cache.features, strict=True)
    }


def problems(path: Path) -> list[tuple[Any, str]]:
    lines = Path(f"{path}.jsonl").read_text().splitlines()
    return [(line["record"], line["check"]) for line in map(json.loads, lines)]


def in_a_child(work: Callable[[], object]) -> int:
    """Start `work` in a process of its own; matrices need no threads of torch's, so forking is
    safe."""
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return child


def test_neighbours_never_reach_a_row(tmp_path: Path) -> None:
    """Reordered, with records replaced and one missing, what remains is the same to the last bit,
    whatever its batch."""
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    first = rows_of(run(pictures(tmp_path / "a", IMAGES), LITE))
    others = RANDOM.integers(0, 256, (9, 20, 24, 3), np.uint8)
    mixed = np.concatenate([others, IMAGES[RANDOM.permutation(30)][:20]])
    second = rows_of(run(pictures(tmp_path / "b", mixed), LITE))
    shared = first.keys() & second.keys()
    assert len(shared) == 20
    assert all(first[record] == second[record] for record in shared)


@pytest.mark.ci
def test_a_record_has_the_same_views_among_any_others_and_the_first_is_the_record_itself(
    tmp_path: Path,
) -> None:
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    one = run(pictures(tmp_path / "a", IMAGES), LITE, views=3)
    few = rows_of(run(pictures(tmp_path / "b", IMAGES[RANDOM.permutation(30)][:11]), LITE, views=3))
    assert len(few) == 11
    assert all(rows_of(one)[record] == row for record, row in few.items())

    plain = rows_of(run(tmp_path / "a" / "manifest.h5", LITE, "plain.h5"))
    seen = open_part(one)
    assert seen.features.shape == (30, 3, 2064)
    for record, views in zip(seen.record_ids, np.asarray(seen.features), strict=True):
        assert views[0].tobytes() == plain[record.tobytes()]
        assert len({view.tobytes() for view in views}) == 3


def test_a_record_with_a_view_that_fails_counts_as_nothing_and_no_other_does() -> None:
    fine, broken = np.array([0, 0], np.uint8), np.array([0, extraction.Check.NOT_FINITE], np.uint8)
    encoded = iter([(np.ones((2, 3)), fine), (np.full((2, 3), 2.0), broken)])
    work = SimpleNamespace(views=2, stored=(2, 3))
    [(rows, checks)] = extraction._group_views(encoded, work)  # type: ignore[arg-type]
    assert rows[0].tolist() == [[1.0] * 3, [2.0] * 3]
    assert not rows[1].any()
    assert checks.tolist() == broken.tolist()


def test_views_are_crops_that_keep_most_of_the_image_and_mirrors_where_asked() -> None:
    ramp = Image.fromarray(np.tile(np.arange(40, dtype=np.uint8), (20, 1)))
    assert images.image_view(ramp, 0, True) is ramp
    for number in range(1, 9):
        plain, mirrored = (
            np.asarray(images.image_view(ramp, number, mirror))[0] for mirror in (False, True)
        )
        assert 30 <= len(plain) <= 40
        assert (np.diff(plain) == 1).all()
        assert (mirrored == (plain[::-1] if number % 2 else plain)).all()


@pytest.mark.ci
def test_the_number_of_threads_changes_no_bit(tmp_path: Path) -> None:
    manifest = pictures(tmp_path, IMAGES)
    one, three = (run(manifest, LITE, f"{threads}.h5", threads=threads) for threads in (1, 3))
    assert one.read_bytes() == three.read_bytes()


@pytest.mark.ci
def test_a_private_row_is_what_a_batch_of_one_gives_up_to_rounding(tmp_path: Path) -> None:
    manifest = pictures(tmp_path, IMAGES[:5])
    padded = open_part(run(manifest, LITE))
    alone = open_cache(
        run(manifest, LITE.model_copy(update={"batch_size": 1}), "alone.h5"), KEYS.cache
    )
    assert padded.features.shape == (5, 2064)
    assert np.abs(padded.features.astype(float) - alone.features).max() < 0.01


@pytest.mark.ci
def test_shards_merge_to_what_one_extraction_gives(tmp_path: Path) -> None:
    manifest = matrix(tmp_path, RANDOM.standard_normal((23, 6)))
    whole = open_part(run(manifest, MATRIX, "whole.h5"))
    parts = [run(manifest, MATRIX, f"{shard}.h5", shard=shard, shards=5) for shard in range(5)]
    merge(parts[::-1], tmp_path / "root", tmp_path / "merged.h5", KEYS.cache)
    merged = open_part(tmp_path / "merged.h5")
    assert merged.digest == whole.digest
    assert isinstance(merged.features, np.memmap)
    assert {len(open_part(path).labels) for path in parts} == {4, 5}


def test_one_shard_becomes_the_whole_without_being_written_again(tmp_path: Path) -> None:
    shard = run(matrix(tmp_path, np.ones((3, 2)) * np.arange(3)[:, None]), MATRIX)
    merge([shard], tmp_path / "root", tmp_path / "merged.h5", KEYS.cache)
    assert (tmp_path / "merged.h5").is_symlink()
    assert os.path.samefile(shard, tmp_path / "merged.h5")
    assert shard.stat().st_mode & 0o777 == 0o600


def test_a_project_that_moves_takes_its_caches_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    monkeypatch.chdir(here)
    shard = run(matrix(Path(), np.ones((3, 2))), MATRIX)
    merge([shard], Path("root"), Path("private/merged.h5"), KEYS.cache)
    shutil.copytree(here, there, symlinks=True)
    assert (there / "private/merged.h5").resolve().is_relative_to(there)
    merge([shard], here / "root", Path("private/absolute.h5"), KEYS.cache)
    here.rename(tmp_path / "elsewhere")
    open_part(there / "private/merged.h5")
    # A root that the config gives in full stays where it is, wherever the project goes.
    assert (tmp_path / "elsewhere/private/absolute.h5").readlink().parent == here / "root"


def test_a_cache_that_the_root_has_is_found_and_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.arange(20.0).reshape(10, 2)
    rows[3] = np.nan
    manifest = matrix(tmp_path, rows)
    shard = run(manifest, MATRIX)
    merge([shard], tmp_path / "root", tmp_path / "merged.h5", KEYS.cache)
    monkeypatch.setattr(extraction, "_fill", lambda *_: pytest.fail("extracted again"))
    again = run(manifest, MATRIX, "again.h5", shards=2, shard=1)
    assert os.path.samefile(again, tmp_path / "merged.h5")
    assert problems(again) == problems(shard) == [(3, "features are not finite")]
    merge([again, again], tmp_path / "root", tmp_path / "second.h5", KEYS.cache)
    assert os.path.samefile(tmp_path / "second.h5", shard)


def test_features_of_other_data_lie_at_another_address(tmp_path: Path) -> None:
    """Two versions of a lineage share a root."""
    for rows in (np.ones((3, 2)), 2 * np.ones((3, 2))):
        shard = run(matrix(tmp_path, rows), MATRIX)
        merged = tmp_path / "merged.h5"
        merge([shard], tmp_path / "root", merged, KEYS.cache)
        assert np.unique(open_part(merged).features) == rows[0, 0]
        shard.unlink()
        merged.unlink()


@pytest.mark.ci
def test_bad_records_are_exactly_zero_and_touch_nobody_else(tmp_path: Path) -> None:
    def encoded(image: np.ndarray, kind: str = "jpeg", **options: Any) -> bytes:
        buffer = BytesIO()
        Image.fromarray(image).save(buffer, kind, **options)
        return buffer.getvalue()

    for name in ("clean", "spoilt"):
        for place in range(20):
            path = (
                tmp_path / name / "images" / ("tabby cat" if place % 2 else "dog") / f"{place}.jpg"
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encoded(IMAGES[place]))
    spoilt = tmp_path / "spoilt" / "images"
    (spoilt / "dog" / "0.jpg").write_bytes(b"")
    (spoilt / "dog" / "2.jpg").write_bytes(encoded(IMAGES[2])[:300])
    (spoilt / "dog" / "4.jpg").write_bytes(b"GIF89a" + bytes(50))
    tiff = encoded(IMAGES[8], "tiff", compression="tiff_lzw")
    (spoilt / "dog" / "8.jpg").write_bytes(tiff[:100] + b"\xff" * 100 + tiff[200:])
    (spoilt / "wolf").mkdir()
    os.rename(spoilt / "dog" / "6.jpg", spoilt / "wolf" / "6.jpg")
    clean, found = (
        run(
            prepared(
                tmp_path / name,
                f"folder:{tmp_path / name / 'images'}",
                ("dog", "tabby cat", "absent"),
            ),
            LITE,
        )
        for name in ("clean", "spoilt")
    )
    cache = open_part(found)
    assert sorted(cache.labels) == [-1] * 5 + [0] * 5 + [1] * 10
    assert not cache.features[cache.labels < 0].any()
    assert cache.features[cache.labels >= 0].any(axis=1).all()
    before, after = rows_of(clean), rows_of(found)
    sound = {
        record.tobytes()
        for record, label in zip(cache.record_ids, cache.labels, strict=True)
        if label >= 0
    }
    assert len(sound) == 15
    assert all(before[record] == after[record] for record in sound)
    assert sorted(Path(record).name for record, _ in problems(found)) == ["2.jpg", "4.jpg", "8.jpg"]
    seen_before = (tmp_path / "spoilt" / "problems.jsonl").read_text()
    assert all(name in seen_before for name in ("0.jpg", "6.jpg"))
    assert Path(f"{found}.jsonl").stat().st_mode & 0o777 == 0o600


def test_the_columns_that_were_chosen_are_what_is_extracted(tmp_path: Path) -> None:
    table = pd.DataFrame({"a": [1.0, 2.0], "patient": ["x", "y"], "b": [3.0, 4.0], "label": [0, 1]})
    table.to_parquet(tmp_path / "data.parquet")
    source = f"parquet:{tmp_path / 'data.parquet'}"
    chosen = {"columns": ("b", "a"), "classes": 2}
    manifest_of(tmp_path, dataset_of(source, **chosen, split=Split(test=0.0)))
    cache = open_part(run(tmp_path / "manifest.h5", MATRIX))
    assert sorted(cache.features.tolist()) == [[3.0, 1.0], [4.0, 2.0]]


def test_rows_that_are_not_finite_are_zero_and_rows_beyond_the_type_keep_their_direction(
    tmp_path: Path,
) -> None:
    rows = np.array(
        [[3.0, 4.0], [np.nan, 1.0], [np.inf, 1.0], [3e6, 4e6], [-1e300, 0.0], [0.0, 0.0]]
    )
    manifest = matrix(tmp_path, rows)
    index = sealed.read(manifest, KEYS.cache).arrays["index"]
    plain = open_part(run(manifest, MATRIX.model_copy(update={"dtype": "float16"})))
    unit = open_cache(
        run(manifest, MATRIX.model_copy(update={"normalize": True}), "unit.h5"), KEYS.cache
    )
    place = {int(source): row for row, source in enumerate(index)}
    stored = {source: plain.features[row].tolist() for source, row in place.items()}
    assert stored[0] == [3, 4]
    assert stored[1] == stored[2] == stored[5] == [0, 0]
    assert stored[3] == [49120, 65504]  # 65504 * 3 / 4, to float16
    assert stored[4] == [-65504, 0]
    assert [plain.labels[place[source]] for source in range(6)] == [0, -1, -1, 0, 0, 0]
    assert np.allclose(
        [unit.features[place[source]] for source in (0, 3, 4, 5)],
        [[0.6, 0.8], [0.6, 0.8], [-1, 0], [0, 0]],
    )
    assert problems(tmp_path / "train.h5") == [
        (1, "features are not finite"),
        (2, "features are not finite"),
    ]


def test_data_that_changed_since_its_manifest_is_a_new_version_and_nothing_is_written(
    tmp_path: Path,
) -> None:
    manifest = matrix(tmp_path, np.arange(20.0).reshape(10, 2))
    rows = np.arange(20.0).reshape(10, 2)
    for changed in (rows + 1, rows[:5]):
        np.savez(tmp_path / "data.npz", features=changed, labels=[0] * len(changed))
        with pytest.raises(Refused, match="new version of the lineage"):
            run(manifest, MATRIX)
        assert not (tmp_path / "train.h5").exists()


def test_a_part_without_records_is_an_empty_cache(tmp_path: Path) -> None:
    manifest = matrix(tmp_path, np.ones((1, 2)))
    for shard in (0, 1):
        run(manifest, MATRIX, f"{shard}.h5", shard=shard, shards=2)
    empty = run(manifest, MATRIX, "none.h5", part="validation")
    assert open_part(empty).features.shape == (0, 2)


def big_matrix(folder: Path) -> tuple[Path, bytes]:
    """A manifest of 11 batches, and the bytes of an extraction that nothing interrupts."""
    manifest = matrix(folder, np.random.default_rng(1).standard_normal((42, 5)))
    reference = run(manifest, MATRIX, "reference.h5").read_bytes()
    return manifest, reference


def killed_at(name: str, call: int, monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    """From now on, in this process, kill -9 just before the given call of a function."""
    real, calls = getattr(module, name), iter(range(10**9))

    def killing(*args: Any, **options: Any) -> Any:
        if next(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **options)

    monkeypatch.setattr(module, name, killing)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("module", "name", "calls"),
    [
        (extraction, "_finish", 11),
        (extraction, "_entry_seal", 11),
        (os, "fsync", 4),
        (os, "replace", 2),
        (sealed, "_seal", 2),
    ],
)
def test_kill_9_at_any_step_resumes_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, calls: int
) -> None:
    manifest, reference = big_matrix(tmp_path)
    for call in range(calls):
        with monkeypatch.context() as patch:
            killed_at(name, call, patch, module)
            status = os.waitpid(in_a_child(lambda: run(manifest, MATRIX)), 0)[1]
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, call
        assert run(manifest, MATRIX).read_bytes() == reference, call
        (tmp_path / "train.h5").unlink()
    assert not list(tmp_path.glob(".*")), "leftovers of killed processes"


@pytest.mark.ci
def test_a_resumed_run_keeps_the_batches_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also through the network: a stop after two batches leaves two to do, and the bytes do not
    tell."""
    manifest = pictures(tmp_path, IMAGES)
    reference = run(manifest, LITE, "reference.h5").read_bytes()
    real, done = extraction._finish, []

    def stopping(*args: Any) -> Any:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(1)
        return real(*args)

    monkeypatch.setattr(extraction, "_finish", stopping)
    with pytest.raises(KeyboardInterrupt):
        run(manifest, LITE)
    monkeypatch.setattr(extraction, "_finish", lambda *args: (done.append(1), real(*args))[1])
    assert run(manifest, LITE).read_bytes() == reference
    assert len(done) == 4


@pytest.mark.parametrize("damage", ["flipped", "cut", "other network's"])
def test_a_journal_that_cannot_be_trusted_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    manifest, reference = big_matrix(tmp_path)
    journal = tmp_path / ".train.h5.journal"
    with monkeypatch.context() as patch:
        patch.setattr(extraction, "_write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(manifest, MATRIX.model_copy(update={"normalize": damage == "other network's"}))
    content = bytearray(journal.read_bytes())
    assert len(content) > 1000
    if damage == "flipped":
        content[5] ^= 1
    journal.write_bytes(content[: 300 if damage == "cut" else None])
    assert run(manifest, MATRIX).read_bytes() == reference


@pytest.mark.ci
def test_of_two_processes_on_one_shard_one_works_and_both_see_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest, reference = big_matrix(tmp_path)
    real = extraction._finish

    def noted(*args: Any) -> Any:
        time.sleep(0.03)
        with (tmp_path / "batches").open("a") as file:
            file.write("x")
        return real(*args)

    monkeypatch.setattr(extraction, "_finish", noted)
    children = [in_a_child(lambda: run(manifest, MATRIX)) for _ in range(4)]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    assert (tmp_path / "train.h5").read_bytes() == reference
    assert (tmp_path / "batches").read_text() == "x" * 11


def test_a_full_disk_stops_with_one_error_and_what_was_done_is_kept(tmp_path: Path) -> None:
    import resource

    manifest, reference = big_matrix(tmp_path)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700))
        with pytest.raises(BadInput, match="Check free space"):
            run(manifest, MATRIX)

    assert os.waitstatus_to_exitcode(os.waitpid(in_a_child(limited), 0)[1]) == 0
    assert not (tmp_path / "train.h5").exists()
    assert (tmp_path / ".train.h5.journal").stat().st_size > 0
    assert run(manifest, MATRIX).read_bytes() == reference


def test_another_version_backbone_or_part_is_refused_by_name(tmp_path: Path) -> None:
    from dpladder.data.cache import claims
    from dpladder.data.prepare import read_manifest

    manifest = matrix(tmp_path, np.arange(20.0).reshape(10, 2))
    path, version = run(manifest, MATRIX), read_manifest(manifest, KEYS.cache).commitment
    open_cache(path, KEYS.cache, claims(MATRIX, version, "train"))
    wrong = {
        "another version of the lineage": claims(MATRIX, "0" * 64, "train"),
        "part 'train'": claims(MATRIX, version, "test"),
        "dtype 'float32'": claims(MATRIX.model_copy(update={"dtype": "float16"}), version, "train"),
        "model 'none'": claims(MATRIX.model_copy(update={"model": "resnet18"}), version, "train"),
    }
    for message, expected in wrong.items():
        with pytest.raises(BadInput, match=message) as error:
            open_cache(path, KEYS.cache, expected)
        assert version not in str(error.value)
    with pytest.raises(BadInput, match="not a feature cache"):
        open_part(manifest)


def test_shards_of_different_runs_are_never_put_together(tmp_path: Path) -> None:
    manifest = matrix(tmp_path, np.arange(40.0).reshape(20, 2))
    parts = [run(manifest, MATRIX, f"{shard}.h5", shard=shard, shards=3) for shard in range(3)]
    unit = MATRIX.model_copy(update={"normalize": True})
    foreign = run(manifest, unit, "foreign.h5", shard=1, shards=3)
    for shards in (parts[:2], [*parts, parts[0]], [parts[0], foreign, parts[2]]):
        with pytest.raises(DpladderError):
            merge(shards, tmp_path / "root", tmp_path / "merged.h5", KEYS.cache)
    assert not (tmp_path / "merged.h5").exists()


def test_a_poisoned_cache_in_the_root_is_not_used(tmp_path: Path) -> None:
    manifest = matrix(tmp_path, np.arange(20.0).reshape(10, 2))
    shard = run(manifest, MATRIX)
    merge([shard], tmp_path / "root", tmp_path / "merged.h5", KEYS.cache)
    reference = open_part(shard).digest
    (poisoned,) = (tmp_path / "root").glob("*.h5")
    content = bytearray(poisoned.read_bytes())
    content[open_part(shard).features.offset] ^= 1  # type: ignore[attr-defined]
    shard.unlink()
    poisoned.write_bytes(content)
    found: FeatureCache = open_part(run(manifest, MATRIX))
    assert found.digest == reference
    assert not (tmp_path / "train.h5").is_symlink()


def test_a_cache_root_that_everybody_can_open_is_refused_before_any_work(tmp_path: Path) -> None:
    manifest, root = matrix(tmp_path, np.arange(20.0).reshape(10, 2)), tmp_path / "root"
    root.mkdir()
    root.chmod(0o755)
    with pytest.raises(BadInput, match=r"open to everybody \(mode 755\).*chmod o-rwx"):
        run(manifest, MATRIX)
    assert not any(root.iterdir())
    root.chmod(0o750)
    merge([run(manifest, MATRIX)], root, tmp_path / "merged.h5", KEYS.cache)
    assert any(root.iterdir())
