"""What a task decides by itself, and what it alone can have.

Each task has a table of rules of its own, which see the config as it was given. Afterwards
`apply_task` writes the keys that the task decides, and the other rules see those.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpladder.config.dataset_sections import NumberTarget
from dpladder.config.evaluate_sections import OF_NUMBERS
from dpladder.config.features_sections import HUGGING_FACE
from dpladder.config.label_sets import NUMBER
from dpladder.config.learner_sections import Descending
from dpladder.config.learners import names_with
from dpladder.config.model import Config
from dpladder.config.rules import Messages, Problem, Table, problems, rule_if, rules_of_marks
from dpladder.wording import value_as_text

ANY_RIDGE = (1e-9, 1e9)  # of sweep.search.eta, for least squares
INPUT = "input"  # of features.until: from the first layer on
MARKS = rules_of_marks(Config)
TASK_OF_POOLING = {"none": "language_model"}


def problems_of_task(config: Config) -> Iterator[Problem]:
    """Keys that a task decides by itself, as they were given; and what only one task can have.

    Args:
        config: as it was given: `apply_task` overwrites these keys.
    """
    of_task = {
        "language_model": LANGUAGE_MODEL,
        "classification": CLASSIFIER,
        "regression": REGRESSION,
    }[config.task]
    yield from problems(MARKS, config)
    yield from problems(of_task, config)


def apply_task(config: Config) -> Config:
    """With what its task decides: records of a language model are of one kind, and of a text
    every token is kept. A target is the one label there is. Columns that hold a class
    each name the classes.

    Args:
        config: as it was given.

    Returns:
        The same where the task decides nothing. All that plans or runs sees the values that are set
        here.
    """
    if config.task == "regression" and config.dataset.target is not None:
        return _apply_target(config, config.dataset.target)
    if config.task in ("classification", "regression"):
        if config.dataset.classes is not None or not isinstance(config.dataset.label, tuple):
            return config
        with_classes = config.dataset.model_copy(update={"classes": config.dataset.label})
        return config.model_copy(update={"dataset": with_classes})
    features = config.features.model_copy(update={"until": INPUT, "pooling": "none"})
    dataset = config.dataset.model_copy(update={"classes": 1})
    return config.model_copy(update={"features": features, "dataset": dataset})


def _apply_target(config: Config, target: NumberTarget) -> Config:
    """With what a number decides that is learnt: its label, and defaults of what was left out, of
    columns' length, of a descent's loss, clip and steps, and of what tests measure."""
    of_number = {"classes": 1, "labels": NUMBER}
    if target.column is not None:
        of_number["label"] = target.column
    features = config.features
    of_table = features.model == "none" and bool(config.dataset.columns)
    if of_table and "length" not in features.model_fields_set:
        # their direction alone does not tell what columns do
        typical = features.typical if "typical" in features.model_fields_set else 1.0
        centre = features.centre if "centre" in features.model_fields_set else "none"
        features = features.model_copy(
            update={"length": "at_most", "typical": typical, "centre": centre}
        )
    learner, search, most = config.learner, config.sweep.search, ANY_RIDGE[1]
    if isinstance(learner, Descending):
        length = features.typical if isinstance(features.length, str) else features.length
        # a gradient is an error times the record: one of a quarter of the range is not cut
        clip = learner.clip if "clip" in learner.model_fields_set else length / 2
        # rows of tables are not centred, so nothing else stands for an intercept
        bias = learner.bias or ("bias" not in learner.model_fields_set and of_table)
        learner = learner.model_copy(update={"link": "identity", "clip": clip, "bias": bias})
        # above 2 (1 + m) over the largest curvature, steps run away (Polyak 1964)
        most = min(search.eta[1], 2 / length**2)
    if "eta" not in search.model_fields_set:
        search = search.model_copy(update={"eta": (min(ANY_RIDGE[0], most / 1e6), most)})
    measures = config.evaluate.measures
    measures = ("rmse",) if measures == ("accuracy",) else measures
    sections = {
        "dataset": config.dataset.model_copy(update=of_number),
        "features": features,
        "learner": learner,
        "sweep": config.sweep.model_copy(update={"search": search}),
        "evaluate": config.evaluate.model_copy(update={"measures": measures}),
    }
    return config.model_copy(update=sections)


def _unit(c: Config) -> Messages:
    """Spans are records of a document, so to protect one span alone would protect no document."""
    spans, by = c.dataset.spans, c.dataset.unit.by
    if spans and by == "record":
        yield (
            "with dataset.spans a document is several records, and to protect each by itself "
            "protects no document: set by: document, or user, and cap: how many of its records may "
            "count"
        )
    if not spans and by == "document":
        yield (
            "without dataset.spans a document is one record: set dataset.spans: true, or by: record"
        )


def _target(c: Config) -> Messages:
    """A number is learnt where one is declared, and nowhere else."""
    if c.task == "regression" and c.dataset.target is None:
        yield "required with task: regression: give the public range of the number that is learnt"
    if c.task != "regression" and c.dataset.target is not None:
        yield f"task: {c.task} learns no number: set task: regression, or leave it out"


def _number_measures(c: Config) -> Messages:
    """What is measured of a number. Left out, accuracy stands for rmse (`apply_task`)."""
    wrong = {*c.evaluate.measures} - {*OF_NUMBERS, "groups"}
    if wrong and (wrong != {"accuracy"} or "measures" in c.evaluate.model_fields_set):
        yield f"of numbers there are {', '.join(OF_NUMBERS)} and groups; use some of these"


DECIDED = "a key which task: language_model decides by itself; leave it out"
LANGUAGE_MODEL: Table = {
    "dataset.target": _target,
    # to write what the task sets anyhow is no mistake
    "features.until": rule_if(lambda c: c.features.until not in (None, INPUT), DECIDED),
    "features.pooling": rule_if(lambda c: c.features.pooling not in ("mean", "none"), DECIDED),
    "features.model": rule_if(
        lambda c: not c.features.model.startswith(HUGGING_FACE),
        "task: language_model needs a causal model of transformers: hf:<name or folder>",
    ),
    "learner.trains": rule_if(
        lambda c: c.learner.head_alone,
        "a language model has no head: name what of the network is trained",
    ),
    "learner.link": rule_if(
        lambda c: c.learner.above_cut and c.learner.link != "softmax",
        "a language model tells words by softmax alone; leave it out",
    ),
    "dataset.unit.by": _unit,
}
# of classes: poolings and units of the other tasks are refused
CLASSIFIER: Table = {
    "learner.link": rule_if(
        lambda c: getattr(c.learner, "link", None) == "identity",
        "dataset.target sets it, which names the number's range: leave it out",
    ),
    "dataset.target": _target,
    "learner.name": rule_if(
        lambda c: not c.learner.classes,
        "it predicts a number: name that in dataset.target, or use another learner",
    ),
    "dataset.labels": rule_if(
        lambda c: c.dataset.labels == NUMBER,
        "dataset.target sets it, which names the number's range: leave it out",
    ),
    "dataset.unit.conflicts": rule_if(
        lambda c: c.dataset.unit.conflicts == "mean",
        "classes have no mean: set nothing, any or majority",
    ),
    "features.pooling": rule_if(
        lambda c: c.features.pooling in TASK_OF_POOLING,
        lambda c: (
            f"given {value_as_text(c.features.pooling)}, which is for task: "
            f"{TASK_OF_POOLING[c.features.pooling]}; use mean, cls or last"
        ),
    ),
    "dataset.unit.by": rule_if(
        lambda c: c.dataset.unit.by == "document",
        "given 'document', which is for task: language_model; set by: record",
    ),
}
REGRESSION: Table = {
    **CLASSIFIER,
    "dataset.target": _target,
    "dataset.labels": rule_if(
        lambda c: c.dataset.labels not in (1, NUMBER), "a number has no classes; leave it out"
    ),
    "dataset.label": rule_if(
        lambda c: c.dataset.label is not None,
        "the number's column is named in dataset.target.column; leave it out",
    ),
    "dataset.target.column": rule_if(
        lambda c: (
            c.dataset.target is not None
            and c.dataset.target.column is not None
            and c.dataset.target.column
            in (c.dataset.id, c.dataset.user, c.dataset.group and c.dataset.group.column)
        ),
        "that column says whose a record is, or of which group; name another one",
    ),
    "dataset.unit.conflicts": rule_if(
        lambda c: c.dataset.unit.conflicts in ("any", "majority"),
        "a person's numbers have a mean: set mean, or nothing",
    ),
    "learner.link": rule_if(
        lambda c: (
            c.learner.numbers
            and getattr(c.learner, "link", "softmax") not in ("softmax", "identity")
        ),
        "a number has a squared error; leave it out",
    ),
    "learner.sampling_rate": rule_if(
        lambda c: c.learner.sampling < 1.0, "numbers are learnt on full batches; leave it out"
    ),
    "learner.name": rule_if(
        lambda c: not c.learner.numbers,
        lambda c: f"it tells classes apart; use {' or '.join(names_with('numbers'))}",
    ),
    "hpo.name": rule_if(
        lambda c: c.hpo.name != "ladder",
        "trainings on numbers climb the ladder alone; leave it out",
    ),
    "evaluate.measures": _number_measures,
    "evaluate.also": rule_if(
        lambda c: any(also.source is not None for also in c.evaluate.also),
        "another source's labels are matched by class, and these are numbers: give tests of test "
        "alone",
    ),
}
