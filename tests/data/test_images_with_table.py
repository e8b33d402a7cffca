"""Images in a folder, and what they show in a table elsewhere: clinics' layouts (CheXpert,
ChestX-ray14, MIMIC-CXR) of made-up patients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from documented import BLOCK, ROOT
from extracted import KEYS
from PIL import Image
from support import each_row

from dpladder.config.dataset_sections import Dataset
from dpladder.config.images_with_table import as_source_text
from dpladder.data.census import check_every_record, report
from dpladder.data.datasets import open_source
from dpladder.data.prepare import Survey, survey
from dpladder.errors import BadInput
from dpladder.plan.follows import fingerprint

CLASSES = ["Edema", "Mass"]


def images(root: Path, *ways: str) -> Path:
    for place, way in enumerate(ways):
        (root / way).parent.mkdir(parents=True, exist_ok=True)
        pixels = np.full((9, 9), place + 1, np.uint8)
        Image.fromarray(pixels).save(root / way)
    return root


def table(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def looked(tmp_path: Path, apart: dict[str, Any], **keys: Any) -> Survey:
    places = {"images": str(tmp_path / "images"), "table": str(tmp_path / "labels.csv")}
    dataset = Dataset(
        lineage="clinic",
        source=as_source_text(places | apart),
        nominal_size=10,
        classes=tuple(CLASSES),
        **keys,
    )
    return survey(dataset, KEYS)


def told(found: Survey) -> dict[str, int]:
    """The class of each image, by its path."""
    files = found.source.files
    assert files is not None
    return {"/".join(Path(files[row.index]).parts[-2:]): row.label for row in each_row(found.rows)}


def test_a_row_names_an_image_by_its_path_with_or_without_what_says_its_format(
    tmp_path: Path,
) -> None:
    images(tmp_path / "images", "p1/a.png", "p1/b.png", "p2/a.png", "p3/a.png")
    table(
        tmp_path / "labels.csv",
        "Path,dx",
        "p1/a.png,Edema",
        "./p1/b,Mass",
        "p2\\a.png,Mass",
        "../images/p3/a.png,Mass",  # out of the folder, and back
        "p9/a.png,Mass",
    )
    found = looked(tmp_path, {"key": "Path"}, label="dx")
    assert {way: label for way, label in told(found).items() if label >= 0} == {
        "p1/a.png": 0,
        "p1/b.png": 1,
        "p2/a.png": 1,
    }
    assert [why for _, why in found.problems] == ["file is missing or empty"] * 2
    said = report(check_every_record(found))
    assert f"images   no row of the table is about them: 1 ({tmp_path}/images/p3/a.png)" in said
    assert f"file is missing or empty: 2 ({tmp_path}/labels.csv:5, " in said


def test_a_row_names_an_image_by_its_file_name_wherever_it_lies(tmp_path: Path) -> None:
    images(tmp_path / "images", "images_001/images/1_0.png", "images_002/images/2_0.png")
    table(tmp_path / "labels.csv", "Image Index,dx", "1_0.png,Edema", "2_0,Mass")
    found = looked(tmp_path, {"key": "Image Index", "names": "file"}, label="dx")
    assert told(found) == {"images/1_0.png": 0, "images/2_0.png": 1}


def test_a_row_of_a_study_is_about_all_its_images_and_the_patient_stands_on_the_way(
    tmp_path: Path,
) -> None:
    images(
        tmp_path / "images", *("p10/p1/s1/x.png", "p10/p1/s1/y.png", "p10/p1/s2/x.png"), "p11/z.png"
    )
    table(
        tmp_path / "labels.csv",
        "subject_id,study_id,id,dx",
        "1,1,7,Edema",
        "1,2,7,Mass",
    )
    apart = {"key": "s{study_id}", "names": 3, "patient": 2}
    found = looked(tmp_path, apart, label="dx", unit={"by": "user", "cap": 9})
    assert told(found) == {"s1/x.png": 0, "s1/y.png": 0, "s2/x.png": 1}
    assert found.units == 1
    assert not found.problems


@pytest.mark.parametrize(
    ("apart", "shared"),
    [
        ({"key": "name", "names": "file"}, "1 (a.png)"),
        ({"key": "study", "names": 2, "patient": 1}, "1 (s1)"),
        ({"key": "patient", "names": 1, "patient": 1}, None),
        ({"key": "{patient}/{study}/{name}", "patient": 1}, None),
    ],
    ids=str,
)
def test_names_that_several_folders_have_are_told(
    apart: dict[str, Any], shared: str | None, tmp_path: Path
) -> None:
    """One patient's row would then be about another's image, and take it away."""
    images(tmp_path / "images", "p1/s1/a.png", "p1/s1/b.png", "p2/s1/a.png")
    rows = ("p1,s1,a.png,Edema", "p1,s1,b.png,Edema", "p2,s1,a.png,Mass")
    table(tmp_path / "labels.csv", "patient,study,name,dx", *rows)
    said = report(check_every_record(looked(tmp_path, apart, label="dx")))
    warned = "names in the table that images of several folders have"
    assert (f"{warned}: {shared}. " in said) if shared else (warned not in said)


def test_a_split_in_a_third_table_comes_in_by_the_lines_of_the_docs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MIMIC's: labels by study, the split by image, whose validation part is called validate."""
    studies = {1: "train", 2: "validate", 3: "test", 4: "train"}
    images(tmp_path / "images", *(f"p1{s}/s{s}/{v}.png" for s in studies for v in "ab"))
    lines = [f"{s}{v},{s},1{s},{part}" for s, part in studies.items() for v in "ab"]
    table(tmp_path / "mimic-cxr-2.0.0-split.csv", "dicom_id,study_id,subject_id,split", *lines[:-2])
    table(
        tmp_path / "mimic-cxr-2.0.0-chexpert.csv",
        "subject_id,study_id,dx",
        *(f"1{s},{s},{CLASSES[s % 2]}" for s in studies),
    )
    page = (ROOT / "docs" / "data.md").read_text("utf-8")
    [joined] = [code for _, code in BLOCK.findall(page) if "merge(split" in code]
    monkeypatch.chdir(tmp_path)
    exec(joined, {})
    (tmp_path / "chexpert.csv").rename(tmp_path / "labels.csv")
    apart = {"key": "s{study_id}", "names": 2, "patient": 1}
    found = looked(
        tmp_path, apart, label="dx", unit={"by": "user", "cap": 2}, split={"rule": "given"}
    )
    assert sorted(row.part for row in each_row(found.rows)) == [0, 0, 1, 1, 2, 2]
    assert not found.problems
    assert len(told(found)) == 6
    assert len(found.source.unnamed) == 2  # of the study that is in no part


def test_an_image_of_which_two_rows_differ_counts_as_nothing_and_copies_count_once(
    tmp_path: Path,
) -> None:
    images(tmp_path / "images", "p1/a.png", "p1/b.png", "p2/a.png")
    table(tmp_path / "labels.csv", "patient,dx", "p1,Edema", "p1,Mass", "p2,Mass", "p2,Mass")
    found = looked(tmp_path, {"key": "patient", "names": 1}, label="dx")
    assert told(found) == {"p2/a.png": 1}
    assert sorted(why for _, why in found.problems) == [
        "copy of another record",
        *["differs from another row with its id"] * 4,
    ]


def test_a_relabelled_image_stays_the_same_record_in_its_part(tmp_path: Path) -> None:
    images(tmp_path / "images", *(f"p{place}/a.png" for place in range(20)))
    seen = []
    for label in CLASSES:
        table(tmp_path / "labels.csv", "key,dx", *(f"p{place},{label}" for place in range(20)))
        found = looked(tmp_path, {"key": "key", "names": 1}, label="dx")
        seen.append([(row.record, row.part) for row in each_row(found.rows)])
    assert seen[0] == seen[1]


def test_nothing_outside_the_folder_is_read_by_way_of_a_row_or_a_link(tmp_path: Path) -> None:
    images(tmp_path, "elsewhere/a.png", "images/p1/a.png")
    (tmp_path / "images/p1/link.png").symlink_to(tmp_path / "elsewhere/a.png")
    rows = (f"{tmp_path}/elsewhere/a.png", "../elsewhere/a.png", "p1/link.png")
    table(tmp_path / "labels.csv", "Path,dx", "p1/a.png,Edema", *(f"{row},Edema" for row in rows))
    found = looked(tmp_path, {"key": "Path"}, label="dx")
    assert [label for label in told(found).values() if label >= 0] == [0]
    assert {found.source.read(index) for index in (1, 2, 3)} == {b""}


def test_findings_of_a_column_each_and_a_parquet_table(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    images(tmp_path / "images", "1/a.png", "2/a.png")
    frame = pandas.DataFrame({"patient": [1.0, 2.0], "Edema": [1.0, 0.0], "Mass": [-1.0, 1.0]})
    frame.to_parquet(tmp_path / "labels.parquet")
    found = looked(
        tmp_path,
        {"table": str(tmp_path / "labels.parquet"), "key": "patient", "names": 1},
        label=tuple(CLASSES),
        labels="many",
    )
    assert told(found) == {"1/a.png": 1 + 3 * 2, "2/a.png": 0 + 3 * 1}


def test_what_is_missing_is_one_message(tmp_path: Path) -> None:
    images(tmp_path / "images", "p1/a.png")
    table(tmp_path / "labels.csv", "patient,dx", "p1,Edema")
    with pytest.raises(BadInput, match=r"has no column Path. .*source.key") as error:
        looked(tmp_path, {"key": "Path"}, label="dx")
    assert error.value.private == "It holds patient, dx."
    with pytest.raises(BadInput, match="has no label") as error:
        looked(tmp_path, {"key": "patient", "names": 1}, unit={"by": "user"}, user="dx")
    assert error.value.private == "It holds patient, dx."
    with pytest.raises(BadInput, match="has no user column"):
        looked(tmp_path, {"key": "patient", "names": 1}, label="dx", unit={"by": "user"})
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(BadInput, match="not parquet"):
        looked(tmp_path, {"table": str(tmp_path / "bad.parquet"), "key": "patient"})


def test_the_fingerprint_follows_images_and_table_alike(tmp_path: Path) -> None:
    import os

    images(tmp_path / "images", "p1/a.png")
    labels = table(tmp_path / "labels.csv", "a,label", "p1,Edema")
    places = {"images": str(tmp_path / "images"), "table": str(labels), "key": "a"}
    source = as_source_text(places)
    assert len(open_source(source).labels) == 1
    seen = [fingerprint(source)]
    for path in (labels, tmp_path / "images/p1"):
        time = path.stat().st_mtime_ns + 10**10 * (len(seen))
        os.utime(path, ns=(time, time))
        seen.append(fingerprint(source))
    assert len({*seen}) == 3
