"""Bad configs: each gives one readable message that names the key, the value, what is allowed and
what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from dpladder import cli
from dpladder.config.checkpoints import wrong_with_checkpoint
from dpladder.config.load import load, resolve
from dpladder.errors import BadInput

DATASET = "dataset: {lineage: digits, source: digits, nominal_size: 1400}"
PRIVACY = "privacy: {epsilon: 1.0, delta: 1.0e-5}"


@dataclass(frozen=True)
class Bad:
    """A config file, and what its message must hold. `problems` is how many it must count."""

    text: str | bytes
    says: tuple[str, ...]
    problems: int = 1


def bad(
    *says: str, more: str = "", dataset: str = DATASET, privacy: str = PRIVACY, problems: int = 1
) -> Bad:
    return Bad(f"{dataset}\n{privacy}\n{more}\n", says, problems)


def a_dataset(keys: str, source: str = "digits") -> str:
    return f"dataset: {{lineage: digits, source: '{source}', nominal_size: 1400, {keys}}}"


def a_privacy(keys: str) -> str:
    return f"privacy: {{delta: 1.0e-5, {keys}}}"


def a_size(size: str) -> str:
    return f"dataset: {{lineage: digits, source: digits, nominal_size: {size}}}"


ASKS = (
    "task: question_answering\nfeatures: {model: minilm, tokens: 128}\n"
    "learner: {name: dp_finetune, trains: all}"
)
FINDINGS = a_dataset("classes: 3, labels: many", f"npz:{__file__}")


def also(*says: str, test: str, dataset: str = DATASET, more: str = "", problems: int = 1) -> Bad:
    more = f"evaluate: {{also: [{{{test}}}]}}\n{more}"
    return bad(*says, more=more, dataset=dataset, problems=problems)


# what a file says about one key: its path, the value given, what is allowed, the nearest spelling
KEYS = {
    "unknown key": bad(
        "fit.degre (",
        ":3)",
        "unknown key",
        "did you mean degree?",
        "allowed here: degree, against, using",
        more="fit: {degre: 1}",
    ),
    "unknown section": bad(
        "sweeps", "did you mean sweep?", "experiments", more="sweeps: {rungs: []}"
    ),
    "unknown key, nothing like it": bad(
        "fit.zzz", "given 1", "allowed here: degree", more="fit: {zzz: 1}"
    ),
    "wrong type": bad(
        "sweep.rungs[1].trials (",
        "given 'three'",
        "a whole number",
        more="sweep: {rungs: [{epsilon: 0.1, trials: 3}, {epsilon: 0.2, trials: three}]}",
    ),
    "number as text": bad(
        "privacy.epsilon",
        "given '1.0'",
        "a number, without quotes",
        privacy=a_privacy("epsilon: '1.0'"),
    ),
    "fraction for a count": bad(
        "dataset.nominal_size", "given 1400.5", "a whole number", dataset=a_size("1400.5")
    ),
    "yes for a count": bad(
        "dataset.nominal_size", "given true", "a whole number", dataset=a_size("yes")
    ),
    "yes as text": bad(
        "learner.bias",
        "given 'yes'",
        "allowed: true, false, without quotes",
        more="learner: {bias: 'yes'}",
    ),
    "no for a name": bad(
        "dataset.public_test",
        "given false",
        "in quotes",
        "YAML reads yes, no",
        dataset=a_dataset("public_test: no"),
    ),
    "yes and no as classes": bad(
        "dataset.classes[0] (",
        "dataset.classes[1] (",
        "in quotes",
        dataset=a_dataset("classes: [yes, no]"),
        problems=2,
    ),
    "numbers as classes": bad(
        "dataset.classes[1]",
        "given 7",
        "text; put it in quotes",
        dataset=a_dataset("classes: ['3', 7]"),
    ),
    "misspelt choice": bad(
        "mode (",
        "given 'reserch'",
        "did you mean research?",
        "allowed: release, research",
        more="mode: reserch",
    ),
    "misspelt alternative to a number": bad(
        "final.budget",
        "given 'remainin'",
        "did you mean remaining?",
        "or it should be a number",
        more="final: {budget: remainin}",
    ),
    "a cut for a linear head": bad(
        "features.until",
        "given 'blocks.5'",
        "learner dp_gd takes pooled features",
        "learner.name: dp_finetune",
        more="features: {until: blocks.5}",
    ),
    "a cut that is normalised": bad(
        "features.until",
        "needs features.normalize: false",
        more="features: {until: blocks.5, normalize: true}\nlearner: {name: dp_finetune}",
    ),
    "a language model with classes": bad(
        "dataset.classes",
        "which task: language_model decides by itself",
        dataset="dataset: {lineage: kjv, source: kjv, nominal_size: 1400, classes: 8}",
        more="task: language_model\nfeatures: {model: 'hf:x', weights: pretrained}\nlearner: "
        "{name: dp_finetune}",
    ),
    "a language model of an encoder": bad(
        "features.model",
        "needs a causal model of transformers",
        dataset="dataset: {lineage: kjv, source: kjv, nominal_size: 1400}",
        more="task: language_model\nfeatures: {model: minilm}\nlearner: {name: dp_finetune}",
    ),
    "a further test of a language model": bad(
        "evaluate.also",
        "no classes that further tests could name",
        dataset="dataset: {lineage: kjv, source: kjv, nominal_size: 1400}\n",
        more="task: language_model\nfeatures: {model: 'hf:x', weights: pretrained}\nlearner: "
        "{name: dp_finetune, trains: lora}\n"
        "evaluate: {also: [{name: other, source: web, declared_public: true}]}",
    ),
    "spans that are units of their own": bad(
        "dataset.unit.by",
        "protects no document: set by: document, or user",
        dataset="dataset: {lineage: kjv, source: kjv, nominal_size: 1400, spans: true}\n",
        more="task: language_model\nfeatures: {model: 'hf:x', weights: pretrained}\nlearner: "
        "{name: dp_finetune, trains: lora}",
    ),
    "documents that are records": bad(
        "dataset.unit.by",
        "without dataset.spans a document is one record",
        dataset="dataset: {lineage: kjv, source: kjv, nominal_size: 1400, unit: {by: document, "
        "cap: 2}}\n",
        more="task: language_model\nfeatures: {model: 'hf:x', weights: pretrained}\nlearner: "
        "{name: dp_finetune, trains: lora}",
    ),
    "spans with classes": bad(
        "dataset.spans",
        "is for task: language_model",
        dataset="dataset: {lineage: kjv, source: kjv, nominal_size: 1400, spans: true}\n",
        more="features: {model: minilm}",
    ),
    "answers to digits": bad(
        "dataset.source (",
        "task: question_answering needs questions with their contexts: squad:<path>",
        dataset=a_dataset("", f"jsonl:{__file__}"),
        more=ASKS,
    ),
    "questions that are to be told apart": bad(
        "dataset.source (",
        "set task: question_answering",
        dataset=a_dataset("classes: 2", f"squad:{__file__}"),
        more="features: {model: minilm}",
    ),
    "questions with classes": bad(
        "dataset.classes (",
        "a question has answers, and no class",
        dataset=a_dataset("classes: 2", f"squad:{__file__}"),
        more=ASKS,
    ),
    "questions tested on texts": bad(
        "dataset.public_test (",
        "task: question_answering needs questions with their contexts",
        dataset=a_dataset(f"public_test: 'jsonl:{__file__}'", f"squad:{__file__}"),
        more=ASKS,
    ),
    "a title that nobody named": bad(
        "dataset.user",
        "required with dataset.unit.by: user",
        dataset=a_dataset("unit: {by: user, cap: 2}", f"squad:{__file__}"),
        more=ASKS,
    ),
    "questions in parts as given": bad(
        "dataset.split.rule (",
        "SQuAD's layouts name no parts",
        dataset=a_dataset("split: {rule: given}", f"squad:{__file__}"),
        more=ASKS,
    ),
    "a short context": bad(
        "features.tokens",
        "a question with its context needs 128 at least",
        dataset=a_dataset("", f"squad:{__file__}"),
        more="task: question_answering\nfeatures: {model: minilm}\nlearner: {name: dp_finetune, "
        "trains: all}",
    ),
    "a head alone on tokens": bad(
        "learner.trains (",
        "a head alone is not trained on tokens",
        dataset=a_dataset("", f"squad:{__file__}"),
        more=ASKS.replace("all", "head"),
    ),
    "a linear head on questions": bad(
        "features.until",
        "learner dp_gd takes pooled features",
        dataset=a_dataset("", f"squad:{__file__}"),
        more=ASKS.replace("dp_finetune, trains: all", "dp_gd"),
    ),
    "classes of questions": bad(
        "evaluate.measures (",
        "what is counted is how many answers are right",
        dataset=a_dataset("", f"squad:{__file__}"),
        more=f"{ASKS}\nevaluate: {{measures: classes}}",
    ),
    "a pooling of answers": bad(
        "features.pooling",
        "which is for task: question_answering",
        more="features: {pooling: each}",
    ),
    "sigmoids of a language model": bad(
        "learner.link",
        "by softmax alone",
        dataset="dataset: {lineage: kjv, source: kjv, nominal_size: 1400}\n",
        more="task: language_model\nfeatures: {model: 'hf:x', weights: pretrained}\n"
        "learner: {name: dp_finetune, trains: lora, link: sigmoid}",
    ),
    "no pooling for classes": bad(
        "features.pooling", "which is for task: language_model", more="features: {pooling: none}"
    ),
    "fine-tuning without a cut": bad(
        "learner.trains",
        "given 'last_block'",
        "what is trained lies above features.until",
        more="learner: {name: dp_finetune}",
    ),
    "fine-tuning by noised losses without a cut": bad(
        "learner.trains",
        "given 'last_block'",
        "what is trained lies above features.until",
        more="learner: {name: hyfree_finetune}\nsweep: {rungs: []}",
    ),
    "Laplace losses on samples of units that are replaced": bad(
        "learner.loss_noise",
        "given 'laplace'",
        "no known cost under replace_one",
        more="learner: {name: hyfree_dp, loss_noise: laplace, sampling_rate: 0.1}\n"
        "sweep: {rungs: []}",
        privacy=a_privacy("epsilon: 1.0, relation: replace_one"),
    ),
    "trials of fine-tuning by noised losses": bad(
        "sweep.rungs",
        "learner hyfree_finetune has nothing to search",
        more="features: {until: blocks.5}\nlearner: {name: hyfree_finetune}\nsweep: {rungs: "
        "[{epsilon: 0.1, trials: 2}]}",
    ),
    "null section": bad(
        "sweep (", "given nothing", "write its keys under it", "or leave it out", more="sweep:"
    ),
    "list for a section": bad("fit (", "given [1]", "write its keys under it", more="fit: [1]"),
    "text for a list": bad(
        "features.layers",
        "given 'blocks'",
        "a list, like [a, b]",
        more="features: {layers: blocks}",
    ),
    "missing key": bad(
        "dataset.lineage: required, but missing",
        "the data's name for life",
        "add it",
        dataset="dataset: {source: digits, nominal_size: 1400}",
    ),
    "missing section": Bad(PRIVACY, ("dataset: required, but missing", "add it")),
    "epsilon zero": bad(
        "privacy.epsilon (", "given 0", "greater than 0", privacy=a_privacy("epsilon: 0")
    ),
    "epsilon below zero": bad(
        "sweep.rungs[0].epsilon",
        "given -0.1",
        "greater than 0",
        more="sweep: {rungs: [{epsilon: -0.1, trials: 3}, {epsilon: 0.2, trials: 3}]}",
    ),
    "epsilon not a number": bad(
        "privacy.epsilon", "given nan", "finite number", privacy=a_privacy("epsilon: .nan")
    ),
    "epsilon infinite": bad(
        "privacy.epsilon", "given inf", "finite number", privacy=a_privacy("epsilon: .inf")
    ),
    "epsilon overflows": bad(
        "privacy.epsilon", "given inf", "finite number", privacy=a_privacy("epsilon: 1e999")
    ),
    "delta zero": bad(
        "privacy.delta", "given 0", "greater than 0", privacy="privacy: {epsilon: 1.0, delta: 0}"
    ),
    "delta one": bad(
        "privacy.delta", "given 1", "less than 1", privacy="privacy: {epsilon: 1.0, delta: 1}"
    ),
    "sampling rate above one": bad(
        "learner.sampling_rate",
        "given 1.5",
        "less than or equal to 1",
        more="learner: {sampling_rate: 1.5}",
    ),
    "momentum one": bad(
        "learner.momentum", "given 1", "less than 1", more="learner: {momentum: 1}"
    ),
    "no trials": bad(
        "sweep.rungs[0].trials",
        "given 0",
        "greater than or equal to 1",
        more="sweep: {rungs: [{epsilon: 0.1, trials: 0}, {epsilon: 0.2, trials: 3}]}",
    ),
    "no rungs and no prior": bad(
        "sweep.rungs (",
        "r of learner dp_gd follows from the prior in kappa",
        "prior: lognormal, or give sweep.rungs",
        more="sweep: {rungs: [], search: {prior: none}}",
    ),
    "a prior in kappa for r": bad(
        "sweep.search.prior",
        "given 'lognormal'",
        "set none, monotone or proportional",
        more="sweep: {rungs: [{epsilon: 0.1, trials: 2}], search: {unit: r}}\nfit: {against: mu}",
    ),
    "one kappa for r": bad(
        "fit.against",
        "given 'kappa'",
        "set epsilon or mu",
        more="sweep: {rungs: [{epsilon: 0.1, trials: 2}], search: {unit: r, prior: none}}",
    ),
    "a public mean of nothing": bad(
        "features.centre",
        "given 'public'",
        "dataset.public_sample",
        more="features: {centre: public}",
    ),
    "a public head of nothing": bad(
        "learner.init",
        "given 'public'",
        "needs dataset.public_sample",
        more="learner: {init: public}",
    ),
    "a public head for two layers": bad(
        "learner.init",
        "dp_mlp has no head of its own",
        more="learner: {name: dp_mlp, init: public}",
        problems=2,
    ),
    "a public head of other classes": bad(
        "dataset.public_sample",
        "not the same class by their names",
        "whose labels are the same",
        dataset=a_dataset("public_sample: 'torchvision:STL10'", "torchvision:CIFAR10"),
        more="learner: {init: public}",
    ),
    "a head for nothing": bad(
        "learner.head",
        "name features.until",
        more="learner: {name: dp_finetune, trains: head, head: {epsilon: 0.5}}",
    ),
    "two heads to start from": bad(
        "learner.head",
        "starts from one head",
        more="features: {until: blocks.5}\nlearner: {name: dp_finetune, init: random, "
        "head: {epsilon: 0.5}}",
    ),
    "guided by nothing": bad(
        "learner.public",
        "given 'gradient'",
        "needs dataset.public_sample",
        more="learner: {public: gradient}",
    ),
    "guided from a random start": bad(
        "learner.init",
        "training starts from the public head",
        more="learner: {public: gradient, init: random}",
        problems=2,
    ),
    "a public head for sigmoids": bad(
        "learner.init",
        "trained by softmax",
        more="learner: {init: public, link: sigmoid}",
        problems=2,
    ),
    "a noised mean of records of any length": bad(
        "features.centre",
        "needs features.mean: {epsilon, radius}",
        more="features: {centre: noised, length: as_is}",
    ),
    "a network's mean of its layers": bad(
        "features.centre",
        "given 'network'",
        "features.layers: last",
        more="features: {centre: network, layers: [blocks.4]}",
    ),
    "a depth that a network has not": bad(
        "features.layers",
        "'blocks.9' is no depth of efficientnet_lite0",
        "it has blocks.0, blocks.1,",
        more="features: {layers: [blocks.4, blocks.9]}",
    ),
    "a depth twice": bad(
        "features.layers",
        "it names a depth twice",
        more="features: {layers: [blocks.4, blocks.4]}",
    ),
    "no depth": bad("features.layers", "write last", more="features: {layers: []}"),
    "depths of records that are features": bad(
        "features.layers",
        "features.model is none",
        "leave it out",
        dataset=a_dataset("classes: 3", f"npz:{__file__}"),
        more="features: {model: none, layers: [blocks.4]}",
    ),
    "depths of a network that is trained": bad(
        "features.until",
        "it needs features.layers to be left out",
        more="features: {until: blocks.5, layers: last}\nlearner: {name: dp_finetune}",
    ),
    "eta reversed": bad(
        "sweep.search.eta (",
        "given [5, 0.01]",
        "[smallest, largest]",
        more="sweep: {search: {eta: [5, 0.01]}}",
    ),
    "eta zero": bad(
        "sweep.search.eta[0]", "given 0", "greater than 0", more="sweep: {search: {eta: [0, 5]}}"
    ),
    "steps reversed": bad(
        "sweep.search.steps",
        "given [100, 5]",
        "[smallest, largest]",
        more="sweep: {search: {steps: [100, 5]}}",
    ),
    "steps with one end": bad(
        "sweep.search.steps[1]", "missing; add it", more="sweep: {search: {steps: [5]}}"
    ),
    "steps with three ends": bad(
        "sweep.search.steps", "at most 2", more="sweep: {search: {steps: [5, 50, 100]}}"
    ),
    "targets twice": bad(
        "final.targets", "given [1, 2, 1]", "each total once", more="final: {targets: [1, 2, 1]}"
    ),
    "targets with a fixed final budget": bad(
        "final.targets", "budget: remaining", more="final: {targets: [1, 2], budget: 0.5}"
    ),
    "a single class": bad(
        "dataset.classes",
        "given ['cat']",
        "nothing to tell apart",
        dataset=a_dataset("classes: [cat]"),
    ),
    "a largest class that is too small": bad(
        "dataset.majority",
        "given 0.3",
        "the largest of 2 classes holds 0.5 at least",
        dataset=a_dataset("classes: [cat, dog], majority: 0.3"),
    ),
    "a rarest class that is too large": bad(
        "dataset.rare",
        "given 0.6",
        "the rarest of 2 classes holds 0.5 at most",
        dataset=a_dataset("classes: [cat, dog], rare: 0.6"),
    ),
    "a rarest class beside a largest one": bad(
        "dataset.rare",
        "leaves 0.1 to all other classes",
        dataset=a_dataset("classes: [cat, dog], rare: 0.2, majority: 0.9"),
    ),
    "classes twice": bad(
        "dataset.classes",
        "given ['cat', 'cat']",
        "each class once",
        dataset=a_dataset("classes: [cat, cat]"),
    ),
    "cap with a record unit": bad(
        "dataset.unit.cap",
        "given 5",
        "must be 1 when the unit is a record",
        "set by: user",
        dataset=a_dataset("unit: {cap: 5}"),
    ),
    "a pool of many records": bad(
        "dataset.unit.pool",
        "needs by: user, and no cap",
        dataset=a_dataset("unit: {by: user, cap: 5, pool: mean}"),
    ),
    "a pool of records": bad(
        "dataset.unit.pool",
        "needs by: user",
        dataset=a_dataset("unit: {pool: mean}"),
    ),
    "conflicts without a pool": bad(
        "dataset.unit.conflicts",
        "need pool: mean",
        dataset=a_dataset("unit: {by: user, conflicts: any}"),
    ),
    "a pool of pixels": bad(
        "dataset.unit.pool",
        "a mean is of pooled features",
        dataset=a_dataset("unit: {by: user, pool: mean}"),
        more="features: {until: input}\nlearner: {name: dp_finetune}",
    ),
    "nothing left to train on": bad(
        "dataset.split.test", "below 1", dataset=a_dataset("split: {test: 0.5, validation: 0.5}")
    ),
    "lineage in capitals": bad(
        "dataset.lineage",
        "given 'My Data'",
        "lower-case letters",
        dataset="dataset: {lineage: My Data, source: digits, nominal_size: 1400}",
    ),
    "lineage too long": bad(
        "dataset.lineage",
        "at most 64",
        dataset=f"dataset: {{lineage: {'d' * 65}, source: digits, nominal_size: 1400}}",
    ),
    "huge value": bad(
        "sweep.select.share",
        "a number",
        " ...; ",
        more=f"sweep: {{select: {{share: {list(range(999))}}}}}",
    ),
    "junk far below a scalar": bad(
        "sweep.select.share",
        "a number",
        more=f"sweep: {{select: {{share: {'[' * 60 + ']' * 60}}}}}",
    ),
}

# what does not fit together
BETWEEN = {
    "delta above 1/nominal_size": bad(
        "privacy.delta (",
        "given 0.001",
        "below 1/nominal_size = 0.000714",
        privacy="privacy: {epsilon: 1.0, delta: 0.001}",
    ),
    "delta equal to 1/nominal_size": bad(
        "privacy.delta",
        "given 0.001",
        "below 1/nominal_size",
        dataset=a_size("1000"),
        privacy="privacy: {epsilon: 1.0, delta: 0.001}",
    ),
    "samples, and no share of delta to book them at": bad(
        "privacy.share",
        r"leave it out, or train on full batches",
        privacy=a_privacy("epsilon: 1.0, share: 0"),
        more="learner: {name: dp_gd, sampling_rate: 0.1}",
    ),
    "lifetime below the total": bad(
        "privacy.lifetime.epsilon",
        "given 0.5",
        "at least privacy.epsilon = 1.0",
        privacy=a_privacy("epsilon: 1.0, lifetime: {epsilon: 0.5}"),
    ),
    "research on private data": bad(
        "mode (", "declared public", "set dataset.declared_public: true", more="mode: research"
    ),
    "the name of a repeat": bad(
        "experiments.main-2",
        "what a repeat of main is called",
        dataset=a_dataset("declared_public: true"),
        more="mode: research\nresearch: {repeats: 2}\nexperiments: {main-2: {}}",
    ),
    "repeats in a release": bad(
        "research.repeats", "given 3", "need mode: research", more="research: {repeats: 3}"
    ),
    "parabola through pooled scores": bad(
        "fit.degree",
        "given 2",
        "using: best",
        more="fit: {degree: 2}\nsweep: {rungs: [{epsilon: 0.1, trials: 2}, {epsilon: 0.2, trials: "
        "2}, {epsilon: 0.3, trials: 2}]}",
    ),
    "degree without enough rungs": bad(
        "sweep.rungs",
        "2 distinct epsilon",
        "degree 2",
        "at least 3",
        more="fit: {degree: 2, using: best, against: mu}\n"
        "sweep: {rungs: [{epsilon: 0.1, trials: 3}, {epsilon: 0.2, trials: 3}]}",
    ),
    "rungs at one epsilon": bad(
        "sweep.rungs",
        "1 distinct epsilon",
        "at least 2",
        more="fit: {using: best, against: epsilon}\n"
        "sweep: {rungs: [{epsilon: 0.1, trials: 3}, {epsilon: 0.1, trials: 3}]}",
    ),
    "unknown source": bad(
        "dataset.source",
        "given 'digit'",
        "did you mean digits?",
        "folder:<path>",
        dataset=a_dataset("classes: 2", "digit"),
    ),
    "source without a path": bad(
        "dataset.source",
        "given 'folder:'",
        "allowed: mnist5k",
        dataset=a_dataset("classes: 2", "folder:"),
    ),
    "source that is not there": bad(
        "dataset.source",
        "given 'folder:/no/such/folder'",
        "nothing is there",
        "check the path",
        dataset=a_dataset("classes: 2", "folder:/no/such/folder"),
    ),
    "source that is not beside the config": bad(
        "nothing is there; paths are relative to /",
        dataset=a_dataset("classes: 2", "folder:no/such/folder"),
    ),
    "source is a file, not a folder": bad(
        "dataset.source",
        "a folder is wanted",
        dataset=a_dataset("classes: 2", f"folder:{__file__}"),
    ),
    "source is a folder, not a file": bad(
        "dataset.source",
        "a file is wanted",
        more="features: {model: none}",
        dataset=a_dataset("classes: 2", "npz:/"),
    ),
    "texts through a network for images": bad(
        "features.model", "texts need model: minilm", dataset=a_dataset("unit: {}", "kjv:100")
    ),
    "images through a network for texts": bad(
        "features.model", "given 'minilm'", "images need a model", more="features: {model: minilm}"
    ),
    "pixels of texts": bad(
        "features.image_size",
        "texts have no pixels",
        more="features: {model: minilm, image_size: 96}",
        dataset=a_dataset("unit: {}", "kjv:100"),
    ),
    "a checkpoint for a model of transformers": bad(
        "features.weights",
        "given 'bundled'; hf:bert has weights: pretrained alone",
        more="features: {model: 'hf:bert'}",
        dataset=a_dataset("unit: {}", "web"),
    ),
    "the mean of a language model": bad(
        "features.centre",
        "mean is not known",
        more="features: {model: minilm, centre: network}",
        dataset=a_dataset("unit: {}", "web"),
    ),
    "views of texts": bad(
        "learner.augment",
        "given 2",
        more="features: {model: minilm}\nlearner: {augment: 2}",
        dataset=a_dataset("unit: {}", "kjv"),
    ),
    "columns that lines have not": bad(
        "dataset.columns",
        "those of id, user, split",
        more="features: {model: minilm}",
        dataset=a_dataset("classes: 2, columns: [age]", f"jsonl:{__file__}"),
    ),
    "so many verses": bad(
        "dataset.source",
        "given 'kjv:many'",
        "allowed: mnist5k",
        dataset=a_dataset("unit: {}", "kjv:many"),
        more="features: {model: minilm}",
    ),
    "source path is no path": bad(
        "dataset.source",
        "cannot be reached",
        dataset=a_dataset("classes: 2", "folder:" + "x" * 300),
    ),
    "own data without classes": bad(
        "dataset.classes",
        "required for your own data",
        "list the class names",
        dataset=a_dataset("unit: {}", "folder:/"),
    ),
    "columns of what is no table": bad(
        "dataset.columns",
        "given ['age']",
        "only tables",
        dataset=a_dataset("columns: [age]"),
    ),
    "rows of several lines in what is no table": bad(
        "dataset.multiline",
        "given true",
        "only CSV tables have rows of several lines",
        dataset=a_dataset("multiline: true"),
    ),
    "links in what is no folder": bad(
        "dataset.links",
        "given 'inside'",
        "only folders",
        dataset=a_dataset("links: inside"),
    ),
    "public source unknown": bad(
        "dataset.public_test",
        "given 'mnist'",
        "did you mean mnist5k?",
        dataset=a_dataset("public_test: mnist"),
    ),
    "texts in a matrix": bad(
        "features.model",
        "needs model: none",
        dataset=a_dataset("classes: 2", f"npz:{__file__}"),
        more="features: {model: minilm}",
    ),
    "images without a network": bad(
        "features.model", "given 'none'", "images need a model", more="features: {model: none}"
    ),
    "bundled weights of another model": bad(
        "features.weights",
        "given 'bundled' with model 'resnet50'",
        "use pretrained or a path",
        more="features: {model: resnet50}",
    ),
    "weights that are not there": bad(
        "features.weights",
        "given 'w.pth'",
        "allowed: bundled, pretrained",
        "nothing is there",
        more="features: {weights: w.pth}",
    ),
    "public selection without a source": bad(
        "sweep.select.by",
        "given 'public'",
        "needs dataset.public_validation",
        more="sweep: {select: {by: public}}",
    ),
    "validation part without a fraction": bad(
        "sweep.select.part",
        "dataset.split.validation above 0",
        more="sweep: {select: {part: validation}}",
    ),
    "public source whose labels mean other classes": bad(
        "dataset.public_test",
        "its label 1 and that of 'torchvision:CIFAR10' are not the same class",
        "evaluate.also",
        dataset=a_dataset("public_test: 'torchvision:STL10'", "torchvision:CIFAR10"),
    ),
    "a release without noise": bad(
        "final.without_noise",
        "protects nobody",
        "mode: research",
        more="final: {without_noise: true}",
    ),
    "further test of nothing": also("evaluate.also[0]", "give source or of", test="name: x"),
    "further test of both": also(
        "evaluate.also[0]", "give source or of", test="name: x, source: mnist5k, of: test"
    ),
    "further test that is private": also(
        "evaluate.also[0].declared_public",
        "give them an experiment with evaluate.of",
        "dataset.group",
        test="name: x, source: mnist5k",
    ),
    "further test of the private data": also(
        "evaluate.also[0].source",
        "the private source itself",
        test="name: x, source: digits, declared_public: true",
    ),
    "further test of the private data's own split": bad(
        "evaluate.also[0].source",
        "name one split there and another here",
        dataset=a_dataset("", "torchvision:CIFAR10"),
        more="evaluate: {also: [{name: x, source: 'torchvision:CIFAR10/test', declared_public: "
        "true}]}",
    ),
    "further test of texts": also(
        "evaluate.also[0].source",
        "takes images",
        test="name: x, source: 'kjv:20', declared_public: true, classes: ['3']",
    ),
    "further tests of one name": also(
        "evaluate.also[1].name",
        "another test is called so",
        test="name: x, source: mnist5k, declared_public: true}, {name: x, source: mnist5k, "
        "declared_public: true",
    ),
    "a further test that is called like a severity": also(
        "evaluate.also[0].name",
        "another test is called so",
        test="name: x-3, source: mnist5k, declared_public: true}, {name: x, of: x-3, corruption: "
        "blur",
    ),
    "further test whose labels are not known": also(
        "evaluate.also[0].classes",
        "what they are called is not known here",
        test="name: x, source: 'torchvision:KMNIST', declared_public: true",
    ),
    "further test of a class that is none": also(
        "evaluate.also[0].classes",
        "given 'ten'",
        "allowed: 0, 1, 2",
        test="name: x, source: mnist5k, declared_public: true, classes: {'3': ten}",
    ),
    "further test where classes have no names": also(
        "evaluate.also[0].classes",
        "required where dataset.classes has no names",
        test="name: x, source: mnist5k, declared_public: true",
        dataset=a_dataset("classes: 3"),
    ),
    "further test whose classes are no numbers": also(
        "evaluate.also[0].classes",
        "a class is meant by its number",
        test="name: x, source: mnist5k, declared_public: true, classes: [cat]",
        dataset=a_dataset("classes: 3"),
    ),
    "corruption of a test that is not there": also(
        "evaluate.also[0].of", "given 'y'", "allowed: test", test="name: x, of: y, corruption: blur"
    ),
    "corruption of private images for nothing": also(
        "evaluate.also[0].epsilon",
        "say what one may cost",
        test="name: x, of: test, corruption: blur",
    ),
    "corruption of public images for a price": also(
        "evaluate.also[1].epsilon",
        "exact and free",
        test="name: y, source: mnist5k, declared_public: true}, {name: x, of: y, corruption: blur, "
        "epsilon: 1.0",
    ),
    "corruption of a source's own": also(
        "evaluate.also[0].corruption",
        "it goes with of",
        test="name: y, source: mnist5k, declared_public: true, corruption: blur",
    ),
    "no corruption of a test": also(
        "evaluate.also[0].corruption", "required with of", test="name: x, of: test, epsilon: 1.0"
    ),
    "corruption of numbers": also(
        "evaluate.also[0].corruption",
        "images alone can be corrupted",
        test="name: x, of: test, corruption: blur, epsilon: 1.0",
        dataset=a_dataset("classes: 3", f"npz:{__file__}"),
        more="features: {model: none}",
    ),
    "severities twice": also(
        "evaluate.also[0].severities",
        "each severity once",
        test="name: x, of: test, corruption: blur, epsilon: 1.0, severities: [2, 2]",
    ),
    "several labels of published data": bad(
        "dataset.labels",
        "has one label",
        more="learner: {name: dp_ls}",
        dataset=a_dataset("labels: 2"),
    ),
    "several labels for a learner of one": bad(
        "dataset.labels",
        "dp_gd takes one class for each record",
        more="features: {model: none}",
        dataset=a_dataset("classes: 3, labels: 2", f"npz:{__file__}"),
    ),
    "more labels than can be told together": bad(
        "dataset.labels",
        "of 1000 classes at most 6",
        more="features: {model: none}\nlearner: {name: dp_ls}",
        dataset=a_dataset("classes: 1000, labels: 7", f"npz:{__file__}"),
    ),
    "a bar in a class's name": bad(
        "dataset.labels",
        "holds a bar",
        more="features: {model: none}\nlearner: {name: dp_ls}",
        dataset=a_dataset("classes: [a|b, c], labels: 2", f"npz:{__file__}"),
    ),
    "a class whose name fills rows up": bad(
        "dataset.labels",
        "begins with a minus",
        more="features: {model: none}\nlearner: {name: dp_ls}",
        dataset=a_dataset("classes: ['-1', '1'], labels: 2", f"npz:{__file__}"),
    ),
    "findings for a learner of one class": bad(
        "learner.name",
        "with dataset.labels: many a record has several findings: set learner.name: dp_gd",
        more="learner: {name: one_step}",
        dataset=FINDINGS,
    ),
    "findings whose sums are shared by class": bad(
        "learner.statistics",
        "with dataset.labels: many there are no sums of classes: share learner.covariance",
        more="learner: {name: dp_ls, statistics: {epsilon: 1.0}}",
        dataset=FINDINGS,
    ),
    "findings weighted by class": bad(
        "learner.alpha",
        "set learner.alpha: 1.0",
        more="learner: {name: dp_ls, alpha: 0.1}",
        dataset=FINDINGS,
    ),
    "findings under one softmax": bad(
        "learner.link", "set learner.link: sigmoid", more="learner: {}", dataset=FINDINGS
    ),
    "findings that start from the public head": bad(
        "learner.init",
        "set learner.init: zero or random",
        more="learner: {link: sigmoid, init: public}",
        dataset=FINDINGS,
    ),
    "findings with a private search": bad(
        "hpo.name",
        "set hpo.name: ladder",
        more="learner: {link: sigmoid}\nhpo: {name: liu_talwar}",
        dataset=FINDINGS,
    ),
    "findings counted by groups that are not declared": bad(
        "evaluate.measures",
        "it needs dataset.group",
        more="learner: {link: sigmoid}\nevaluate: {measures: groups}",
        dataset=FINDINGS,
    ),
    "findings tested on another source": also(
        "evaluate.also",
        "another source's labels are not matched",
        test="name: other, source: digits, declared_public: true",
        more="learner: {link: sigmoid}",
        dataset=FINDINGS,
        problems=2,
    ),
    "findings tested on a source of one class a record": bad(
        "dataset.public_test",
        "name a table or arrays: a record of this has one label",
        more="learner: {link: sigmoid}",
        dataset=a_dataset("classes: 3, labels: many, public_test: mnist5k", f"npz:{__file__}"),
    ),
    "more findings than a number holds": bad(
        "dataset.labels",
        "at most 39 can be told together",
        more="learner: {link: sigmoid}",
        dataset=a_dataset("classes: 40, labels: many", f"npz:{__file__}"),
    ),
    "columns of labels for one class each": bad(
        "dataset.label",
        "a list is a column for each class: set dataset.labels: many",
        dataset=a_dataset("label: [a, b]", f"npz:{__file__}"),
    ),
    "other columns than classes": bad(
        "dataset.label",
        "2 columns for 3 classes",
        more="learner: {link: sigmoid}",
        dataset=a_dataset("classes: 3, labels: many, label: [a, b]", f"npz:{__file__}"),
    ),
    "a policy where nothing is unknown": bad(
        "dataset.unknown",
        "set dataset.labels: many",
        dataset=a_dataset("classes: 3, unknown: 0", f"npz:{__file__}"),
    ),
    "a policy of blanks where nothing is unknown": bad(
        "dataset.blank",
        "set dataset.labels: many",
        dataset=a_dataset("classes: 3, blank: 0", f"npz:{__file__}"),
    ),
    "several labels counted by class": bad(
        "evaluate.measures",
        "given 'classes'",
        "would count in several",
        more="features: {model: none}\nlearner: {name: dp_ls}\nevaluate: {measures: classes}",
        dataset=a_dataset("classes: 3, labels: 2", f"npz:{__file__}"),
    ),
    "a table of answers that would be noise": bad(
        "evaluate.measures",
        "30 classes are the most",
        more="evaluate: {measures: confusion}",
        dataset=a_dataset("classes: 31", f"npz:{__file__}"),
    ),
    "a table of answers for findings": bad(
        "evaluate.measures",
        "findings are each told by themselves",
        more="learner: {link: sigmoid}\nevaluate: {measures: confusion}",
        dataset=a_dataset("classes: 3, labels: many", f"npz:{__file__}"),
    ),
    "groups of published data": bad(
        "dataset.group",
        "published without groups",
        dataset=a_dataset("group: {column: a, names: [b]}"),
    ),
    "groups that stand nowhere": bad(
        "dataset.group.names", "give column for a table", dataset=a_dataset("group: {names: [b]}")
    ),
    "a group twice": bad(
        "dataset.group.names",
        "each group once",
        dataset=a_dataset("group: {column: a, names: [b, b]}"),
    ),
    "a group in the column of labels": bad(
        "dataset.group.column",
        "given 'label'",
        "must not be one of",
        dataset=a_dataset("group: {column: label, names: [b]}"),
    ),
    "training on a group that is none": bad(
        "dataset.group.train",
        "some of names",
        dataset=a_dataset("group: {column: a, names: [b], train: [c]}"),
    ),
    "a level of what is no folder": bad(
        "dataset.group.level",
        "give the column",
        more="features: {model: none}",
        dataset=a_dataset("classes: 3, group: {level: 1, names: [b]}", f"npz:{__file__}"),
    ),
    "a column of a folder": bad(
        "dataset.group.column",
        "has a level",
        dataset=a_dataset("classes: 3, group: {column: a, names: [b]}", "folder:/"),
    ),
    "measured by groups without any": bad(
        "evaluate.measures", "needs dataset.group", more="evaluate: {measures: groups}"
    ),
    "a public test without the groups": bad(
        "dataset.public_test",
        "told by the same groups",
        more="features: {image_size: 32}",
        dataset=a_dataset(
            "classes: 10, group: {column: a, names: [b]}, public_test: mnist5k", f"npz:{__file__}"
        ),
    ),
    "further test of a group that is none": also(
        "evaluate.also[0].groups",
        "given 'south'",
        "allowed: north",
        test="name: x, of: test, groups: [south], epsilon: 1.0",
        dataset=a_dataset("classes: 3, group: {column: a, names: [north]}", f"npz:{__file__}"),
        more="features: {model: none}",
    ),
    "further test of groups for nothing": also(
        "evaluate.also[0].epsilon",
        "say what one may cost",
        test="name: x, of: test, groups: [north]",
        dataset=a_dataset("classes: 3, group: {column: a, names: [north]}", f"npz:{__file__}"),
        more="features: {model: none}",
    ),
    "groups of a source's own": also(
        "evaluate.also[0].groups",
        "it goes with of",
        test="name: y, source: mnist5k, declared_public: true, groups: [north]",
    ),
    "groups of a published further test": also(
        "evaluate.also[0].group",
        "published without groups",
        test="name: y, source: mnist5k, declared_public: true, group: {column: a, names: [b]}",
    ),
    "private data declared public": bad(
        "dataset.public_test",
        "given 'digits'",
        "the private source itself",
        dataset=a_dataset("public_test: digits"),
    ),
    "all of a data set declared public beside a private split of it": bad(
        "dataset.public_test",
        "which holds records of 'torchvision:CIFAR10/train'",
        dataset=a_dataset("public_test: 'torchvision:CIFAR10'", "torchvision:CIFAR10/train"),
    ),
    "a sampled learner in a private search": bad(
        "hpo.name",
        "full batches",
        more="learner: {sampling_rate: 0.1}\nhpo: {name: random_search}\nsweep: {rungs: []}",
    ),
    "a limit that selections eat up": bad(
        "privacy.lifetime.loss",
        "given 8",
        "below",
        privacy=a_privacy("epsilon: 1.0, lifetime: {epsilon: 8.0, loss: 8.0}"),
    ),
    "several views of numbers": bad(
        "learner.augment",
        "given 4",
        "set it to 1",
        more="learner: {augment: 4}\nfeatures: {model: none}",
        dataset=a_dataset("classes: 2", f"npz:{__file__}"),
    ),
    "several views of numbers under a head": bad(
        "learner.augment",
        "given 4",
        "set it to 1",
        more="learner: {name: hyfree_finetune, trains: head, augment: 4}\nfeatures: {model: "
        "none}\nsweep: {rungs: []}",
        dataset=a_dataset("classes: 2", f"npz:{__file__}"),
    ),
    "unknown learner": bad(
        "learner.name", "'dp_gdd'", "did you mean dp_gd?", more="learner: {name: dp_gdd}"
    ),
    "nothing to test on": bad(
        "dataset.split.test",
        "given 0",
        "dataset.public_test",
        dataset=a_dataset("split: {test: 0}"),
    ),
    "a teacher that is no linear head": bad(
        "dataset.public_unlabelled",
        "a linear head labels them",
        "dp_gd",
        dataset=a_dataset("public_unlabelled: digits", "mnist5k"),
        more="learner: {name: dp_mlp}",
    ),
    "the size of no sample": bad(
        "dataset.public_size",
        "given 200",
        "dataset.public_sample, which is not given",
        dataset=a_dataset("public_size: 200"),
    ),
    "private inside results": bad(
        "paths.private",
        "given 'results/private'",
        "may lie in the other",
        more="paths: {private: results/private}",
    ),
    "cache inside results": bad(
        "paths.cache",
        "given 'results/cache'",
        "those are public",
        more="paths: {cache: results/cache}",
    ),
    "private that leads into results": bad(
        "paths.private",
        "given 'leads_into_results'",
        "may lie in the other",
        more="paths: {private: leads_into_results}",
    ),
    "results inside private": bad(
        "paths.private", "may lie in the other", more="paths: {private: .}"
    ),
}

# experiments
EXPERIMENTS = {
    "experiment twice": bad(
        ":5: experiments.a stands twice, first at",
        "keep one of them",
        more="experiments:\n  a: {}\n  a: {fit: {against: mu}}",
        problems=0,
    ),
    "experiment name in capitals": bad(
        "experiments.Big (",
        "not a valid experiment name",
        "lower-case",
        more="experiments: {Big: {}}",
    ),
    "experiment name with a path": bad(
        "experiments.../up", "not a valid experiment name", more="experiments: {../up: {}}"
    ),
    "experiment name ending in a line break": bad(
        "experiments.'a\\n'", "not a valid experiment name", more='experiments: {"a\\n": {}}'
    ),
    "experiment name too long": bad(
        "not a valid experiment name", "up to 64", more=f"experiments: {{{'a' * 65}: {{}}}}"
    ),
    "experiment name reserved": bad(
        "experiments.logs", "reserved (main, ", "choose another", more="experiments: {logs: {}}"
    ),
    "experiment called main": bad("experiments.main", "reserved", more="experiments: {main: {}}"),
    "experiment name is a number": bad(
        "experiments.2024",
        "reads this key as int",
        "in quotes",
        more="experiments: {2024: {}}",
        problems=0,
    ),
    "experiment is a list": bad(
        "experiments.a", "given [1]", "write the keys", more="experiments: {a: [1]}"
    ),
    "experiments are a list": bad(
        "experiments (", "given ['a']", "map names", more="experiments: [a]"
    ),
    "experiments are an empty list": bad(
        "experiments (", "given []", "map names", more="experiments: []"
    ),
    "unknown key in an experiment": bad(
        "experiments.a.fit.degre (",
        "did you mean degree?",
        more="experiments: {a: {fit: {degre: 1}}}",
    ),
    "mode of an experiment": bad(
        "experiments.a.mode (",
        "holds for the whole project",
        "top level",
        more="experiments: {a: {mode: research}}",
    ),
    "paths of an experiment": bad(
        "experiments.a.paths", "top level", more="experiments: {a: {paths: {private: out}}}"
    ),
    "experiments in an experiment": bad(
        "experiments.a.experiments", "top level", more="experiments: {a: {experiments: {}}}"
    ),
    "two deltas on one lineage": bad(
        "experiments.a.privacy.delta (",
        "given 1e-06, but 1e-05 in main",
        "fixed for the life of lineage digits",
        more="experiments: {a: {privacy: {delta: 1.0e-6}}}",
    ),
    "two relations on one lineage": bad(
        "experiments.a.privacy.relation",
        "given 'replace_one', but 'add_remove' in main",
        more="experiments: {a: {privacy: {relation: replace_one}}}",
    ),
    "two units on one lineage": bad(
        "experiments.a.dataset.unit",
        "fixed for the life",
        more="experiments: {a: {dataset: {unit: {by: user, cap: 3}}}}",
    ),
    "two columns of ids on one lineage": bad(
        "experiments.a.dataset.id",
        "given 'alt', but nothing in main",
        "fixed for the life of lineage digits",
        dataset=a_dataset("classes: 3", f"npz:{__file__}"),
        more="experiments: {a: {dataset: {id: alt}}}",
    ),
    "two columns of users on one lineage": bad(
        "experiments.a.dataset.user",
        "given 'alt', but 'user' in main",
        dataset=a_dataset("unit: {by: user}, user: user, classes: 3", f"npz:{__file__}"),
        more="experiments: {a: {dataset: {user: alt}}}",
    ),
    "two split rules on one lineage": bad(
        "experiments.a.dataset.split",
        "fixed for the life",
        more="experiments: {a: {dataset: {split: {test: 0.3}}}}",
    ),
    "two lifetimes on one lineage": bad(
        "experiments.a.privacy.lifetime",
        "given 8.0, but nothing in main",
        more="experiments: {a: {privacy: {lifetime: {epsilon: 8}}}}",
    ),
    "public in one experiment alone": bad(
        "experiments.a.dataset.declared_public",
        "given true, but false in main",
        more="experiments: {a: {dataset: {declared_public: true}}}",
    ),
}

OTHER = "dataset: {lineage: other, source: mnist5k, nominal_size: 900}, privacy: {epsilon: 0.5}"


def measuring(*says: str, problems: int = 1, **dataset: object) -> Bad:
    """An experiment that measures main, with one thing wrong."""
    data = {"lineage": "other", "source": "mnist5k", "nominal_size": 900} | dataset
    keys = f"dataset: {json.dumps(data)}, privacy: {{epsilon: 0.5}}, evaluate: {{of: main}}"
    return bad(*says, more=f"experiments: {{a: {{{keys}}}}}", problems=problems)


TESTERS = {
    "measures itself": bad(
        "experiments.a.evaluate.of",
        "given 'a'",
        "allowed: main",
        more=f"experiments: {{a: {{{OTHER}, evaluate: {{of: a}}}}}}",
    ),
    "measures nobody": bad(
        "experiments.a.evaluate.of",
        "given 'mian'",
        "allowed: main",
        more=f"experiments: {{a: {{{OTHER}, evaluate: {{of: mian}}}}}}",
    ),
    "measures one that trains nothing": bad(
        "experiments.b.evaluate.of",
        "given 'a'",
        "allowed: main",
        more=f"experiments: {{a: {{{OTHER}, evaluate: {{of: main}}}}, b: {{{OTHER}, evaluate: "
        "{of: a}}}",
    ),
    "measures another at the top": bad(
        "evaluate.of (", "given 'main'", "experiments beside this one", more="evaluate: {of: main}"
    ),
    "measures with a learner of its own": bad(
        "experiments.a.learner",
        "trains nothing: set it in main",
        more=f"experiments: {{a: {{{OTHER}, learner: {{momentum: 0.5}}, evaluate: {{of: main}}}}}}",
    ),
    "measures nobody of its own": bad(
        "experiments.a.dataset.lineage (",
        "experiments.a.dataset.source (",
        "experiments.a.dataset.nominal_size (",
        "experiments.a.privacy.epsilon (",
        "required, but missing: what main says is about other people",
        more="experiments: {a: {evaluate: {of: main}}}",
        problems=4,
    ),
    "measures on the same lineage": measuring(
        "experiments.a.dataset.lineage",
        "given 'digits', the lineage of main itself",
        lineage="digits",
    ),
    "measures on the same source": measuring(
        "experiments.a.dataset.source", "given 'digits', the source of main itself", source="digits"
    ),
    "measures on a public test": measuring(
        "experiments.a.dataset.public_test", "goes into evaluate.also of main", public_test="digits"
    ),
    "measures with groups that nobody trains on": measuring(
        "experiments.a.dataset.group.train",
        "given ['b'], but it measures main, and trains nothing: leave it out",
        source="folder:.",
        classes=list("0123456789"),
        group={"level": 1, "names": ["a", "b"], "train": ["b"]},
    ),
    "measures one of several labels on a source of one": bad(
        "experiments.a.dataset.labels",
        "given 2; a record of 'mnist5k' has one label: main, whose models are measured, needs a "
        "table or arrays here",
        "dataset.source (",  # of main, which is not there
        dataset=a_dataset(f"labels: 2, classes: {list('0123456789')}", "npz:x.npz"),
        more=f"learner: {{name: dp_ls}}\nexperiments: {{a: {{{OTHER}, evaluate: {{of: main}}}}}}",
        problems=2,
    ),
    "measures with a public sample of its own": measuring(
        "experiments.a.dataset.public_sample",
        "trains nothing: set it in main",
        public_sample="digits",
    ),
    "measures with further tests": bad(
        "experiments.a.evaluate.also",
        "further tests are those of main",
        more=f"experiments: {{a: {{{OTHER}, evaluate: {{of: main, also: [{{name: x, source: "
        "digits, declared_public: true}]}}}",
    ),
    "measures other classes": measuring(
        "experiments.a.dataset.classes",
        "given nothing with source 'torchvision:CIFAR10'",
        "not the classes of main",
        source="torchvision:CIFAR10",
    ),
    "measures classes in another order": measuring(
        "experiments.a.dataset.classes",
        "not the classes of main by their names and order",
        classes=list("1023456789"),
    ),
    "measures under the name of a further test": bad(
        "evaluate.also[0].name",
        "given 'a'",
        "an experiment that measures main is called so",
        more="evaluate: {also: [{name: a, source: mnist5k, declared_public: true}]}\n"
        f"experiments: {{a: {{{OTHER}, evaluate: {{of: main}}}}}}",
    ),
    "measures under the name of a further test of another": bad(
        "experiments.b.evaluate.also[0].name",
        "given 'a'",
        "an experiment that measures b is called so",
        more="experiments:\n  b: {evaluate: {also: [{name: a, source: mnist5k, declared_public: "
        "true}]}}\n"
        f"  a: {{{OTHER}, evaluate: {{of: b}}}}",
    ),
    "measures under the name of a severity": bad(
        "evaluate.also[0].name",
        "an experiment that measures main is called so",
        more="evaluate: {also: [{name: dim, of: test, corruption: blur, epsilon: 0.1}]}\n"
        f"experiments: {{dim-3: {{{OTHER}, evaluate: {{of: main}}}}}}",
    ),
    "measures what is wrong itself": bad(
        "experiments.b.learner.momentum",
        more=f"experiments: {{a: {{{OTHER}, evaluate: {{of: b}}}}, b: {{learner: {{momentum: "
        "2}}}",
    ),
    "measures other columns": measuring(
        "experiments.a.dataset.columns", "given ['x'], but [] in main", problems=2, columns=["x"]
    ),
}

# what is no config at all; nothing is counted, because nothing could be read
FILES = {
    "empty": Bad("", ("empty", "start from config/config.yaml"), 0),
    "only comments": Bad("# nothing yet\n", ("empty",), 0),
    "list at the top": Bad("- dataset\n", ("top level must be a mapping", "not a list"), 0),
    "text at the top": Bad("dataset\n", ("top level must be a mapping", "not a str"), 0),
    "syntax": Bad(
        "dataset: {lineage: digits\nprivacy: 1\n",
        (":2: not valid YAML", "check the indentation"),
        0,
    ),
    "unclosed quote": Bad("mode: 'release\n", ("not valid YAML",), 0),
    "tabs": Bad(
        "dataset:\n\tlineage: digits\n", (":2: not valid YAML", "use spaces, YAML forbids tabs"), 0
    ),
    "two documents": Bad(
        "mode: release\n---\nmode: release\n", ("not valid YAML", "another document"), 0
    ),
    "control character": Bad(
        "mode: a\0b\n", ("not valid YAML", "special characters are not allowed"), 0
    ),
    "not UTF-8": Bad(
        "mode: Köln\n".encode("latin-1"), ("not UTF-8 (byte 7)", "save it as UTF-8"), 0
    ),
    "UTF-16": Bad("mode: release\n".encode("utf-16"), ("not UTF-8", "save it as UTF-8"), 0),
    "half a surrogate": Bad('mode: "\\ud800"\n', ("not valid Unicode", "write it out plainly"), 1),
    "key twice": Bad(
        "mode: release\nfit:\n  degree: 1\n  degree: 2\n",
        (":4: fit.degree stands twice, first at ", ":3; keep one"),
        0,
    ),
    "section twice": Bad(
        "fit: {}\nmode: release\nfit: {}\n", (":3: fit stands twice, first at ", ":1"), 0
    ),
    "key that is no text": Bad(
        "2020-01-01: 3\n", ("2020-01-01: YAML reads this key as timestamp", "in quotes"), 0
    ),
    "key that is a mapping": Bad("? {a: b}\n: 3\n", ("reads this key as map",), 0),
    "no such date": Bad(
        "mode: 2020-13-45\n",
        (":1: not valid YAML", "'2020-13-45' is no valid timestamp", "in quotes"),
        0,
    ),
    "too many digits": Bad(f"mode: {'9' * 5000}\n", ("no valid int",), 0),
    "foreign tag": Bad(
        "mode: !!python/object:os.system {}\n", ("not valid YAML", "python/object"), 0
    ),
    "unknown alias": Bad("mode: *nobody\n", ("not valid YAML", "undefined alias"), 0),
    "anchor that contains itself": Bad(
        "mode: &a [*a]\n", ("contains itself", "write the values out"), 0
    ),
    "nested too deeply": Bad(f"mode: {'[' * 3000}\n", ("nested too deeply",), 0),
    "aliases that expand without end": Bad(
        "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(
            f"{new}: &{new} [{', '.join(['*' + old] * 10)}]\n"
            for old, new in zip("abcdefg", "bcdefgh", strict=True)
        ),
        ("more than 100,000 entries", "aliases"),
        0,
    ),
}

TABLE = KEYS | BETWEEN | EXPERIMENTS | TESTERS | FILES


@pytest.fixture(name="here", autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("leads_into_results").symlink_to("results/private")


def message_of(*files: Path, **overrides: object) -> str:
    with pytest.raises(BadInput) as caught:
        load(files, overrides)
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.fixture(name="config", params=TABLE.values(), ids=TABLE.keys())
def _config(request, tmp_path):
    """Each line of the table, and its file."""
    file = tmp_path / "bad.yaml"
    file.write_bytes(
        request.param.text if isinstance(request.param.text, bytes) else request.param.text.encode()
    )
    return request.param, file


@pytest.mark.few(2)
def test_a_bad_config_is_told_in_one_readable_message(config):
    case, file = config
    message = message_of(file)
    assert [part for part in case.says if part not in message] == [], message
    lines = message.splitlines()
    assert all(len(line) < 500 and line.isprintable() for line in lines), message
    if case.problems:
        assert lines[0] == f"config: {case.problems} problem{'s' if case.problems > 1 else ''}", (
            message
        )
        assert len(lines) == 1 + case.problems, message
    else:
        assert message.startswith(f"config file {file}"), message


@pytest.mark.few(10)
def test_dpladder_plan_says_the_same_and_exits_with_2(config, capsys):
    _, file = config
    assert cli.main(["plan", "--configfile", str(file)]) == 2
    told = capsys.readouterr()
    assert told.err == f"dpladder: {message_of(file)}\n"
    assert told.out == ""


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["epsilon zero", "tabs", "not UTF-8"])
def test_the_installed_command_exits_with_2_and_one_message(name, tmp_path):
    file = tmp_path / "bad.yaml"
    case = TABLE[name]
    file.write_bytes(case.text if isinstance(case.text, bytes) else case.text.encode())
    command = [Path(sys.executable).with_name("dpladder"), "plan", "--configfile", file]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr == f"dpladder: {message_of(file)}\n"
    assert ended.stdout == ""


def test_the_table_is_built_on_a_config_that_is_good(tmp_path):
    file = tmp_path / "good.yaml"
    file.write_text(f"{DATASET}\n{PRIVACY}\n", "utf-8")
    assert load([file]).main.dataset.source == "digits"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, ("not found", "copy config/config.yaml")),
        (lambda path: path.mkdir(), ("is a folder", "name the YAML file in it")),
        (lambda path: path.symlink_to(path), ("cannot be read", "check its path")),
    ],
    ids=["missing", "folder", "link to itself"],
)
def test_a_config_path_without_a_file_is_told(make, says, tmp_path):
    path = tmp_path / "config.yaml"
    make(path)
    message = message_of(path)
    assert message.startswith(f"config file {path}: ")
    assert all(part in message for part in says)


def test_an_unreadable_config_is_told(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(DATASET, "utf-8")
    path.chmod(0)
    assert "cannot be read (Permission denied); check its path and permissions" in as_nobody(
        lambda: load([path])
    )


def test_an_unreadable_source_is_told(tmp_path):
    source = tmp_path / "features.npz"
    source.touch(mode=0)
    values = {
        "dataset": {"lineage": "x", "source": f"npz:{source}", "nominal_size": 100, "classes": 2},
        "features": {"model": "none"},
        "privacy": {"epsilon": 1.0, "delta": 1e-5},
    }
    message = as_nobody(lambda: resolve(values))
    assert "dataset.source" in message
    assert "permissions" in message


def as_nobody(action) -> str:
    """The message of a BadInput raised in a child that is not root, because root can read
    everything."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            action()
        except BadInput as error:
            os.write(writing, str(error).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        message = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "no BadInput was raised"
    return message


def test_all_problems_of_a_file_are_told_at_once(tmp_path):
    file = tmp_path / "many.yaml"
    file.write_text(
        "mode: reserch\n"
        "dataset: {lineage: digits, source: digit, nominal_size: 1400}\n"
        "privacy: {epsilon: -1, delta: 0.1}\n"
        "fit: {degre: 1}\n"
        "sweep: {search: {eta: [5, 1]}}\n"
        "experiments: {a: {learner: {momentum: 2}}, B: {mode: research}}\n",
        "utf-8",
    )
    lines = message_of(file).splitlines()
    assert lines[0] == "config: 9 problems"
    for key in (
        "mode",
        "dataset.source",  # found by a check between keys, though other keys are wrong
        "privacy.epsilon",
        "privacy.delta",
        "fit.degre",
        "sweep.search.eta",
        "experiments.a.learner.momentum",
        "experiments.B",
        "experiments.B.mode",
    ):
        assert sum(line.startswith(f"  - {key} ({file}:") for line in lines) == 1, key


def test_all_keys_given_twice_are_told_at_once(tmp_path):
    file = tmp_path / "twice.yaml"
    file.write_text("mode: release\nmode: release\nfit: {degree: 1, degree: 1}\n", "utf-8")
    assert [line.count("stands twice") for line in message_of(file).splitlines()] == [1, 1]


def test_a_problem_of_the_base_is_not_repeated_for_each_experiment(tmp_path):
    file = tmp_path / "base.yaml"
    file.write_text(
        f"{DATASET}\nprivacy: {{epsilon: -1, delta: 0.5}}\nexperiments: {{a: , b: {{fit: "
        "{}}}\n",
        "utf-8",
    )
    assert message_of(file).startswith("config: 2 problems")


def test_an_experiment_that_repeats_a_mistake_of_the_base_is_told_too(tmp_path):
    file = tmp_path / "base.yaml"
    file.write_text(
        f"{DATASET}\n{PRIVACY}\nfit: {{degre: 1}}\nexperiments: {{a: {{fit: {{degre: 1}}}}}}\n",
        "utf-8",
    )
    message = message_of(file)
    assert f"fit.degre ({file}:3)" in message
    assert f"experiments.a.fit.degre ({file}:4)" in message


@pytest.mark.parametrize(
    "more",
    [
        "mode: reserch\nresearch: {repeats: 3}",  # might be research, where repeats are fine
        "fit: {degree: three}\nsweep: {rungs: [{epsilon: 0.1, trials: 3}]}",
        # a search that climbs no ladder was meant
        "hpo: {name: random_serch}\nsweep: {rungs: [{epsilon: 0.1, trials: 3}]}\n"
        "fit: {using: best, against: mu}",
        # no cut was meant
        "features: {modl: none, until: blocks.5}\nlearner: {name: dp_finetune}",
        # classes were meant
        "dataset: {lineage: x, source: 'folder:/', nominal_size: 100, clases: 2}",
    ],
)
def test_one_mistake_is_not_told_twice_through_its_echo(more, tmp_path):
    file = tmp_path / "echo.yaml"
    file.write_text(
        "\n".join([*([] if more.startswith("dataset") else [DATASET]), PRIVACY, more]), "utf-8"
    )
    assert message_of(file).startswith("config: 1 problem\n")


def test_a_mistake_stands_where_the_last_file_put_it(tmp_path):
    base, over = tmp_path / "base.yaml", tmp_path / "over.yaml"
    base.write_text(f"{DATASET}\n{PRIVACY}\n", "utf-8")
    over.write_text("\nprivacy: {epsilon: 0}\n", "utf-8")
    assert f"privacy.epsilon ({over}:2)" in message_of(base, over)


def test_a_mistake_in_an_override_is_named_without_a_place(tmp_path):
    base = tmp_path / "base.yaml"
    base.write_text(f"{DATASET}\n{PRIVACY}\n", "utf-8")
    assert "  - fit.degre: given 2; unknown key" in message_of(base, fit={"degre": 2})
    assert "  - privacy.epsilon: given 0" in message_of(base, privacy={"epsilon": 0})
    assert "write it out plainly" in message_of(base, fit={(1, 2): 2})


def checkpoints(folder: Path) -> dict[str, Path]:
    """Files under a checkpoint's name that hold none, and sound ones: of safetensors, and of
    torch's two forms."""
    tensors = {"layer.weight": torch.arange(6.0).view(2, 3)}
    made = {name: folder / f"{name}.pth" for name in ("pointer", "torn", "sound", "old")}
    made |= {name: folder / f"{name}.safetensors" for name in ("short", "cut", "list", "whole")}
    save_file(tensors, made["whole"])
    torch.save(tensors, made["sound"])
    torch.save(tensors, made["old"], _use_new_zipfile_serialization=False)
    made["pointer"].write_text("version https://git-lfs.github.com/spec/v1\n")
    made["torn"].write_bytes(made["sound"].read_bytes()[:-30])
    made["short"].write_bytes(b"abc")
    made["cut"].write_bytes(made["whole"].read_bytes()[:-1])
    made["list"].write_bytes((2).to_bytes(8, "little") + b"[]")
    made["pipe"] = folder / "pipe.bin"
    os.mkfifo(made["pipe"])
    made["name"] = folder / "weights.npz"
    made["name"].touch()
    return made


def test_a_checkpoint_is_looked_at_from_outside_before_anything_is_planned_on_it(tmp_path):
    wrong = {name: wrong_with_checkpoint(path) for name, path in checkpoints(tmp_path).items()}
    assert [name for name, said in wrong.items() if said is None] == ["sound", "old", "whole"]
    assert "ordinary file" in wrong["pipe"]
    assert "must end in .safetensors" in wrong["name"]
    assert "git lfs pull" in wrong["pointer"]
