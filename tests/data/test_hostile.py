"""One record, whatever stands in it, costs itself alone: it ends no run and moves no other
record."""

from __future__ import annotations

import gzip
import os
import warnings
import zipfile
from collections.abc import Callable
from csv import QUOTE_ALL, QUOTE_MINIMAL, QUOTE_NONNUMERIC, writer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extracted import KEYS, manifest_of
from hypothesis import given, settings
from hypothesis import strategies as st
from support import each_row

from dpladder.config.dataset_sections import Dataset, Links, Split, Unit
from dpladder.config.images_with_table import as_source_text
from dpladder.config.label_sets import number_of
from dpladder.config.records import Matching
from dpladder.data.arrays import from_hdf5, from_npz
from dpladder.data.census import census, check_every_record, report
from dpladder.data.datasets import open_source
from dpladder.data.folders import Tangled, from_texts
from dpladder.data.layout import Layout
from dpladder.data.prepare import survey
from dpladder.data.shift import class_mapping
from dpladder.data.sources import bytes_of, labels_of_record, text
from dpladder.data.tables import columns_in, from_parquet
from dpladder.errors import BadInput
from dpladder.wording import cell, printable

NAMES = ("cat", "dog", "bird")
NO_UTF8 = [b"cat", b"dog", b"\xff"]
X = np.arange(1.0, 4.0).reshape(-1, 1)


def classes_in(source: str, labels: int) -> list[int]:
    """Of each row that is kept, its class, as a run and its census find it."""
    columns = ("x",) if source.startswith("parquet") else ()
    split = Split(test=0.0, validation=0.0)
    more: dict[str, Any] = {"classes": NAMES, "labels": labels, "columns": columns, "split": split}
    found = survey(Dataset(lineage="pets", source=source, nominal_size=3, **more), KEYS)
    report(census(found)).encode()
    return [row.label for row in sorted(each_row(found.rows), key=lambda row: row.index)]


def strings(held: list[bytes]) -> Any:
    """As a file may hold them: nothing makes sure that they are UTF-8."""
    binary = pa.array(held, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(held), binary.buffers())


def parquet(path: Path, **columns: Any) -> str:
    table = {"x": X[:, 0], "label": pa.array(["cat", "dog", "bird"])} | columns
    pq.write_table(pa.table(table), path / "t.parquet")
    return f"parquet:{path / 't.parquet'}"


def csv(path: Path, table: bytes) -> str:
    for name in ("a.png", "b.png"):
        (path / name).write_bytes(name.encode())
    (path / "t.csv").write_bytes(table)
    return f"csv:{path / 't.csv'}"


def paths(path: Path, last: bytes) -> str:
    return csv(path, b"path,label\na.png,cat\nb.png,dog\n" + last + b",bird\n")


def csv_ids(path: Path) -> str:
    return csv(path, b"path,label,id\na.png,cat,1\nb.png,dog,2\nb.png,bird,\xff\n")


def npz_ids(path: Path) -> str:
    np.savez(path / "t.npz", features=X, labels=["cat", "dog", "bird"], ids=["1", "2", "\ud800"])
    return f"npz:{path / 't.npz'}"


def folder(path: Path) -> str:
    for label, file in (("cat", "a.png"), ("dog", "b.png"), ("dog", "\udcff.png")):
        (path / label).mkdir(exist_ok=True)
        (path / label / file).write_bytes(b"" if file == "\udcff.png" else file.encode())
    return f"folder:{path}"


TIMES = pa.array([1, 2, 2**62], pa.timestamp("us"))
SOURCES: dict[str, Callable[[Path], str]] = {
    "parquet, a label that is no UTF-8": lambda path: parquet(path, label=strings(NO_UTF8)),
    "parquet, an id that is no UTF-8": lambda path: parquet(path, id=strings(NO_UTF8)),
    "parquet, an id that is no time": lambda path: parquet(path, id=TIMES),
    "csv, a path with NUL": lambda path: paths(path, b"c\0.png"),
    "csv, a path that is no UTF-8": lambda path: paths(path, b"c\xff.png"),
    "csv, a path that is half a pair": lambda path: paths(path, b"c\xed\xa0\x80.png"),
    "csv, a very long path": lambda path: paths(path, b"c" * 200_000),
    "csv, an id that is no UTF-8": csv_ids,
    "npz, an id that is half a pair": npz_ids,
    "folder, an empty file whose name is no UTF-8": folder,
}


@pytest.mark.parametrize("labels", [1, 3])
@pytest.mark.parametrize("kind", SOURCES)
def test_one_record_costs_itself_alone(kind: str, labels: int, tmp_path: Path) -> None:
    source = SOURCES[kind](tmp_path)
    assert sorted(classes_in(source, labels)) in ([-1, 0, 1], [0, 1, 2])


@pytest.mark.parametrize("kind", ["csv", "jsonl", "npz"])
def test_users_whose_names_are_no_utf8_are_two(kind: str, tmp_path: Path) -> None:
    """A Latin-1 table's Müller and Möller: as one user they would share a cap. So one who came
    would put records in the place of the other's, and move a sum twice as far as is charged."""
    names, path = ("Möller", "Müller"), tmp_path / f"t.{kind}"
    people = [(name.encode("latin-1"), place) for name in names for place in range(4)]
    if kind == "npz":
        users = [name for name, _ in people]
        np.savez(path, features=np.eye(8), labels=["cat"] * 8, users=users)
    else:
        row = b"%b,cat,%d" if kind == "csv" else b'{"user":"%b","label":"cat","text":"%d"}'
        rows = [row % (name, 10 * name[1] + place) for name, place in people]
        path.write_bytes(b"\n".join([b"user,label,x"] * (kind == "csv") + rows))
    dataset = Dataset(
        lineage="pets",
        source=f"{kind}:{path}",
        nominal_size=3,
        classes=NAMES,
        user="users" if kind == "npz" else "user",
        unit=Unit(by="user", cap=2),
        split=Split(test=0.0, validation=0.0),
    )
    found = survey(dataset, KEYS)
    assert sorted(index // 4 for index in found.rows.index.tolist()) == [0, 0, 1, 1]
    assert found.units == 2


def test_users_whose_names_hold_half_a_pair_of_utf_16_are_two(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [f"M{half}ller,cat,{place}" for half in "\ud801\ud802" for place in range(2)]
    said = "\n".join(["\ufeffuser,label,x", *rows]).encode("utf-16-le", "surrogatepass")
    path.write_bytes(said + b"?")  # and the file was cut off in the middle of a character
    dataset = Dataset(
        lineage="pets",
        source=f"csv:{path}",
        nominal_size=3,
        classes=NAMES,
        user="user",
        unit=Unit(by="user", cap=2),
    )
    assert survey(dataset, KEYS).units == 2


def test_a_name_in_a_list_that_is_no_utf8_costs_its_record_alone(tmp_path: Path) -> None:
    held = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), strings(NO_UTF8))
    assert classes_in(parquet(tmp_path, label=held), 3) == [0, 1, -1]


def test_a_label_that_is_nested_deeper_than_python_follows_is_none() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert text(deep) == "[...]"
    assert labels_of_record([deep, "cat"], 3) == [deep, "cat"]


def test_a_label_of_very_many_digits_numbers_no_class_of_another_source() -> None:
    class_of, _ = class_mapping(Matching(NAMES, 3, "csv:t.csv", NAMES, (), None))
    assert (class_of("1"), class_of("9" * 5000)) == (1, -1)


def test_a_list_of_truth_values_has_a_place_for_each_class(tmp_path: Path) -> None:
    held = pa.array([[True, False, True], [False, True, False], [False, False, False]])
    assert classes_in(parquet(tmp_path, label=held), 3) == [number_of({0, 2}, 3), 1, -1]


def test_hdf5_has_lists_of_any_length(tmp_path: Path) -> None:
    held = np.empty(3, object)
    held[:] = [np.array([0, 2]), np.array([1]), np.array([], np.int64)]
    with h5py.File(tmp_path / "t.hdf5", "w") as file:
        file["features"] = X
        file.create_dataset("labels", data=held, dtype=h5py.vlen_dtype(np.int64))
    assert classes_in(f"hdf5:{tmp_path / 't.hdf5'}", 3) == [number_of({0, 2}, 3), 1, -1]


def test_a_pipe_is_a_record_that_counts_as_nothing(tmp_path: Path) -> None:
    """Its reader would wait for ever: somebody who writes is there, so that a mistake ends here
    too."""
    os.mkfifo(tmp_path / "pipe.txt")
    held = os.open(tmp_path / "pipe.txt", os.O_RDWR)
    os.write(held, b"written")
    os.set_blocking(held, False)
    assert bytes_of(tmp_path / "pipe.txt") == b""
    assert os.read(held, 7) == b"written"
    os.close(held)


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    inside = tmp_path / "source" / "cat"
    inside.mkdir(parents=True)
    (inside / "own.txt").write_text("own")
    (inside / "up").symlink_to("..")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    assert from_texts(tmp_path / "source").files == [inside / "own.txt"]
    (tmp_path / "source" / "dog").symlink_to(tmp_path / "outside")
    with pytest.raises(BadInput, match=r"links to folders.*dataset.links: inside.*cp -rl"):
        from_texts(tmp_path / "source")


def test_a_file_that_is_a_link_counts_as_nothing(tmp_path: Path) -> None:
    (tmp_path / "source" / "cat").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "source" / "cat" / "own.txt").symlink_to(tmp_path / "secret.txt")
    for links in get_args(Links):
        found = from_texts(tmp_path / "source", Layout(links=links))
        assert [found.read(0)] == [b""]
        assert found.shut == found.files


def test_links_inside_a_source_are_followed_where_a_config_says_so(tmp_path: Path) -> None:
    store, cat = tmp_path / ".store", tmp_path / "cat"
    (store / "dogs").mkdir(parents=True)
    cat.mkdir()
    (store / "one.txt").write_text("one")
    (store / "dogs" / "two.txt").write_text("two")
    (cat / "one.txt").symlink_to("../.store/one.txt")
    (tmp_path / "dog").symlink_to(".store/dogs")
    found = from_texts(tmp_path, Layout(links="inside"))
    told = zip(found.labels, map(found.read, range(len(found.labels))), strict=True)
    assert sorted(told) == [("cat", b"one"), ("dog", b"two")]
    assert found.shut == []


@pytest.mark.parametrize(
    ("links", "says"),
    [
        ({"cat/up": ".."}, "in a loop"),
        ({"cat/self": "."}, "in a loop"),
        ({"cat/dogs": "../dog", "dog/cats": "../cat"}, "in a loop"),
        ({"cat/out": "../../outside"}, "out of it"),
        ({"cat/one": "../dog", "bird": "dog"}, "another link"),
    ],
    ids=["upwards", "to itself", "round", "out", "twice"],
)
def test_a_link_that_leads_round_or_out_is_refused_and_named_to_its_owner_alone(
    links: dict[str, str], says: str, tmp_path: Path
) -> None:
    for folder in ("source/cat", "source/dog", "outside"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "secret.txt").write_text("secret")
    for name, target in links.items():
        (tmp_path / "source" / name).symlink_to(target)
    with pytest.raises(Tangled, match=rf"a link .*{says}.*dpladder check") as refused:
        from_texts(tmp_path / "source", Layout(links="inside"))
    assert any(str(tmp_path / "source" / name) in refused.value.where for name in links)
    assert not any(name in str(refused.value) for name in links)


def test_check_names_the_links_that_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "own.txt").write_text("own")
    (tmp_path / "cat" / "up").symlink_to("..")
    found = survey(
        Dataset(lineage="pets", source=f"texts:{tmp_path}", nominal_size=3, classes=NAMES), KEYS
    )
    assert (
        "links    not followed, and what they lead to counts as nothing (dataset.links): 1 "
        f"({tmp_path}/cat/up)" in report(census(found))
    )


def _outside(file: h5py.File, name: str, secret: Path) -> None:
    """A data set of the file that is read from another one."""
    if name == "external":
        file.create_dataset("features", (2, 5), "u1", external=[(str(secret), 0, 10)])
    elif name == "virtual":
        layout = h5py.VirtualLayout((2, 5), "u1")
        layout[:] = h5py.VirtualSource(secret.with_suffix(".h5"), "rows", (2, 5))
        file.create_virtual_dataset("features", layout)
    else:
        kind = h5py.ExternalLink if name == "link" else None
        file["other"] = h5py.ExternalLink(secret.with_suffix(".h5"), "/")
        file["features"] = (
            kind(secret.with_suffix(".h5"), "rows") if kind else h5py.SoftLink("/other/rows")
        )


@pytest.mark.parametrize("name", ["external", "virtual", "link", "soft"])
def test_an_hdf5_file_that_leads_to_another_one_is_refused(tmp_path: Path, name: str) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"0123456789")
    with h5py.File(secret.with_suffix(".h5"), "w") as file:
        file["rows"] = np.ones((2, 5), np.uint8)
    path = tmp_path / "data.h5"
    with h5py.File(path, "w") as file:
        _outside(file, name, secret)
        file["labels"] = [0, 1]
    with pytest.raises(BadInput, match="Only what the file holds itself is read"):
        from_hdf5(path)


@pytest.mark.parametrize(
    "name", ["\033[2J.png", "a\nb", "\r", "\x9b1m", "\u202egnp", "\udcff", "\u2028"]
)
def test_a_name_steers_no_terminal_and_breaks_no_line(name: str) -> None:
    shown = printable(name)
    assert shown.isprintable()
    assert shown.encode("utf-8")


@pytest.mark.parametrize(
    "name", ["=HYPERLINK(1)", "@SUM(1).png", "+1", "-1", " =1", "\t=1", "\n=1"]
)
def test_a_name_is_no_formula(name: str) -> None:
    assert cell(name)[0] not in "=+-@ \t\r\n"
    assert cell("plain.png") == "plain.png"


def test_folders_that_programs_leave_beside_the_data_are_no_classes(tmp_path: Path) -> None:
    for folder in ("cat", "__MACOSX/cat", ".ipynb_checkpoints", ".hidden/dog", "dog/.thumbs"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "one.txt").write_text("told")
    assert from_texts(tmp_path).labels == ["cat"]
    assert from_texts(tmp_path / "dog" / ".thumbs" / "..").labels == []


NO_UTF8_NAME = st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF, categories=["Cs"])
NAMED = st.text(
    st.characters(codec="utf-8", exclude_characters="/\0") | NO_UTF8_NAME, min_size=1, max_size=12
).filter(
    lambda name: name not in (".", "..") and len(name.encode("utf-8", "surrogateescape")) < 200
)
ODD = st.sampled_from(
    ["=1+1", "@SUM(1).txt", "\033[2J", "a\nb.txt", "<script>", "up", "\u202egnp.txt"]
)
THINGS = st.sampled_from(["file", "folder", "up", "out", "pipe", "nothing"])
SECRET = b"lies outside of the source"


def _made(place: Path, thing: str, outside: Path) -> None:
    """Something of this kind at a place, if the file system has room for it there."""
    if place.exists() or place.is_symlink():
        return
    if thing == "folder":
        place.mkdir()
    elif thing == "pipe":
        os.mkfifo(place)
    elif thing in ("up", "out", "nothing"):
        place.symlink_to({"up": "..", "out": outside, "nothing": "nowhere"}[thing])
    else:
        place.write_bytes(b"told")


@settings(max_examples=60, deadline=None)
@given(
    tree=st.lists(st.tuples(NAMED | ODD, NAMED | ODD, THINGS), max_size=8),
    table=st.binary(max_size=60) | st.text("path,label\n\"'=@\0a", max_size=60).map(str.encode),
    cut=st.integers(0, 600),
)
def test_whatever_a_source_is_made_of_it_ends_in_one_message_or_is_counted(
    tree: list[tuple[str, str, str]], table: bytes, cut: int
) -> None:
    """Nothing is read outside of it, and what is told of it steers no terminal."""
    with TemporaryDirectory() as name:
        outside, folder = Path(name) / "outside", Path(name) / "source"
        outside.mkdir()
        (outside / "secret.txt").write_bytes(SECRET)
        for above, below, thing in (("cat", "own.txt", "file"), ("dog", "out", "out"), *tree):
            (folder / above).mkdir(parents=True, exist_ok=True)
            _made(folder / above / below, thing, outside)
        (Path(name) / "t.csv").write_bytes(table)
        np.savez(Path(name) / "t.npz", features=X, labels=["cat", "dog", "bird"])
        (Path(name) / "t.npz").write_bytes((Path(name) / "t.npz").read_bytes()[: 400 + cut])
        for source in (
            f"texts:{folder}",
            f"csv:{Path(name) / 't.csv'}",
            f"npz:{Path(name) / 't.npz'}",
        ):
            _held_or_refused(source)


def _held_or_refused(source: str) -> None:
    try:
        found = survey(Dataset(lineage="pets", source=source, nominal_size=3, classes=NAMES), KEYS)
    except BadInput:  # exit code 2
        return
    told = report(check_every_record(found))
    assert all(line.isprintable() for line in told.split("\n"))
    if found.source.kind in ("files", "texts"):
        assert SECRET not in [found.source.read(row.index) for row in each_row(found.rows)]


def _whole(folder: Path, kind: str) -> Path:
    """A small file of this kind, as its owner would write it."""
    path = folder / f"t.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"x": X[:, 0], "label": NAMES, "id": ["1", "2", "3"]}), path)
    elif kind == "npz":
        np.savez(path, features=X, labels=NAMES, ids=["1", "2", "3"])
    else:
        with h5py.File(path, "w") as file:
            file["features"] = X
            # of one length: in a damaged heap of strings of any length libhdf5 may walk for ever
            # (HDFGroup/hdf5, issue 1707), which nobody above it can stop
            file["labels"] = np.array(NAMES, "S")
            file["ids"] = np.arange(3)
    return path


DAMAGE = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=12
)
CUT = st.none() | st.floats(0, 1)


def damaged(path: Path, damage: list[tuple[float, int]], cut: float | None) -> Path:
    """The file with some bytes replaced, and cut short."""
    held = bytearray(path.read_bytes())
    for place, byte in damage:
        held[int(place * len(held))] = byte
    path.write_bytes(held if cut is None else held[: int(cut * len(held))])
    return path


@pytest.mark.parametrize("kind", ["parquet", "hdf5", "npz"])
@settings(max_examples=60, deadline=None)
@given(damage=DAMAGE, cut=CUT)
def test_a_file_with_damage_ends_in_one_message_or_is_counted(
    kind: str, damage: list[tuple[float, int]], cut: float | None
) -> None:
    with TemporaryDirectory() as name:
        _held_or_refused(f"{kind}:{damaged(_whole(Path(name), kind), damage, cut)}")


def test_a_row_that_a_damaged_file_does_not_give_back_counts_as_nothing(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 50))
    with h5py.File(tmp_path / "t.hdf5", "w") as file:
        file.create_dataset("features", data=rows, chunks=(10, 50), fletcher32=True)
        file["labels"] = np.arange(40) % 2
    held = bytearray((tmp_path / "t.hdf5").read_bytes())
    held[held.index(rows[25].tobytes())] ^= 1
    (tmp_path / "t.hdf5").write_bytes(held)
    found = from_hdf5(tmp_path / "t.hdf5")
    assert [index for index in range(40) if not found.read(index).any()] == [*range(20, 30)]
    assert np.array_equal(found.read(19), rows[19])


def test_an_archive_of_a_future_version_is_one_message(tmp_path: Path) -> None:
    path = _whole(tmp_path, "npz")
    held = bytearray(path.read_bytes())
    held[held.index(b"PK\1\2") + 6] = 255
    path.write_bytes(held)
    with pytest.raises(BadInput, match=r"cannot be read as \.npz"):
        from_npz(path)


def _csv_twice(path: Path) -> None:
    path.write_text("age,,label,age,\n1,2,cat,3,4\n")


def _parquet_twice(path: Path) -> None:
    columns = [pa.array([1.0]), pa.array([2.0]), pa.array(["cat"])]
    pq.write_table(pa.table(columns, names=["age", "age", "label"]), path)


def _npz_twice(path: Path) -> None:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as file:
        warnings.simplefilter("ignore")
        for name in ("features", "age", "labels", "age"):
            with file.open(f"{name}.npy", "w") as entry:
                np.save(entry, np.ones((2, 2)))


TWICE = {"csv": _csv_twice, "parquet": _parquet_twice, "npz": _npz_twice}


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("kind", TWICE)
def test_a_name_that_stands_twice_is_refused_and_shown_to_its_owner(
    kind: str, labelled: bool, tmp_path: Path
) -> None:
    """The last such column was read: epsilon went on another one than the config's author saw."""
    path = tmp_path / f"pets.{kind}"
    TWICE[kind](path)
    with pytest.raises(BadInput, match="columns of one name") as caught:
        open_source(f"{kind}:{path}", Layout(columns=("age",), labelled=labelled))
    assert caught.value.private == "More than one is called age."
    assert "age" not in str(caught.value)  # without a header it is a record's value


@pytest.mark.parametrize("name", ["features", "labels", "users", "splits"])
@pytest.mark.parametrize("chunks", [(1, 2**20), (64, 2**20 + 1)])
def test_an_hdf5_file_of_kilobytes_is_not_unpacked_to_what_it_claims(
    name: str, chunks: tuple[int, int], tmp_path: Path
) -> None:
    """64 GiB were asked for."""
    path = tmp_path / "pets.h5"
    with h5py.File(path, "w") as file:
        for one in {"features", "labels", name} - {name}:
            file[one] = np.ones((400, 2)[: 2 if one == "features" else 1])
        file.create_dataset(name, (400, 2**33), "f8", chunks=chunks)
    with pytest.raises(BadInput, match="claim more than the file holds") as caught:
        from_hdf5(path)
    assert caught.value.private == f"They are {name}."


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (gzip.compress(b"age,label\n1,cat\n", mtime=0), "packed by gzip"),
        (b"PK\x03\x04\x14\0\0\0", "as .xlsx is"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", r"\.xls"),
        (b"PAR1\x15\x04", "parquet:<path>"),
        (b"\x89HDF\r\n", "hdf5:<path>"),
        ("age,label\n1,cat\n".encode("utf-16-le"), "UTF-16 without its mark"),
        (b"age|label\n1|cat\n", r"has \| between the names"),
    ],
)
def test_a_file_that_is_no_csv_is_called_what_it_is(
    content: bytes, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "pets.csv"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=says):
        open_source(f"csv:{path}", Layout())


def test_an_endless_device_is_no_table_though_it_exists() -> None:
    with pytest.raises(BadInput, match="/dev/zero is no file of that kind"):
        open_source("csv:/dev/zero", Layout())


def test_a_name_that_stands_twice_in_an_object_costs_its_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "pets.jsonl"
    path.write_text(
        '{"text": "a", "label": "cat", "label": "dog"}\n{"text": "b", "label": "dog"}\n'
    )
    source = open_source(f"jsonl:{path}", Layout(columns=("label",)))
    assert [source.labels[place] for place in range(2)] == [None, "dog"]


def test_a_table_whose_columns_have_no_names_in_utf8_is_one_message(tmp_path: Path) -> None:
    path = _whole(tmp_path, "parquet")
    path.write_bytes(path.read_bytes().replace(b"label", b"la\xffel"))
    with pytest.raises(BadInput, match="is truncated, unreadable or not parquet"):
        from_parquet(path)


@pytest.mark.parametrize("links", get_args(Links))
def test_extraction_follows_the_links_that_preparation_followed(
    links: Links, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    (source / ".store").mkdir(parents=True)
    (source / "cat").mkdir()
    (source / ".store" / "one.txt").write_text("one")
    (source / "cat" / "one.txt").symlink_to("../.store/one.txt")
    dataset = Dataset(
        lineage="pets", source=f"texts:{source}", nominal_size=3, classes=NAMES, links=links
    )
    known = manifest_of(tmp_path, dataset)
    assert known.layout.links == links
    assert (known.labels >= 0).tolist() == [links == "inside"]


@pytest.mark.parametrize("told", [b"{", b"\xff", b"[" * 9], ids=["cut", "no UTF-8", "open"])
def test_what_pandas_told_of_a_table_is_damaged_with_it(told: bytes, tmp_path: Path) -> None:
    table = pa.table({"label": ["0"], "x": [1.0]}).replace_schema_metadata({"pandas": told})
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(BadInput, match="is truncated, unreadable or not parquet"):
        from_parquet(tmp_path / "t.parquet")


@pytest.mark.parametrize("told", [b"[]", b'{"index_columns": 3}', b"null"])
def test_what_pandas_did_not_tell_names_no_index(told: bytes, tmp_path: Path) -> None:
    table = pa.table({"label": ["0"], "x": [1.0]}).replace_schema_metadata({"pandas": told})
    pq.write_table(table, tmp_path / "t.parquet")
    assert from_parquet(tmp_path / "t.parquet").width == 1


TABLES = {
    "features": "age,height,label",
    "texts": "text,label",
    "files": "path,label",
}


def table_of(folder: Path, header: str, lines: list[str]) -> str:
    """A table of these lines, each a record of its own."""
    (folder / "t.csv").write_bytes("\n".join([header, *lines, ""]).encode("utf-8", "replace"))
    return f"csv:{folder / 't.csv'}"


def lines_of(header: str, number: int) -> list[str]:
    cells = header.count(",")
    return [",".join([*[str(place)] * cells, NAMES[place % 3]]) for place in range(number)]


def told(source: Any) -> list[tuple[object, ...]]:
    """Each row, as far as it is not read from a file."""
    rows = range(len(source.labels))
    held = [None if source.kind == "files" else source.read(row) for row in rows]
    files = source.files or [None] * len(held)
    each = zip(source.labels, held, files, strict=True)
    return [(label, np.asarray(content).tolist(), str(file)) for label, content, file in each]


ANYTHING = st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=("Cs",)))
ODD = st.one_of(ANYTHING, st.lists(st.sampled_from(['"', ",", "cat", "1", " ", ";"])).map("".join))


@pytest.mark.ci
@pytest.mark.parametrize("kind", TABLES)
@settings(max_examples=200, deadline=None)
@given(line=ODD, place=st.integers(0, 9))
def test_no_line_of_a_table_takes_another_one_along(kind: str, line: str, place: int) -> None:
    header = TABLES[kind]
    with TemporaryDirectory() as folder:
        lines = lines_of(header, 10)
        before = told(open_source(table_of(Path(folder), header, lines)))
        lines[place] = f"x{line}" if not line.strip() else line
        after = told(open_source(table_of(Path(folder), header, lines)))
    assert len(after) == len(before)
    del before[place], after[place]
    assert after == before


@pytest.mark.parametrize("kind", TABLES)
def test_a_quote_that_no_line_closes_takes_no_row_in_quotes_along(
    kind: str, tmp_path: Path
) -> None:
    """Of the lines behind it, the first with a quote shows that none was open there."""
    header = TABLES[kind]
    lines = lines_of(header, 10)
    lines[6] = ",".join(f'"{cell}"' for cell in lines[6].split(","))
    before = told(open_source(table_of(tmp_path, header, lines)))
    first, _, last = lines[2].rpartition(",")
    lines[2] = f'{first},"{last}' if first else f'"{last}'
    after = told(open_source(table_of(tmp_path, header, lines)))
    assert len(after) == len(before)
    assert [*after[:2], *after[3:]] == [*before[:2], *before[3:]]


@pytest.mark.parametrize("odd", ['"1,1,cat', '1,"1,cat', '"1"2,1,cat', "1,1,cat,dog"])
def test_a_row_that_does_not_parse_counts_as_nothing_and_a_check_tells_how_many(
    odd: str, tmp_path: Path
) -> None:
    lines = lines_of(TABLES["features"], 1500)
    lines[100] = lines[1000] = odd
    source = table_of(tmp_path, TABLES["features"], lines)
    more: dict[str, Any] = {"classes": NAMES, "split": Split(test=0.0, validation=0.0)}
    found = survey(Dataset(lineage="pets", source=source, nominal_size=1500, **more), KEYS)
    assert sum(row.label >= 0 for row in each_row(found.rows)) == 1498
    assert "row does not parse: a quote that is not closed" in (said := report(census(found)))
    assert ": 2 (line 102, line 1002)" in said


CELL = st.text(st.sampled_from('",;\t\r\n \0\x1c\x85\u2028\ufeffa1'), max_size=8)
WRITERS = [
    {"delimiter": between, "lineterminator": end, "quoting": quoting}
    for between in ",;\t"
    for end in ("\n", "\r\n")
    for quoting in (QUOTE_MINIMAL, QUOTE_ALL, QUOTE_NONNUMERIC)
]


def at_a_rows_end(cell: str) -> str:
    return cell.rstrip("\r")


def written_rows(path: Path, rows: list[list[str]], manner: Any) -> Any:
    """Rows as Python's writer of CSV has them, read again."""
    header = [f"c{place}" for place in range(len(rows[0]) - 1)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer(file, **manner).writerows([[*header, "label"], *rows])
    return columns_in(path)


@settings(max_examples=200, deadline=None)
@given(
    rows=st.integers(1, 3).flatmap(
        lambda width: st.lists(
            st.lists(CELL, min_size=width + 1, max_size=width + 1), min_size=1, max_size=6
        )
    ),
    manner=st.sampled_from(WRITERS),
)
def test_a_table_of_a_csv_writer_comes_back_row_for_row(rows: list[list[str]], manner: Any) -> None:
    """A cell that begins other rows would make several records of one, which is charged as one."""
    with TemporaryDirectory() as folder:
        table = written_rows(Path(folder) / "t.csv", rows, manner)
    # Python 3.11 leaves a carriage return at a row's end unquoted, which is how lines end elsewhere
    assert [[*map(at_a_rows_end, row)] for row in zip(*table.columns.values(), strict=True)] == [
        [*map(at_a_rows_end, row)] for row in rows
    ]
    assert not table.unread


def test_a_cell_of_pandas_with_rows_in_it_is_one_record(tmp_path: Path) -> None:
    forged = "f\n" + "1,m,ill\n" * 1000 + "2,m"
    table = pd.DataFrame({"age": [3, 4], "sex": [forged, "m"], "label": ["well", "ill"]})
    table.to_csv(tmp_path / "t.csv", index=False)
    source = open_source(f"csv:{tmp_path / 't.csv'}", Layout(("age",)))
    assert list(source.labels) == ["well", "ill"]
    assert (list(source.unread), list(source.spread)) == ([], ["lines 2-1003"])


def test_rows_of_several_lines_and_rows_that_do_not_parse_are_shown_by_their_lines(
    tmp_path: Path,
) -> None:
    lines = ['"1\n\n1",1,cat', "1,1,cat", '1,"1,cat', "", "1,1,dog", '1,1"1,dog', "1,1,dog"]
    source = table_of(tmp_path, TABLES["features"], lines)
    more: dict[str, Any] = {"classes": NAMES, "split": Split(test=0.0, validation=0.0)}
    found = survey(Dataset(lineage="pets", source=source, nominal_size=4, **more), KEYS)
    assert list(found.source.labels) == ["cat", "cat", None, "dog", None, "dog"]
    said = report(census(found))
    assert "each one record: 1 (lines 2-4)" in said
    assert "more cells than the header has: 2 (line 6, line 9)" in said


@pytest.mark.parametrize("between", [*",;\t"])
def test_many_quotes_that_stay_open_cost_their_own_rows_alone(between: str, tmp_path: Path) -> None:
    lines = [f'a{between}"{place}{between}"b"{between}"' for place in range(20_000)]
    source = table_of(tmp_path, between.join(("age", "height", "weight", "label")), lines)
    assert len(open_source(source, Layout(("age",))).labels) == len(lines)


def test_lines_end_as_the_header_does(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for content, wanted in (
        (b"text,label\ra,cat\rb,dog\r", ["a", "b"]),
        (b"text,label\na\rcat\rb,dog\n", ["a\rcat\rb"]),
        (b'text,label\r\n"a\r\nb",cat\r\nb,dog\r\n', ["a\r\nb", "b"]),
    ):
        path.write_bytes(content)
        assert columns_in(path).columns["text"] == wanted


def test_a_quote_that_is_not_closed_costs_one_row_of_a_table_beside_images(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    for name in "abc":
        (tmp_path / f"images/{name}.png").write_bytes(b"")
    table_of(tmp_path, "file,label", ["a,cat", '"b,dog', "c,cat"])
    places = {"images": str(tmp_path / "images"), "table": str(tmp_path / "t.csv"), "key": "file"}
    source = open_source(as_source_text(places))
    assert list(source.labels) == ["cat", None, "cat"]
    assert list(source.unread) == ["line 3"]
    assert [str(file).rpartition("/")[2] for file in source.files or ()] == [
        "a.png",
        "t.csv:3",
        "c.png",
    ]
