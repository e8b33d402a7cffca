"""A model as a folder that needs no dpladder: the same predictions to rounding, and a card that
claims what is stated."""

from __future__ import annotations

import ast
import json
import math
import re
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from counted import counts_of
from PIL import Image
from statements import Finished
from support import in_new_python
from use.test_model import saved

import dpladder
from dpladder.cli import main
from dpladder.commands import mlflow
from dpladder.config.features_sections import Features
from dpladder.config.learner_sections import Lora
from dpladder.config.level_texts import level_as_text
from dpladder.data.backbones import encoder
from dpladder.data.cache import public_network_of
from dpladder.data.depths import depths_for, stored_depths
from dpladder.data.sources import Source
from dpladder.errors import BadInput
from dpladder.learn import weights
from dpladder.learn.finetune.shapes import shapes
from dpladder.learn.interface import Constants, Weights
from dpladder.learn.measures.tested import GroupNames
from dpladder.methods.dp_finetune import FineTune
from dpladder.privacy.accounting.rounding import round_up
from dpladder.privacy.arrays import curves_width
from dpladder.privacy.statement.documents import SealedStatement
from dpladder.privacy.statement.facts import ModelFacts, lineage_facts
from dpladder.privacy.statement.page import page
from dpladder.section import from_document
from dpladder.use import graph, raw_rows, standalone
from dpladder.use.card import card
from dpladder.use.export import export

RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _every_test_draws_the_same_numbers_in_whatever_order_they_run() -> None:
    globals()["RANDOM"] = np.random.default_rng(0)


# a curve, and the products of another one and two levels
CURVES = [[[0, [-1.0, -0.5, 0.25, 1.0]]], [[1, [-1.0, 0.0, 1.0]], [4, 2]]]
CONFIG = {
    "dataset.lineage": "pets",
    "dataset.unit": {"by": "record", "cap": 1},
    "privacy.relation": "add_remove",
    "privacy.delta": 1e-5,
    "learner": {"name": "dp_gd"},
}


def model_of(
    folder: Path, features: Features, source: Source, layers: list[np.ndarray], **mapped: Any
) -> Path:
    """A file such as train_final writes, of random weights, that centres features."""
    public = encoder(features, source, 1)
    network = {**public.facts, **features.model_dump(mode="json"), "width": public.width}
    depths = depths_for(
        features.layers, stored_depths(public.facts), 32.0, features.takes, features.model
    )
    mapped["depths"] = depths and depths.facts
    width = depths.width if depths else public.width
    width += curves_width(mapped.get("curves", ()))
    inference = {
        "classes": ["cat", "dog"],
        "network": network,
        "map": {"radius": None, "length": 32.0, "constant": 0.2, "exact": False, "depths": None}
        | mapped,
    }
    facts = {"inference": inference, "config": CONFIG, "target_epsilon": 1.0, "steps": 30}
    weights.save(folder / "weights.safetensors", layers, facts, RANDOM.normal(size=width) / 10)
    return folder / "weights.safetensors"


def alone(folder: Path, code: str) -> Any:
    """What the folder's own module says, where dpladder cannot be imported."""
    blocked = "import sys; sys.modules['dpladder'] = None; import json, model; "
    program = f"{blocked}c = model.load('.'); print(json.dumps({code}))"
    return json.loads(in_new_python(program, cwd=folder))


@pytest.mark.ci
@pytest.mark.parametrize(
    "mapped", [{"radius": 1.0, "exact": True}, {"length": None}, {"curves": CURVES, "length": None}]
)
def test_an_exported_head_predicts_the_same_by_itself(
    tmp_path: Path, mapped: dict[str, Any]
) -> None:
    width = 6 + curves_width(mapped.get("curves", ())) + (mapped.get("constant", 0.2) > 0)
    layers = [
        RANDOM.normal(size=(5, width + 1)).astype(np.float32),
        RANDOM.normal(size=(2, 5)).astype(np.float32),
    ]
    rows = RANDOM.normal(size=(8, 6))
    source = Source("features", lambda index: rows[index], (), width=6)
    file = model_of(tmp_path, Features(model="none", normalize=True), source, layers, **mapped)
    assert main(["export", str(file), str(tmp_path / "out")]) == 0
    assert len({path.stat().st_mode for path in (tmp_path / "out").iterdir()}) == 1
    found = alone(tmp_path / "out", f"c.classify({rows.tolist()})")
    wanted = dpladder.load(file).predict(rows).probabilities
    assert [[row["cat"], row["dog"]] for row in found] == pytest.approx(wanted, abs=1e-3)


@pytest.mark.parametrize(
    "value",
    [
        *(3, 3.0, 0.1, 0.5, 1e-5, 1e300, 2.0**127, float("inf"), True, " a\u0308 ", "0.1", None),
        *("3.0", "03.0", "3.10", "x.0", "1e+16", "1e+05", "-0.0"),
        *(np.float32(0.1), np.float32(3.0), float(np.float32(0.1)), np.float64(0.1), np.int64(3)),
    ],
    ids=repr,
)
def test_an_exported_model_reads_a_level_as_training_does(value: Any) -> None:
    assert raw_rows._level(value) == level_as_text(value)


@pytest.mark.ci
def test_an_exported_model_of_a_table_prepares_raw_rows_by_name(tmp_path: Path) -> None:
    """Raw numbers under a head that was trained on scaled ones would name a class all the same."""
    columns = [
        {"name": "age", "range": [0.0, 100.0], "levels": []},
        {"name": "sex", "levels": ["f", "m"], "range": None},
        "height",
    ]
    people = pd.DataFrame({"height": [1.0, 2.0], "age": [30, 120], "sex": ["m", "x"]})
    rows = np.array([[-0.4, 0, 1, 1.0], [1.0, 0, 0, 2.0]])
    source = Source("features", lambda index: rows[index], (), width=4)
    layers = [RANDOM.normal(size=(2, 5)).astype(np.float32)]
    file = model_of(tmp_path, Features(model="none"), source, layers)
    loaded = dpladder.load(file)
    facts = {**loaded.facts, "inference": {**loaded.facts["inference"], "columns": columns}}
    wanted = loaded.predict(rows).probabilities
    described = replace(loaded, facts=facts)
    assert np.array_equal(described.predict(people).probabilities, wanted)
    with pytest.raises(BadInput, match="no column age"):
        described.predict(people[["sex", "height"]])
    export(described, tmp_path / "out", "torch")
    given = people.to_dict("records")
    found = alone(tmp_path / "out", f"c.classify({given})")
    assert [[row["cat"], row["dog"]] for row in found] == pytest.approx(wanted, abs=1e-3)
    raw = people[["age", "sex", "height"]].to_numpy().tolist()
    assert alone(tmp_path / "out", f"c.classify({raw})") == found
    assert standalone.rows_of(columns, people) == graph.rows_of(columns, people) == rows.tolist()
    for some, said in (({"age": 1, "sex": "f"}, "no height"), ([1, 2], "takes 3")):
        with pytest.raises(ValueError, match=said):
            graph.rows_of(columns, [some])
    for cell in (float("nan"), "", "old", None):
        with pytest.raises(ValueError, match="no number in age"):
            graph.rows_of(columns, [[cell, "f", 1.0]])
    people.to_csv(tmp_path / "out" / "people.csv", sep=";")  # with a column that numbers rows
    assert alone(tmp_path / "out", "c.classify('people.csv')") == found
    example = re.search(
        r"classifier\.classify\((.*)\)\n```", (tmp_path / "out/README.md").read_text()
    )
    assert example is not None
    assert example[1] == "[{'age': 50.0, 'sex': 'f', 'height': 0.5}]"
    assert alone(tmp_path / "out", f"c.classify({example[1]})")


@pytest.mark.ci
def test_the_graph_of_a_table_reads_a_csv_and_says_what_is_wrong(tmp_path: Path) -> None:
    """It took the file's name for a record."""
    source = Source("features", lambda index: None, (), width=5)
    file = model_of(tmp_path, Features(model="none"), source, [np.ones((2, 6), np.float32)])
    out = tmp_path / "out"
    export(dpladder.load(file), out, "onnx")
    assert "classifier.classify([[0.5] * 5])" in (out / "README.md").read_text()
    rows = RANDOM.normal(size=(3, 5))
    pd.DataFrame(rows, columns=[*"abcde"]).to_csv(out / "rows.csv", index=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "graph.py", *arguments],
            cwd=out,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    code, told, _ = run("rows.csv")
    wanted = dpladder.load(file).predict(rows).probabilities
    assert code == 0
    assert [line.split(":")[0] for line in told.splitlines()] == [
        f"rows.csv, row {place}" for place in (1, 2, 3)
    ]
    odds = [float(share) for share in re.findall(r"cat=([0-9.]+)", told)]
    assert odds == pytest.approx(wanted[:, 0], abs=1e-3)
    (out / "words.csv").write_text("a,b,c,d,e\n1,2,3,4,high\n")
    for arguments, said in (
        ((), "usage: python graph.py table.csv"),
        ((".",), ". is no file"),
        (("nowhere.csv",), "nowhere.csv is no file"),
        (("words.csv",), "no number in e"),
    ):
        code, told, error = run(*arguments)
        assert (code, told) == (1, "")
        assert said in error
        assert "Traceback" not in error


@pytest.mark.ci
def test_a_network_of_a_folder_is_exported_with_its_own_preprocessing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = saved(tmp_path / "network", mean=[0.1, 0.2, 0.3])
    head = RANDOM.normal(size=(2, 193)).astype(np.float32) / 30
    features = Features(model=f"local-dir:{folder}", weights="pretrained", image_size=48)
    file = model_of(tmp_path, features, Source("files", bytes, ()), [head])
    image = tmp_path / "one.png"
    Image.fromarray(RANDOM.integers(0, 256, (40, 50, 3), np.uint8)).save(image)
    wanted = dpladder.load(file).predict([image]).probabilities
    assert main(["export", str(file), str(tmp_path / "out")]) == 0
    assert str(tmp_path) not in (tmp_path / "out" / "README.md").read_text()
    folder.rename(tmp_path / "moved")
    capsys.readouterr()
    assert mlflow._log_model(file, {}, {}) is None
    assert "logged as a file, and not as a model to serve" in capsys.readouterr().out
    [row] = alone(tmp_path / "out", f"c.classify([{str(image)!r}])")
    assert [row["cat"], row["dog"]] == pytest.approx(wanted[0], abs=1e-3)


@pytest.mark.long
def test_an_exported_network_predicts_the_same_by_itself(tmp_path: Path) -> None:
    head = RANDOM.normal(size=(2, 625)).astype(np.float32) / 30
    source = Source("files", bytes, ())
    file = model_of(tmp_path, Features(image_size=32), source, [head])
    paths = [tmp_path / f"{place}.png" for place in range(4)]
    for path in paths[1:]:
        Image.fromarray(RANDOM.integers(0, 256, (40, 50, 3), np.uint8)).save(path)
    Image.fromarray(RANDOM.integers(0, 65536, (40, 50), np.uint16)).save(paths[0])
    assert main(["export", str(file), str(tmp_path / "out"), "--to", "huggingface"]) == 0
    found = alone(tmp_path / "out", f"c.classify({[*map(str, paths)]})")
    wanted = dpladder.load(file).predict(paths).probabilities
    assert [[row["cat"], row["dog"]] for row in found] == pytest.approx(wanted, abs=1e-3)
    card = (tmp_path / "out" / "README.md").read_text()
    assert card.startswith("---\npipeline_tag: image-classification")
    assert "No statement lay beside it" in card
    assert "towards epsilon = 1 at delta = 1e-05" in card


@pytest.mark.long
@pytest.mark.parametrize(("network", "curves"), [(False, ()), (True, ()), (False, CURVES)])
def test_an_exported_graph_gives_the_same_logits_for_any_number_of_records(
    tmp_path: Path, network: bool, curves: Any
) -> None:
    import onnxruntime

    random = np.random.default_rng(5)
    features = Features(image_size=32) if network else Features(model="none")
    source = (
        Source("files", bytes, ())
        if network
        else Source("features", lambda index: None, (), width=6)
    )
    width = 625 if network else 7 + curves_width(curves)
    head = random.normal(size=(2, width)).astype(np.float32) / 5
    file = model_of(tmp_path, features, source, [head], curves=curves)
    assert main(["export", str(file), str(tmp_path / "out"), "--to", "onnx"]) == 0
    inputs = random.normal(size=(5, 3, 32, 32) if network else (5, 6)).astype(np.float32)
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx")
    [found] = session.run(["logits"], {"inputs": inputs})
    np.save(tmp_path / "out" / "inputs.npy", inputs)
    wanted = alone(
        tmp_path / "out",
        "c(model.torch.from_numpy(__import__('numpy').load('inputs.npy'))).tolist()",
    )
    assert found == pytest.approx(np.array(wanted), abs=1e-3 * np.abs(wanted).max())
    records: list[Any] = random.normal(size=(3, 6)).tolist()
    if network:
        records = [str(tmp_path / f"{place}.png") for place in range(3)]
        for path, shape in zip(records, [(40, 50, 3), (77, 31, 3), (32, 32, 3)], strict=True):
            Image.fromarray(random.integers(0, 256, shape, np.uint8)).save(path)
        Image.fromarray(random.integers(0, 65536, (40, 50), np.uint16)).save(records[0])
    program = f"import graph, sys; print(graph.classify('.', {records})); assert 'torch' not in "
    told = in_new_python(program + "sys.modules", cwd=tmp_path / "out")
    asked = records if network else np.array(records, np.float32)
    odds = [[row["cat"], row["dog"]] for row in ast.literal_eval(told)]
    assert odds == pytest.approx(dpladder.load(file).predict_proba(asked), abs=1e-3)
    assert not list((tmp_path / "out").glob("*.onnx.data"))
    here = str(Path(dpladder.__file__).parent).encode()
    assert not [path.name for path in (tmp_path / "out").iterdir() if here in path.read_bytes()]


@pytest.mark.long
@pytest.mark.parametrize(
    ("trains", "until", "name"),
    [
        ("last_block", "blocks.3", "test_efficientnet"),
        ("lora", "input", "test_efficientnet"),
        ("frozen lora", "input", "test_efficientnet"),
        ("norm_and_bias", "blocks.4", "test_vit"),
    ],
)
def test_a_network_trained_above_a_cut_predicts_the_same_by_itself(
    tmp_path: Path, trains: str, until: str, name: str
) -> None:
    features = Features(model=name, weights="random", image_size=32, until=until, batch_size=4)
    facts = dict(encoder(features, Source("files", bytes, ()), 1).facts)
    width = math.prod(json.loads(str(facts["shape"])))
    network = {
        **features.model_dump(mode="json"),
        **facts,
        "dtype": features.stored,
        "width": width,
    }
    _, frozen, trains = trains.rpartition("frozen ")
    lora = Lora(alpha=80.0) if frozen else Lora(freeze="none")
    learner = FineTune(name="dp_finetune", trains=trains, bias=True, lora=lora)
    constants = Constants(1, 2, width, network=public_network_of(network, "random"))
    drawn = [
        RANDOM.normal(size=shape).astype(np.float32)
        for shape in shapes(learner, constants).values()
    ]
    moved: Weights = (*(layer / np.float32(10) for layer in drawn[:-1]), np.float32(2) * drawn[-1])
    inference = {"classes": ["cat", "dog"], "network": network} | {
        "map": {"radius": None, "length": None, "constant": 0.0, "exact": False, "depths": None}
    }
    config = {**CONFIG, "learner": learner.model_dump(mode="json")}
    told = {"inference": inference, "config": config, "target_epsilon": 1.0, "steps": 30}
    file = tmp_path / "weights.safetensors"
    weights.save(file, moved, told, names=[*shapes(learner, constants)])
    paths = [tmp_path / f"{place}.png" for place in range(4)]
    for path in paths:
        Image.fromarray(RANDOM.integers(0, 256, (32, 32, 3), np.uint8)).save(path)
    model = dpladder.load(file)
    wanted = model.predict(paths).probabilities
    public = replace(model, weights=(*map(np.zeros_like, moved[:-1]), moved[-1]))
    # what was trained shows
    assert np.abs(public.predict(paths).probabilities - wanted).max() > 0.003
    assert main(["export", str(file), str(tmp_path / "out")]) == 0
    found = alone(tmp_path / "out", f"c.classify({[*map(str, paths)]})")
    assert [[row["cat"], row["dog"]] for row in found] == pytest.approx(wanted, abs=1e-3)
    where = "from its first layer on" if until == "input" else f"above its layer {until}"
    assert where in (tmp_path / "out" / "README.md").read_text()


def test_a_model_planned_after_other_releases_is_headed_by_the_figure_with_them(
    tmp_path: Path,
) -> None:
    source = Source("features", bytes, (), width=6)
    file = model_of(tmp_path, Features(model="none"), source, [np.zeros((2, 7), np.float32)])
    run = Finished(tmp_path, {})
    run.run_again({"experiments": {"later": {"learner": {"momentum": 0.1}}}})
    statement = from_document(SealedStatement, run.state(made_by="by x.y of another package"))
    [lineage] = lineage_facts(statement)
    _, later = lineage.stated.artifacts
    model = replace(dpladder.load(file), privacy=ModelFacts(lineage, later))
    price, told = lineage.stated.artifacts[later], card(model, with_header=False)
    assert price.with_earlier is not None
    assert price.with_earlier.epsilon > 1.001 > price.epsilon
    figure = round_up(price.with_earlier.epsilon)
    assert f"epsilon = {figure} (1.0000 only if it was chosen without looking at them)" in told
    assert (
        f"ever published of its lineage: epsilon = {round_up(lineage.stated.lifetime_spent)}"
        in told
    )
    assert f"If it was chosen among several of its lineage: epsilon = {figure}." in told
    assert f"Before the training {price.search_share:.1%} of the budget was spent" in told
    for text in (told, page(statement)):
        assert "Releases of later: by x.y of another package (" in text


def test_the_card_tells_of_each_class_what_was_paid_for(tmp_path: Path) -> None:
    source = Source("features", bytes, (), width=6)
    file = model_of(tmp_path, Features(model="none"), source, [np.zeros((2, 7), np.float32)])
    counts = np.array([[30.0, 10.0], [1.0, 1.0]])
    bins = np.outer([1.0, 1.0], np.full(16, 9.0))
    found = counts_of(("cat", "dog"), by_class=(counts, 2.0), scores=(bins, 2.0))
    (tmp_path / "metrics.json").write_text(json.dumps(asdict(found)))
    told = card(dpladder.load(file), with_header=False)
    assert "| cat | 75.0% (58.2–88.3) |" in told
    assert "| dog | hidden by noise |" in told
    assert "AUC: 0.500 (0.399–0.601)." in told
    assert "Balanced" not in told


def test_scores_are_written_as_the_hubs_site_reads_them(tmp_path: Path) -> None:
    from huggingface_hub import ModelCard, parse_eval_result_entries

    source = Source("features", bytes, (), width=6)
    file = model_of(tmp_path, Features(model="none"), source, [np.zeros((2, 7), np.float32)])
    counts, bins = np.array([[30.0, 10.0], [30.0, 10.0]]), np.outer([1.0, 1.0], np.full(16, 9.0))
    found = counts_of(("cat", "dog"), by_class=(counts, 2.0), scores=(bins, 2.0))
    (tmp_path / "metrics.json").write_text(json.dumps(asdict(found)))
    assert main(["export", str(file), str(tmp_path / "out"), "--to", "huggingface"]) == 0
    entries = {
        path.stem: parse_eval_result_entries(yaml.safe_load(path.read_text("utf-8")))
        for path in (tmp_path / "out/.eval_results").iterdir()
    }
    assert {"accuracy", "auc"} <= {*entries}
    [accuracy] = entries["accuracy"]
    lineage = CONFIG["dataset.lineage"]
    assert (accuracy.dataset_id, accuracy.task_id) == (lineage, "accuracy")
    assert accuracy.value == 0.75
    assert re.fullmatch(
        r"95 % interval [01]\.\d{3} to [01]\.\d{3}, over noise and sampling", accuracy.notes
    )
    assert "95 % interval" in entries["auc"][0].notes
    header = ModelCard.load(tmp_path / "out/README.md").data
    assert header.license == "unknown"
    assert sorted(header.metrics) == sorted(entries)


def test_a_model_that_was_not_tested_has_no_scores_for_the_hub(tmp_path: Path) -> None:
    source = Source("features", bytes, (), width=6)
    file = model_of(tmp_path, Features(model="none"), source, [np.zeros((2, 7), np.float32)])
    assert main(["export", str(file), str(tmp_path / "out"), "--to", "huggingface"]) == 0
    assert not (tmp_path / "out/.eval_results").exists()


def test_the_card_warns_where_naming_the_largest_class_does_as_well(tmp_path: Path) -> None:
    source = Source("features", bytes, (), width=6)
    file = model_of(tmp_path, Features(model="none"), source, [np.zeros((2, 7), np.float32)])
    for counts, warned in (([[80.0, 0.0], [0.0, 20.0]], True), ([[48.0, 2.0], [46.0, 4.0]], False)):
        found = counts_of(("cat", "dog"), by_class=(counts, 1.0))
        (tmp_path / "metrics.json").write_text(json.dumps(asdict(found)))
        told = card(dpladder.load(file), with_header=False)
        assert ("not clearly better than always naming the largest class" in told) == warned


def test_a_class_is_called_what_it_likes_and_the_card_shows_just_that(tmp_path: Path) -> None:
    source = Source("features", bytes, (), width=6)
    file = model_of(tmp_path, Features(model="none"), source, [np.zeros((2, 7), np.float32)])
    names = ("<img src=x onerror=alert(1)>", "![a|b](http://x)\x1b[2J")
    found = counts_of(names, by_class=([[30.0, 10.0], [30.0, 10.0]], 0.0))
    (tmp_path / "metrics.json").write_text(json.dumps(asdict(found)))
    told = card(replace(dpladder.load(file), classes=names), with_header=False)
    assert "| &lt;img src=x onerror=alert(1)&gt; |" in told
    assert "| ![a\\|b]\\(http://x)\\x1b[2J |" in told
    assert not {"<", "\x1b"} & set(told)
    assert "](" not in told


def test_the_card_tells_what_is_right_where_a_record_is_of_several_classes(tmp_path: Path) -> None:
    source = Source("features", bytes, (), width=6)
    file = model_of(tmp_path, Features(model="none"), source, [np.zeros((2, 7), np.float32)])
    (tmp_path / "metrics.json").write_text(
        json.dumps(asdict(counts_of(("cat", "dog"), right_and_wrong=([9.0, 1.0], 0.0))))
    )
    model = dpladder.load(file)
    one, several = (
        replace(model, facts={**model.facts, "config": CONFIG | {"dataset.labels": most}})
        for most in (1, 2)
    )
    told = "A record may be of 2 classes at most, and a prediction is right that names one of them."
    assert told in card(several, with_header=False)
    assert "right that names" not in card(one, with_header=False)


def test_the_card_tells_of_each_group_and_whether_it_was_trained_on(tmp_path: Path) -> None:
    source = Source("features", bytes, (), width=6)
    file = model_of(tmp_path, Features(model="none"), source, [np.zeros((2, 7), np.float32)])
    names = ("north", "east")
    groups = GroupNames(names, ("north",), ("north",))
    found = counts_of((), "classes", groups, by_group=([[30.0, 10.0], [10.0, 30.0]], 1.0))
    (tmp_path / "metrics.json").write_text(json.dumps(asdict(found)))
    told = card(dpladder.load(file), with_header=False)
    assert "Accuracy on held-out data: 75.0%" in told
    assert "Worst group, as noise shows it: east, 25.0%." in told
    assert "| north | yes | 75.0% (59.4–86.4) |" in told
    assert "| east | no | 25.0% (13.6–40.6) |" in told


def test_a_folder_that_is_there_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Source("features", bytes, (), width=6)
    file = model_of(tmp_path, Features(model="none"), source, [np.zeros((2, 7), np.float32)])
    assert main(["export", str(file), str(tmp_path)]) == 2
    assert "Name a new folder" in capsys.readouterr().err


def test_without_the_extra_a_graph_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    layers = [RANDOM.normal(size=(2, 7)).astype(np.float32)]
    file = model_of(tmp_path, Features(model="none"), Source("arrays", bytes, ()), layers)
    monkeypatch.setattr("dpladder.config.extras.find_spec", lambda name: None)
    assert main(["export", str(file), str(tmp_path / "out"), "--to", "onnx"]) == 2
    assert "pip install 'dpladder[onnx]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
