"""What a file may make of itself: no program is started for it, and what it unpacks to is bounded
before it is unpacked."""

from __future__ import annotations

import ast
import struct
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest
from PIL import EpsImagePlugin, Image
from support import in_new_python

from dpladder.data import bags, images
from dpladder.data.bags import bag_of
from dpladder.data.images import FORMATS, decode
from dpladder.use import graph, standalone

SRC = Path(images.__file__).parents[1]
PAGE = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 20 20\n%%EndComments\nshowpage\n%%EOF\n"
READERS: dict[str, Callable[[Path], Any]] = {
    "a run and its check": lambda path: decode(path.read_bytes()),
    "graph.py": lambda path: graph.pixels(path, 8, "bilinear", (8, 8), [0.5] * 3, [0.5] * 3),
    "model.py": lambda path: standalone.Images._pixels(
        SimpleNamespace(transform=np.asarray),  # type: ignore[arg-type]
        path,
    ),
}


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """What Ghostscript would write, if it is started."""
    mark = tmp_path / "started"
    program = tmp_path / "bin/gs"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)
    yield mark
    EpsImagePlugin.gs_binary = None


@pytest.mark.parametrize("reader", READERS)
def test_a_picture_starts_no_program(reader: str, started: Path, tmp_path: Path) -> None:
    photo = tmp_path / "photo.jpg"
    photo.write_bytes(PAGE)
    with pytest.raises(OSError, match="cannot identify"):
        READERS[reader](photo)
    assert not started.exists()


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_allowed_is_read_whatever_its_name_says(
    reader: str, kind: str, tmp_path: Path
) -> None:
    photo = tmp_path / "photo.jpg"
    Image.new("RGB", (20, 20), "red").save(photo, kind)
    READERS[reader](photo)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
@pytest.mark.parametrize("reader", READERS)
def test_sixteen_bits_of_grey_are_seen_as_training_saw_them(
    reader: str, kind: str, tmp_path: Path
) -> None:
    deep, eight = tmp_path / "deep.jpg", tmp_path / "eight.jpg"
    grey = np.linspace(0, 65535, 400).reshape(20, 20)
    Image.fromarray(grey.astype(np.uint16)).save(deep, kind)
    Image.fromarray(np.rint(grey / 257).astype(np.uint8)).convert("RGB").save(eight, "PNG")
    assert np.array_equal(READERS[reader](deep), READERS[reader](eight))


def test_a_phones_picture_of_several_is_its_first(tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    first, second = Image.new("RGB", (20, 30)), Image.new("RGB", (40, 10))
    first.save(path, "MPO", save_all=True, append_images=[second])
    assert decode(path.read_bytes()).size == (20, 30)


def test_every_image_is_opened_by_formats_that_are_named() -> None:
    calls = [
        (path, node)
        for path in SRC.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Image.open")
    ]
    assert len(calls) == 3
    for path, call in calls:
        given = {word.arg: ast.unparse(word.value) for word in call.keywords}
        assert given.get("formats") == "FORMATS", path
    assert FORMATS == graph.FORMATS == standalone.FORMATS


def zeros(number: int) -> bytes:
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(2**16)) for _ in range(number >> 16)) + packer.flush()


def icon(side: int) -> bytes:
    """Of 16 by 16 by its header, and of as many by the picture inside."""
    inside = BytesIO()
    Image.new("1", (side, side)).save(inside, "PNG")
    picture = inside.getvalue()
    entry = struct.pack("<BBBBHHII", 16, 16, 0, 0, 1, 32, len(picture), 22)
    return struct.pack("<HHH", 0, 1, 1) + entry + picture


def tiles(side: int) -> bytes:
    """Of 64 by 64 by its header, in one tile as large as this."""
    packed = zeros(side * side)
    values = {
        256: 64,
        257: 64,
        258: 8,
        259: 8,
        262: 1,
        277: 1,
        322: side,
        323: side,
        324: 8,
        325: len(packed),
    }
    lines = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in values.items())
    directory = struct.pack("<H", len(values)) + lines + struct.pack("<I", 0)
    return b"II*\0" + struct.pack("<I", 8 + len(packed)) + packed + directory


MEASURE = """\
import re, sys
from pathlib import Path
from dpladder.data.{module} import {function}
from PIL import Image
Image.init()
def most():
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])
before = most()
try:
    {call}
except Exception:
    pass
print(most() - before)
"""


def kilobytes_taken(module: str, function: str, call: str, path: Path) -> int:
    """Beyond what the process had, to read a file."""
    program = MEASURE.format(module=module, function=function, call=call)
    return int(in_new_python(program, str(path)))


@pytest.mark.parametrize("form", [icon, tiles])
def test_a_picture_unpacks_to_no_more_than_its_header_claims(
    form: Callable[[int], bytes], tmp_path: Path
) -> None:
    photo = tmp_path / "photo.jpg"
    photo.write_bytes(form(2**14))  # 256 megabytes
    assert photo.stat().st_size < 2**19
    call = "decode(Path(sys.argv[1]).read_bytes())"
    assert kilobytes_taken("images", "decode", call, photo) < 2**16


def test_a_tile_within_the_bound_is_read() -> None:
    assert decode(tiles(256)).size == (64, 64)
    with pytest.raises(ValueError, match="largest_image"):
        decode(tiles(256), largest=128 * 128)


HUGE = b"its feats are more than it holds, or lie in too large a chunk"


def packed_bag(path: Path, rows: int, width: int, chunk: tuple[int, int], whole: bool) -> None:
    """A bag of zeros, of which one chunk is stored."""
    with h5py.File(path, "w") as file:
        feats = file.create_dataset(
            "feats", (rows, width), "i1", chunks=chunk, compression="gzip", compression_opts=9
        )
        feats[: rows if whole else chunk[0]] = 0.0


def test_a_bag_unpacks_to_no_more_than_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "slide.h5"
    packed_bag(path, 2**16, 2**11, (2**16, 2**11), whole=True)  # 128 megabytes in one chunk
    assert path.stat().st_size < 2**20
    assert bag_of(path, 2**11) == HUGE
    call = "bag_of(Path(sys.argv[1]), 2**11)"
    assert kilobytes_taken("bags", "bag_of", call, path) < 2**16


@pytest.mark.parametrize(
    ("chunk", "whole", "why"),
    [
        ((2**10, 16), True, None),
        ((2**10, 8), True, None),
        ((2**10, 16), False, HUGE),
    ],
)
def test_a_bag_that_claims_more_than_it_holds_counts_as_nothing(
    chunk: tuple[int, int], whole: bool, why: bytes | None, tmp_path: Path
) -> None:
    path = tmp_path / "slide.h5"
    packed_bag(path, 2**14, 16, chunk, whole)
    found = bag_of(path, 16)
    assert found == why if why else not np.any(found)


def test_a_bags_chunks_are_decoded_once_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the pieces that are added up: the mean is that of all rows."""
    rows = np.random.default_rng(0).normal(size=(1000, 4)).astype(np.float32)
    path = tmp_path / "slide.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("feats", data=rows, chunks=(300, 3), compression="gzip")
    monkeypatch.setattr(bags, "BLOCK", 28)
    assert bag_of(path, 4) == pytest.approx(rows.astype(float).mean(axis=0))
