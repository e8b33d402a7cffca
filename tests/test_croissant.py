"""Croissant descriptions: of what a config declares public, all that stands there is so; of private
data nothing.

What is required of a description is held here by itself; where `mlcroissant` is installed, it reads
each one and its records too.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support import TINY, mixture

from dpladder.cli import main
from dpladder.commands.croissant import CONFORMS, UNSTATED
from dpladder.config.load import overlay
from dpladder.privacy.statement.records import file_digest

REQUIRED = {"@context", "@type", "conformsTo", "name", "description", "license"}
ROWS = [("a text", "b", 0.5, 3), ("another, with a comma", "c", -1.0, 4)]


def described(folder: Path, changes: dict[str, Any], *arguments: str) -> dict[str, dict[str, Any]]:
    """The descriptions that a project's config makes, by name."""
    np.savez(folder / "data.npz", **mixture(30))
    (folder / "config.yaml").write_text(yaml.safe_dump(overlay(TINY, changes)), "utf-8")
    assert main(["croissant", str(folder), *arguments]) == 0
    found = {
        path.stem: json.loads(path.read_text("utf-8"))
        for path in sorted((folder / "results" / "croissant").iterdir())
    }
    for document in found.values():
        assert set(document) >= REQUIRED
        assert document["conformsTo"] == CONFORMS
        assert "data.npz" not in json.dumps(document)
    return found


def read(folder: Path, name: str, data: Path) -> list[dict[str, Any]]:
    """What a reader of Croissant finds in a description that lies beside its data."""
    mlcroissant = pytest.importorskip("mlcroissant")
    beside = data.parent / f"{name}.json"
    shutil.copy(folder / "results" / "croissant" / f"{name}.json", beside)
    return [*mlcroissant.Dataset(beside).records("records")]


def fields(document: dict[str, Any]) -> dict[str, str]:
    (records,) = document["recordSet"]
    return {field["@id"].removeprefix("records/"): field["dataType"] for field in records["field"]}


def test_a_table_is_told_by_its_digest_and_its_columns(tmp_path: Path) -> None:
    table = tmp_path / "public" / "test.csv"
    table.parent.mkdir()
    table.write_text('a,b,label\n0.5,1,0\n1.5,2,"2"\n', "utf-8")
    found = described(tmp_path, {"dataset": {"public_test": "csv:public/test.csv"}})
    assert list(found) == ["test"]
    (file,) = found["test"]["distribution"]
    assert (file["contentUrl"], file["sha256"]) == ("test.csv", file_digest(table))
    assert file["encodingFormat"] == "text/csv"
    assert fields(found["test"]) == {"a": "sc:Float", "b": "sc:Integer", "label": "sc:Integer"}
    assert found["test"]["license"] == UNSTATED
    assert str(tmp_path) not in json.dumps(found)


def test_tables_can_be_read_by_what_is_said_of_them(tmp_path: Path) -> None:
    import pandas as pd

    rows = pd.DataFrame(ROWS, columns=["text", "label", "weight", "age"])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.to_csv(tmp_path / "tabs.csv", index=False, sep="\t")
    rows.to_parquet(tmp_path / "rows.parquet", index=False)
    rows.to_json(tmp_path / "rows.jsonl", orient="records", lines=True)
    for name in ("rows.csv", "tabs.csv", "rows.parquet", "rows.jsonl"):
        kind = name.rpartition(".")[2]
        described(tmp_path, {"dataset": {"public_test": f"{kind}:{name}"}})
        for place, record in enumerate(read(tmp_path, name.partition(".")[0], tmp_path / name)):
            said = {key.removeprefix("records/"): value for key, value in record.items()}
            said |= {key: value.decode() for key, value in said.items() if isinstance(value, bytes)}
            wanted = dict(zip(rows.columns, ROWS[place], strict=True))
            assert said == {key: wanted[key] for key in said}
            assert {"text", "label"} <= set(said)


@pytest.mark.parametrize(
    ("kind", "suffix", "of"), [("folder", ".png", "sc:ImageObject"), ("texts", ".txt", "sc:Text")]
)
def test_a_folder_is_a_set_of_files_whose_first_folder_is_the_label(
    tmp_path: Path, kind: str, suffix: str, of: str
) -> None:
    from PIL import Image

    for name in ("a+b/one", "c/deep/two"):
        path = tmp_path / "pub" / f"{name}{suffix}"
        path.parent.mkdir(parents=True)
        if kind == "texts":
            path.write_text("some words", "utf-8")
        else:
            Image.new("RGB", (4, 4)).save(path)
    (tmp_path / "pub" / "c" / "notes.md").write_text("no record", "utf-8")
    found = described(tmp_path, {"dataset": {"public_sample": f"{kind}:pub"}})
    assert found["pub"]["distribution"][0]["includes"] == [f"pub/**/*{suffix}"]
    assert fields(found["pub"]) == {"content": of, "label": "sc:Text"}
    labels = sorted(record["records/label"] for record in read(tmp_path, "pub", tmp_path / "pub"))
    assert labels == [b"a+b", b"c"]


def test_published_data_is_told_by_its_publisher_and_once(tmp_path: Path) -> None:
    also = [
        {
            "name": name,
            "source": "torchvision:STL10",
            "declared_public": True,
            "classes": ["a", "b", "c"],
        }
        for name in ("one", "two")
    ]
    changes = {
        "dataset": {
            "source": "torchvision:CIFAR10",
            "classes": 10,
            "public_test": "torchvision:DTD/test",
        },
        "features": {"model": "efficientnet_lite0"},
        "evaluate": {"also": also},
    }
    changes["dataset"]["classes"] = ["a", "b", "c"]
    found = described(tmp_path, changes)
    assert set(found) == {"torchvision-DTD-test", "torchvision-STL10"}
    stl = found["torchvision-STL10"]
    assert stl["distribution"][0]["md5"] == "91f7769df0f17e558f3565bffb0c7dfb"
    assert "test one of experiment main, test two of experiment main" in stl["description"]


def test_a_public_sample_is_that_of_those_who_train_on_it(tmp_path: Path) -> None:
    for name in ("public", "others"):
        np.savez(tmp_path / f"{name}.npz", **mixture(20, seed=1))
    data = {"lineage": "others", "source": "npz:others.npz", "nominal_size": 20}
    people = {"dataset": data, "privacy": {"epsilon": 1.0}, "evaluate": {"of": "main"}}
    changes = {"dataset": {"public_sample": "npz:public.npz"}, "experiments": {"others": people}}
    (document,) = described(tmp_path, changes).values()
    assert "sample of experiment main." in document["description"]


def test_what_its_publisher_wrote_in_stays(tmp_path: Path) -> None:
    np.savez(tmp_path / "public.npz", **mixture(20, seed=1))
    changes = {"dataset": {"public_test": "npz:public.npz"}}
    (document,) = described(tmp_path, changes).values()
    path = tmp_path / "results" / "croissant" / "public.json"
    path.write_text(json.dumps(document | {"license": "CC0", "description": "mine"}), "utf-8")
    (again,) = described(tmp_path, changes).values()
    assert again == document | {"license": "CC0"}


def test_nothing_is_told_of_private_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "data.npz", **mixture(30))
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(TINY), "utf-8")
    assert main(["croissant", str(tmp_path)]) == 2
    assert "declares no input public" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("public", ["csv:data.npz", "folder:.", "npz:./data.npz"])
def test_a_private_file_that_is_declared_public_elsewhere_is_not_described(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], public: str
) -> None:
    np.savez(tmp_path / "data.npz", **mixture(30))
    changes = {"dataset": {"public_sample": public}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(overlay(TINY, changes)), "utf-8")
    assert main(["croissant", str(tmp_path)]) == 2
    assert "is private data of lineage tiny" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_a_data_set_that_is_public_as_a_whole_is_described(tmp_path: Path) -> None:
    changes = {
        "dataset": {"source": "digits", "classes": 10, "declared_public": True},
        "features": {"model": "efficientnet_lite0"},
    }
    found = described(tmp_path, changes)
    assert found["digits"]["alternateName"] == "Optical Recognition of Handwritten Digits"
