"""Sources and class lists: every format gives the same records, and a bad set-up is one error with
its remedy."""

from __future__ import annotations

import csv
import gzip
import inspect
import os
import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from support import in_new_python

from dpladder.config.dataset_sections import Dataset
from dpladder.config.features_sections import LARGEST_IMAGE
from dpladder.data.datasets import (
    PACKAGED,
    TORCHVISION,
    class_index,
    classes,
    known_classes,
    open_source,
)
from dpladder.data.images import decode
from dpladder.data.layout import Layout
from dpladder.errors import BadInput

FEATURES = np.random.default_rng(0).standard_normal((7, 3))
LABELS = [0, 1, 2, 0, 1, 2, 0]


def as_table(**columns: Any) -> pa.Table:
    return pa.table(
        {f"f{place}": FEATURES[:, place] for place in range(3)} | {"label": LABELS} | columns
    )


def write(kind: str, path: Path) -> None:
    if kind == "npz":
        np.savez(path, features=FEATURES, labels=LABELS)
    elif kind == "hdf5":
        with h5py.File(path, "w") as file:
            file["features"], file["labels"] = FEATURES, LABELS
    else:
        pq.write_table(as_table(), path)


@pytest.mark.parametrize("kind", ["npz", "hdf5", "parquet"])
def test_every_matrix_format_gives_the_same_rows(tmp_path: Path, kind: str) -> None:
    write(kind, tmp_path / "data")
    os.rename(tmp_path / "data.npz", tmp_path / "data") if kind == "npz" else None
    source = open_source(f"{kind}:{tmp_path / 'data'}")
    assert (source.kind, source.width, list(source.labels)) == ("features", 3, LABELS)
    assert np.array_equal([source.read(index) for index in range(7)], FEATURES)


def test_a_fixed_size_list_column_is_a_matrix_and_a_missing_row_is_not_finite(
    tmp_path: Path,
) -> None:
    rows = pa.array([list(row) for row in FEATURES[:6]] + [None], pa.list_(pa.float64(), 3))
    pq.write_table(pa.table({"features": rows, "label": LABELS}), tmp_path / "data.parquet")
    source = open_source(f"parquet:{tmp_path / 'data.parquet'}")
    assert np.array_equal([source.read(index) for index in range(6)], FEATURES[:6])
    assert np.isnan(source.read(6)).all()


DATED = pd.DataFrame(
    {
        "patient": ["a", "b", "c"],
        "age": [30.0, 40.0, 50.0],
        "seen": pd.to_datetime(["2020-01-01"] * 3),
        "weight": [60, 70, 80],
        "label": [0, 1, 0],
    },
    index=[100, 200, 300],
)


def table_source(folder: Path, table: pd.DataFrame, columns: tuple[str, ...] = ()) -> Any:
    table.to_parquet(folder / "data.parquet")
    return open_source(f"parquet:{folder / 'data.parquet'}", Layout(columns))


@pytest.mark.parametrize("name", [None, "record"])
def test_a_pandas_index_is_no_feature(tmp_path: Path, name: str | None) -> None:
    table = DATED.drop(columns=["patient", "seen"]).rename_axis(name)
    assert table_source(tmp_path, table).read(1).tolist() == [40.0, 70.0]


def test_dates_and_words_among_features_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="must be numeric") as error:
        table_source(tmp_path, DATED)
    words = r"Not numeric: patient \((large_)?string\), seen \(timestamp\[\w+\]\)\."
    assert re.match(words, error.value.private)


def test_chosen_columns_are_the_features_in_their_order(tmp_path: Path) -> None:
    source = table_source(tmp_path, DATED, ("weight", "age"))
    assert source.read(2).tolist() == [80.0, 50.0]
    with pytest.raises(BadInput, match=r"has no column height\. Name those") as error:
        table_source(tmp_path, DATED, ("height", "age"))
    assert error.value.private.startswith("It holds patient, age")
    (tmp_path / "indexed.csv").write_text(",age\n0,50\n1,60\n")  # as pandas writes an index
    with pytest.raises(BadInput) as error:
        open_source(f"csv:{tmp_path / 'indexed.csv'}")
    assert error.value.private == "It holds age."


@pytest.mark.parametrize("between", [",", ";", "\t"])
def test_a_table_of_paths_may_stand_between_commas_semicolons_or_tabs(
    tmp_path: Path, between: str
) -> None:
    rows = [("path", "label", "user"), ("a,b.png", "cat", "u1"), ("b.png", "dog", "u2")]
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=between).writerows(rows)
    source = open_source(f"csv:{tmp_path / 't.csv'}")
    assert [path.name for path in source.files or ()] == ["a,b.png", "b.png"]
    assert (list(source.labels), list(source.users or ())) == (["cat", "dog"], ["u1", "u2"])


def test_the_longest_private_row_never_decides_the_width(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"features": [[1.0], [1.0, 2.0]], "label": [0, 1]}), tmp_path / "data.parquet"
    )
    with pytest.raises(BadInput, match="fixed-size list"):
        open_source(f"parquet:{tmp_path / 'data.parquet'}")


def test_lists_of_words_are_refused_by_the_schema_and_not_by_a_row(tmp_path: Path) -> None:
    """Words may be numbers until one person's is none."""
    rows = pa.array([["1", "2"], ["3", "4"]], pa.list_(pa.string(), 2))
    pq.write_table(pa.table({"features": rows, "label": [0, 1]}), tmp_path / "data.parquet")
    with pytest.raises(BadInput, match="list column of numbers"):
        open_source(f"parquet:{tmp_path / 'data.parquet'}")


def test_a_folder_gives_bytes_and_the_first_folder_as_label(tmp_path: Path) -> None:
    for name in ("tabby cat/a.png", "tabby cat/deeper/b.JPG", "dog/c.png", "dog/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    source = open_source(f"folder:{tmp_path}")
    records = {(label, source.read(index)) for index, label in enumerate(source.labels)}
    assert records == {
        ("tabby cat", b"tabby cat/a.png"),
        ("tabby cat", b"tabby cat/deeper/b.JPG"),
        ("dog", b"dog/c.png"),
    }


def test_a_table_names_files_beside_it_and_a_missing_file_is_an_empty_record(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.png").write_bytes(b"one")
    (tmp_path / "t.csv").write_text(
        "path,label,user,split\na.png,cat,u1,train\nb.png,dog,u2,test\n"
    )
    source = open_source(f"csv:{tmp_path / 't.csv'}")
    assert [source.read(0), source.read(1)] == [b"one", b""]
    assert (list(source.labels), list(source.users), list(source.parts)) == (
        ["cat", "dog"],
        ["u1", "u2"],
        ["train", "test"],
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "count", "side"), [("mnist5k", 5000, 28), ("digits", 1797, 8)])
def test_built_in_data_needs_no_network(name: str, count: int, side: int) -> None:
    source = open_source(name)
    assert len(source.labels) == count
    assert set(source.labels) == set(range(10))
    assert source.read(0).shape == (side, side)
    assert source.read(0).dtype == np.uint8
    assert max(source.read(index).max() for index in range(100)) == 255


def test_the_registry_names_what_torchvision_has() -> None:
    import torchvision

    for name, public in TORCHVISION.items():
        parameters = inspect.signature(getattr(torchvision.datasets, name).__init__).parameters
        base = inspect.signature(torchvision.datasets.MNIST.__init__).parameters
        for args in public.splits.values():
            assert set(args) <= set(parameters) | (
                set(base) if "kwargs" in parameters else set()
            ), name
        assert {"download"} <= set(parameters) or "kwargs" in parameters, name


def write_idx(folder: Path, counts: dict[str, int], packed: bool = False) -> None:
    """Images and labels as MNIST's are written: of each split so many, all of that brightness."""
    folder.mkdir(parents=True)
    for split, count in counts.items():
        images = np.full((count, 28, 28), count, np.uint8)
        size = b"".join(number.to_bytes(4, "big") for number in images.shape)
        files = {
            f"{split}-images-idx3-ubyte": bytes([0, 0, 8, 3]) + size + images.tobytes(),
            f"{split}-labels-idx1-ubyte": bytes([0, 0, 8, 1]) + size[:4] + bytes(range(count)),
        }
        for name, content in files.items():
            if packed:
                (folder / f"{name}.gz").write_bytes(gzip.compress(content))
            else:
                (folder / name).write_bytes(content)


@pytest.mark.parametrize("packed", [False, True], ids=["already there", "of Debian's package"])
def test_torchvisions_data_is_read_with_its_splits(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(PACKAGED, "FashionMNIST", tmp_path / "package")
    there = tmp_path / "dpladder" / "FashionMNIST" / "FashionMNIST" / "raw"
    write_idx(tmp_path / "package" if packed else there, {"train": 5, "t10k": 3}, packed)
    source = open_source("torchvision:FashionMNIST")
    assert list(source.parts or ()) == ["train"] * 5 + ["test"] * 3
    assert list(source.labels) == [0, 1, 2, 3, 4, 0, 1, 2]
    assert [int(source.read(index).max()) for index in (0, 4, 5, 7)] == [5, 5, 3, 3]
    assert len(open_source("torchvision:FashionMNIST/test").labels) == 3


@pytest.mark.parametrize(
    ("found", "label", "place"),
    [
        (10, 3, 3),
        (10, "3", 3),
        (10, 3.0, 3),
        (10, b"9", 9),
        (10, 10, -1),
        (10, -1, -1),
        (10, "cat", -1),
        (10, None, -1),
        (10, float("nan"), -1),
        (10, float("inf"), -1),
        (10, 2.5, -1),
        (2, True, 1),
        (10, 10**400, -1),
        (("cat", "tabby cat"), "tabby cat", 1),
        (("cat", "tabby cat"), b"cat", 0),
        (("cat", "tabby cat"), "tabby", -1),
        (("cat", "dog"), 1, 1),
        (("cat", "dog"), 2, -1),
        (("7", "3"), 3, 1),
        (("7", "3"), 0, -1),
        (("café",), "cafe\u0301", 0),
        (("cat",), " cat\n", 0),
        (("cat",), "", -1),
        (tuple(f"class {n}" for n in range(20000)), "class 19999", 19999),
    ],
)
def test_a_label_finds_its_class_or_none(found: Any, label: object, place: int) -> None:
    assert class_index(found)(label) == place


def test_class_lists_come_from_config_or_the_public_never_from_labels() -> None:
    mine = Dataset(lineage="x", source="folder:x", nominal_size=1, classes=("cat", "dog"))
    assert classes(mine) == ("cat", "dog")
    assert known_classes("torchvision:CIFAR100/train") == 100
    assert known_classes("mnist5k") == 10
    with pytest.raises(BadInput, match=r"dataset\.classes is not set"):
        classes(Dataset(lineage="x", source="folder:x", nominal_size=1))


def _bad_setups() -> dict[str, tuple[str, Any, str]]:
    def npz(**arrays: Any) -> Any:
        return lambda path: np.savez(path.with_suffix(""), **arrays)

    def text(content: str) -> Any:
        return lambda path: path.write_text(content)

    ones = np.ones((37, 3))
    return {
        "unknown kind": ("tfds:x", None, "is not known"),
        "unknown name": ("torchvision:Imaginary", None, "is not known"),
        "unknown split": ("torchvision:CIFAR10/validation", None, "is not known"),
        **{
            f"no {kind}": (f"{kind}:{{}}/d", None, "does not exist")
            for kind in ("folder", "csv", "hdf5", "npz", "parquet")
        },
        "folder for a file": ("npz:{}", None, "cannot be read"),
        "table without labels": ("csv:{}/d.csv", text("path,class\na.png,cat\n"), "has no label"),
        "table in UTF-32": (
            "csv:{}/d.csv",
            lambda p: p.write_text("path,label\na,1\n", "utf-32"),
            "UTF-32 has. Save it as UTF-8",
        ),
        "empty npz": ("npz:{}/d.npz", text(""), "truncated"),
        "text as hdf5": ("hdf5:{}/d.h5", text("hello"), "not HDF5"),
        "text as parquet": ("parquet:{}/d.parquet", text("hello"), "not parquet"),
        "objects": (
            "npz:{}/d.npz",
            npz(features=np.array([{}], object), labels=[1]),
            "holds objects",
        ),
        "text features": (
            "npz:{}/d.npz",
            npz(features=np.array([["a"]]), labels=[1]),
            "must be numbers",
        ),
        "three axes": (
            "npz:{}/d.npz",
            npz(features=np.ones((2, 2, 2)), labels=[1, 1]),
            "must be numbers",
        ),
        "float images": ("npz:{}/d.npz", npz(images=np.ones((2, 8, 8)), labels=[1, 1]), "uint8"),
        "channels first": (
            "npz:{}/d.npz",
            npz(images=np.ones((2, 3, 8, 8), np.uint8), labels=[1, 1]),
            "height, width",
        ),
        "no labels": (
            "npz:{}/d.npz",
            npz(features=ones),
            "has no labels. Name the one that is the label in dataset.label",
        ),
        "no matrix": ("npz:{}/d.npz", npz(labels=[1]), "neither features nor images"),
        "other names": (
            "npz:{}/d.npz",
            npz(X=ones, y=[1] * 37),
            "It needs features, .* with these names",
        ),
        "fewer labels": ("npz:{}/d.npz", npz(features=ones, labels=[1] * 29), "differ in length"),
        "fewer users": (
            "npz:{}/d.npz",
            npz(features=ones, labels=[1] * 37, users=[1]),
            "differ in length",
        ),
        "words in a column": (
            "parquet:{}/d.parquet",
            lambda p: pq.write_table(as_table(word=["a"] * 7), p),
            "must be numeric",
        ),
    }


@pytest.mark.parametrize("case", _bad_setups())
def test_a_bad_setup_is_one_error_with_a_remedy(tmp_path: Path, case: str) -> None:
    source, make, message = _bad_setups()[case]
    if make:
        make(tmp_path / source.format("").partition("/")[2])
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(BadInput, match=message) as error:
        open_source(source.format(tmp_path))
    assert sorted(os.listdir(tmp_path)) == before
    assert not any(count in str(error.value).replace(str(tmp_path), "") for count in ("37", "29"))


def test_the_names_in_a_file_with_an_array_for_each_person_are_in_no_log(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file["Jane Doe"] = np.ones(3)
    with pytest.raises(BadInput, match="neither features nor images") as error:
        open_source(f"hdf5:{tmp_path / 'd.h5'}")
    assert "Jane" not in str(error.value)
    assert error.value.private == "It holds Jane Doe."


def test_a_truncated_hdf5_file_is_named(tmp_path: Path) -> None:
    write("hdf5", tmp_path / "data.h5")
    os.truncate(tmp_path / "data.h5", os.path.getsize(tmp_path / "data.h5") // 2)
    with pytest.raises(BadInput, match="truncated"):
        open_source(f"hdf5:{tmp_path / 'data.h5'}")


def picture(mode: str) -> Image.Image:
    grey = np.add.outer(np.arange(20) * 6, np.arange(30) * 4).astype(np.uint8)
    return Image.fromarray(np.stack([grey, grey[::-1], grey[:, ::-1]], axis=2)).convert(mode)


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    from io import BytesIO

    buffer = BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def test_every_kind_of_image_becomes_upright_eight_bit_rgb() -> None:
    rgb, grey = np.asarray(picture("RGB")), np.asarray(picture("L"))
    deep = Image.fromarray(grey.astype(np.uint16) * 257)
    turned = picture("RGB").getexif()
    turned[0x0112] = 6  # the camera was held on its side
    frames = {"save_all": True, "append_images": [picture("L").point(lambda value: 255 - value)]}
    cases = {
        "rgb": (encoded(picture("RGB"), "png"), rgb),
        "grey": (encoded(picture("L"), "png"), np.dstack([grey] * 3)),
        "16-bit png": (encoded(deep, "png"), np.dstack([grey] * 3)),
        "16-bit tiff": (encoded(deep, "tiff"), np.dstack([grey] * 3)),
        "palette": (encoded(picture("RGB").quantize(256), "png"), rgb),
        "transparent": (encoded(picture("RGBA"), "png"), rgb),
        "cmyk": (encoded(picture("CMYK"), "tiff"), rgb),
        "animated": (encoded(picture("L"), "gif", **frames), np.dstack([grey] * 3)),
        "turned": (encoded(picture("RGB"), "png", exif=turned), np.rot90(rgb, -1)),
        "pixels": (rgb, rgb),
        "16-bit pixels": (grey.astype(np.uint16)[..., None] * 257, np.dstack([grey] * 3)),
    }
    for name, (content, expected) in cases.items():
        found = np.asarray(decode(content)).astype(int)
        assert found.shape == expected.shape, name
        assert np.abs(found - expected).max() <= (40 if name == "palette" else 1), name


@pytest.mark.ci
def test_damaged_images_raise_and_bombs_are_not_unpacked() -> None:
    whole = encoded(picture("RGB"), "jpeg")
    side = int(LARGEST_IMAGE**0.5) + 1
    bomb = encoded(Image.new("1", (side, side)), "png")
    thread = np.zeros(
        (1, 101), np.uint8
    )  # so thin that scaling its short side up would fill the memory
    for content in (
        thread,
        b"",
        b"not an image",
        whole[: len(whole) // 2],
        encoded(picture("L").convert("F"), "tiff"),
        bomb,
    ):
        with pytest.raises(Exception):  # noqa: B017, PT011, whatever the decoder raises
            decode(content)
    with pytest.raises(ValueError, match="more than 134,217,728 pixels"):
        decode(bomb)
    assert decode(bomb, largest=side**2).size == (side, side)
    with pytest.raises(ValueError, match="more than 100 times as long as wide"):
        decode(thread)


def medical(pixels: Any, **header: Any) -> bytes:
    """A DICOM file of this grey image."""
    from io import BytesIO

    from pydicom import FileDataset, FileMetaDataset
    from pydicom.uid import UID, ExplicitVRLittleEndian

    meta = FileMetaDataset()
    meta.TransferSyntaxUID = UID(header.pop("syntax", ExplicitVRLittleEndian))
    meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = UID("1.2"), UID("1.3")
    file = FileDataset("", {}, file_meta=meta, preamble=b"\0" * 128)
    file.Rows, file.Columns = pixels.shape[-2:]
    file.SamplesPerPixel, file.PhotometricInterpretation = 1, "MONOCHROME2"
    file.BitsAllocated, file.BitsStored, file.HighBit, file.PixelRepresentation = 16, 12, 11, 0
    for name, value in header.items():
        setattr(file, name, value)
    file.PixelData = pixels.astype("<u2").tobytes()
    buffer = BytesIO()
    file.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()


def _with_long_meta(content: bytes) -> bytes:
    """A name of five thousand bytes before that of the syntax, which a reader accepts."""
    name = b"\2\0\3\0UI" + (4).to_bytes(2, "little") + b"1.3\0"
    assert content.count(name) == 1
    length = int.from_bytes(content[140:144], "little") + 5000 - 4
    longer = name[:6] + (5000).to_bytes(2, "little") + b"1." * 2500
    return content[:140] + length.to_bytes(4, "little") + content[144:].replace(name, longer)


@pytest.mark.ci
def test_dicom_is_shown_as_its_own_window_says_and_white_stays_white() -> None:
    ramp = np.tile(np.arange(0, 4096, 128), (20, 1))
    cases = {
        "whole range": (medical(ramp), ramp / ramp.max()),
        "less is brighter": (
            medical(ramp, PhotometricInterpretation="MONOCHROME1"),
            1 - ramp / ramp.max(),
        ),
        "windowed": (
            medical(ramp, WindowCenter=1024, WindowWidth=1024),
            np.clip((ramp - 512) / 1023, 0, 1),
        ),
        "several frames": (
            medical(np.stack([ramp, ramp[:, ::-1]]), NumberOfFrames=2),
            ramp / ramp.max(),
        ),
        "flat": (medical(ramp * 0 + 7), ramp * 0.0),
    }
    for name, (content, expected) in cases.items():
        found = np.asarray(decode(content)).astype(int)
        assert found.shape == (20, 32, 3), name
        assert np.abs(found - np.rint(255 * expected)[..., None]).max() <= 1, name


def through(entries: Any, bits: int = 16, first: int = 0) -> Any:
    """A sequence that holds one lookup table."""
    from pydicom import Dataset, Sequence

    item = Dataset()
    item.LUTDescriptor, item.LUTData = [len(entries), first, bits], [int(one) for one in entries]
    item["LUTDescriptor"].VR = item["LUTData"].VR = "US"
    return Sequence([item])


def test_dicom_goes_through_its_modalitys_table_first_and_then_through_what_it_shows() -> None:
    ramp = np.tile(np.arange(32), (20, 1))
    squares = np.arange(32) ** 2
    halves = np.arange(1024) // 512 * 255
    cases = {
        "modality": ({"ModalityLUTSequence": through(squares)}, ramp**2 / 31**2),
        "shown": ({"VOILUTSequence": through(squares[::-1])}, (31 - ramp) ** 2 / 31**2),
        "both, in order": (
            {"ModalityLUTSequence": through(squares), "VOILUTSequence": through(halves, 8)},
            ramp**2 // 512 * 1.0,
        ),
        "of twelve bits": ({"ModalityLUTSequence": through(squares, 12)}, ramp**2 / 31**2),
        "beyond its ends": (
            {"VOILUTSequence": through(squares[:16], 16, 8)},
            np.clip(ramp - 8, 0, 15) ** 2.0,
        ),
        "rescaled, windowed": (
            {"RescaleSlope": 10, "RescaleIntercept": -100, "WindowCenter": 0, "WindowWidth": 101},
            np.clip((10 * ramp - 100 + 50.5) / 100, 0, 1),
        ),
        "sigmoid": (
            {"WindowCenter": 16, "WindowWidth": 8, "VOILUTFunction": "SIGMOID"},
            1 / (1 + np.exp(-(ramp - 16) / 2)),
        ),
        "windowed, less is brighter": (
            {"WindowCenter": 16, "WindowWidth": 9, "PhotometricInterpretation": "MONOCHROME1"},
            1 - np.clip((ramp - 15.5) / 8 + 0.5, 0, 1),
        ),
    }
    for name, (header, expected) in cases.items():
        low, high = expected.min(), expected.max()
        found = np.asarray(decode(medical(ramp, **header))).astype(int)
        stretched = np.rint(255 * (expected - low) / (high - low))
        assert np.abs(found - stretched[..., None]).max() <= 1, name


def test_dicom_of_a_palette_shows_its_colours() -> None:
    ramp = np.tile(np.arange(32), (20, 1))
    red, green, blue = np.arange(32) * 8, np.arange(32)[::-1] * 8, np.full(32, 7)
    colours = dict(zip(("Red", "Green", "Blue"), (red, green, blue), strict=True))
    header: dict[str, Any] = {"PhotometricInterpretation": "PALETTE COLOR", "BitsStored": 16}
    for name, entries in colours.items():
        header[f"{name}PaletteColorLookupTableDescriptor"] = [32, 0, 16]
        header[f"{name}PaletteColorLookupTableData"] = (entries * 257).astype("<u2").tobytes()
    found = np.asarray(decode(medical(ramp, HighBit=15, **header))).astype(int)
    assert np.abs(found - np.dstack([red[ramp], green[ramp], blue[ramp]])).max() <= 1


def test_dicom_that_could_unpack_to_any_size_is_not_read() -> None:
    ramp = np.tile(np.arange(0, 4096, 128), (20, 1))
    with pytest.raises(ValueError, match="deflated"):
        decode(medical(ramp, syntax="1.2.840.10008.1.2.1.99"))
    with pytest.raises(ValueError, match="deflated"):
        decode(_with_long_meta(medical(ramp, syntax="1.2.840.10008.1.2.1.99")))
    with pytest.raises(ValueError, match="compressed"):
        decode(medical(ramp).replace(b"1.2.840.10008.1.2.1\0", b"1.2.840.10008.1.2.5\0"))
    with pytest.raises(ValueError, match="more than 600 pixels"):
        decode(medical(ramp), largest=600)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("datasets", {"numpy", "torch", "torchvision", "h5py", "pandas"}),
        ("cache", {"torch", "timm", "torchvision"}),
    ],
)
def test_modules_read_at_parse_time_or_by_trials_stay_light(
    module: str, forbidden: set[str]
) -> None:
    code = f"import dpladder.data.{module}, sys; print(*sys.modules)"
    assert not forbidden & set(in_new_python(code).split())
