"""The digest of the code: what changes it, and what does not."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpladder.plan import package


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    place = tmp_path / "dpladder"
    shutil.copytree(package.PACKAGE, place, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(package, "PACKAGE", place)
    yield place
    package.digest.cache_clear()


def fresh_digest() -> str:
    package.digest.cache_clear()
    return package.digest()


def test_the_digest_changes_with_every_file_and_not_with_the_place(copy: Path) -> None:
    before = fresh_digest()
    for name in ("privacy/release/noise.py", "search/looks.csv", "privacy/statement/texts"):
        path = copy / name
        path = next(path.iterdir()) if path.is_dir() else path
        content = path.read_bytes()
        path.write_bytes(content + b"\n")
        assert fresh_digest() != before
        path.write_bytes(content)
        assert fresh_digest() == before
    shutil.move(copy / "errors.py", copy / "mistakes.py")
    assert fresh_digest() != before


def test_the_digest_does_not_depend_on_where_the_clone_lies(copy: Path) -> None:
    there = fresh_digest()
    with pytest.MonkeyPatch.context() as elsewhere:
        elsewhere.setattr(package, "PACKAGE", Path(package.__file__).resolve().parents[1])
        assert fresh_digest() == there


def test_a_compiled_file_is_no_part_of_it(copy: Path) -> None:
    before = fresh_digest()
    (copy / "__pycache__").mkdir()
    # Python writes beside it first, and other processes may do so while this one looks
    for name in ("errors.cpython-311.pyc", "errors.cpython-311.pyc.139872", "privacy.nbi"):
        (copy / "__pycache__" / name).write_bytes(b"compiled")
    assert fresh_digest() == before
