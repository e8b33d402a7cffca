"""Sealed files: what was written is what is read, and anything else is refused by name."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn

from dpladder.data import sealed
from dpladder.errors import BadInput

KEY = b"k" * 32
ATTRS = {"kind": "features", "model": "naïve", "batch_size": 64}
ARRAYS = {
    "features": np.arange(12, dtype=np.float16).reshape(4, 3),
    "labels": np.array([3, -1, 0, 2]),
    "empty": np.empty((0, 5), np.float32),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    sealed.write(tmp_path / "file.h5", ARRAYS, ATTRS, KEY)
    return tmp_path / "file.h5"


def same(found: sealed.Sealed) -> bool:
    return dict(found.attrs) == ATTRS and all(
        found.arrays[name].dtype == array.dtype and np.array_equal(found.arrays[name], array)
        for name, array in ARRAYS.items()
    )


@pytest.mark.ci
@given(
    array=hn.arrays(
        st.sampled_from([np.float16, np.float32, np.int64, np.uint8]),
        hn.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=6),
    )
)
@settings(max_examples=40, deadline=None)
def test_what_is_written_is_read_back_bit_for_bit(tmp_path_factory: Any, array: np.ndarray) -> None:
    path = tmp_path_factory.mktemp("sealed") / "file.h5"
    sealed.write(path, {"array": array, "other": np.arange(3)}, ATTRS, KEY)
    found = sealed.read(path, KEY)
    assert found.arrays["array"].dtype == array.dtype
    assert found.arrays["array"].shape == array.shape
    assert found.arrays["array"].tobytes() == array.tobytes()


def test_arrays_are_mapped_read_only_and_aligned_and_hdf5_reads_the_same(path: Path) -> None:
    found = sealed.read(path, KEY)
    assert isinstance(found.arrays["features"], np.memmap)
    assert not found.arrays["features"].flags.writeable
    assert found.arrays["labels"].offset % sealed.ALIGNMENT == 0
    with h5py.File(path) as file:
        assert all(np.array_equal(file[name][()], array) for name, array in ARRAYS.items())
        assert file.attrs["model"] == "naïve"


def test_pieces_make_the_same_file_as_the_whole(tmp_path: Path, path: Path) -> None:
    pieces = sealed.Blocks((4, 3), np.float16, np.array_split(ARRAYS["features"], 3))
    sealed.write(tmp_path / "pieces.h5", ARRAYS | {"features": pieces}, ATTRS, KEY)
    assert sealed.read(tmp_path / "pieces.h5", KEY).digest == sealed.read(path, KEY).digest


def test_only_the_owner_can_open_a_file(path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.ci
def test_a_changed_byte_is_refused_or_changes_nothing(path: Path) -> None:
    """Only padding may change unseen. Every eleventh byte, and all of the arrays' own."""
    whole = path.read_bytes()
    start = sealed.read(path, KEY).arrays["features"].offset
    unseen = 0
    for place in sorted({*range(0, len(whole), 11), *range(start, start + 24)}):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x11]) + whole[place + 1 :])
        try:
            assert same(sealed.read(path, KEY))
            unseen += 1
            assert not start <= place < start + 24
        except BadInput:
            pass
    assert 0 < unseen < len(whole) / 11  # the test has met both


@pytest.mark.parametrize("keep", [0, 1, 100, 0.3, 0.7, 0.99])
def test_a_truncated_file_is_refused(path: Path, keep: float) -> None:
    size = path.stat().st_size
    os.truncate(path, int(keep if keep >= 1 or keep == 0 else keep * size))
    with pytest.raises(BadInput, match=r"truncated|changed after"):
        sealed.read(path, KEY)


def test_files_that_are_not_ours_are_refused_with_a_remedy(path: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="another home's key"):
        sealed.read(path, b"x" * 32)
    with pytest.raises(BadInput, match="does not exist"):
        sealed.read(tmp_path / "absent.h5", KEY)
    (tmp_path / "text.h5").write_text("not HDF5")
    with pytest.raises(BadInput, match="not a file that dpladder wrote"):
        sealed.read(tmp_path / "text.h5", KEY)
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["features"] = np.ones((3, 3))
    with pytest.raises(BadInput, match="not a file that dpladder wrote"):
        sealed.read(tmp_path / "foreign.h5", KEY)


def test_a_renamed_array_or_an_added_one_is_refused(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file.move("labels", "marks")
    with pytest.raises(BadInput, match="changed after"):
        sealed.read(path, KEY)


def test_an_array_that_points_into_another_file_is_refused(path: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(bytes(100))
    with h5py.File(path, "r+") as file:
        del file["labels"]
        file.create_dataset(
            "labels", (4,), np.int64, external=[(str(tmp_path / "elsewhere"), 0, 32)]
        )
    with pytest.raises(BadInput):
        sealed.read(path, KEY)


def test_a_full_disk_is_one_error_and_leaves_the_old_file(path: Path) -> None:
    """A real limit on file size, in a process of its own."""
    big = {"features": np.zeros((1000, 1000))}
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        try:
            sealed.write(path, big, ATTRS, KEY)
        except BadInput as error:
            os._exit(0 if "Check free space" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert same(sealed.read(path, KEY))
    assert os.listdir(path.parent) == [path.name]


def test_what_hdf5_says_of_a_full_disk_tells_no_size(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It told in a public log how many bytes of a private file were to be written where."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "Can't close file (total write size = 13952, offset = 4096)")

    monkeypatch.setattr(sealed, "_lay_out", full)
    with pytest.raises(BadInput, match="No space left on device") as told:
        sealed.write(path, {"features": np.zeros((4, 3))}, ATTRS, KEY)
    assert "13952" not in str(told.value)


def test_a_failure_while_writing_leaves_nothing(tmp_path: Path) -> None:
    def pieces() -> Any:
        yield np.zeros((1, 3), np.float16)
        raise RuntimeError("the network failed")

    with pytest.raises(RuntimeError):
        sealed.write(
            tmp_path / "file.h5",
            {"features": sealed.Blocks((4, 3), np.float16, pieces())},
            ATTRS,
            KEY,
        )
    assert os.listdir(tmp_path) == []
    with pytest.raises(ValueError, match="add up"):
        sealed.write(
            tmp_path / "file.h5", {"features": sealed.Blocks((4, 3), np.float16, [])}, ATTRS, KEY
        )


def test_a_file_where_a_folder_should_be_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("")
    with pytest.raises(BadInput, match="cannot be written"):
        sealed.write(tmp_path / "folder" / "file.h5", ARRAYS, ATTRS, KEY)
