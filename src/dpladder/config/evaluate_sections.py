"""The config's section about tests: what is measured, on whom, and further tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from dpladder.config.dataset_sections import Group, Groups, Where
from dpladder.section import NAME_PATTERN, Epsilon, Name, NeutralAt, OnlyFor, Section


def _as_pairs(values: Any) -> Any:
    """A mapping, or a list that names the labels 0, 1, ..., as what each label counts as. What
    counts as null is left out."""
    if isinstance(values, Mapping):
        values = [*values.items()]
    elif not isinstance(values, list | tuple):
        return values
    elif not any(isinstance(one, list | tuple) for one in values):
        values = [(str(label), name) for label, name in enumerate(values)]
    return tuple(tuple(pair) for pair in values if pair[-1] is not None)


# a schema of what users write, for the field itself holds pairs
_WRITTEN = {
    "anyOf": [
        {"type": "array", "items": {"type": ["string", "null"]}},
        {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
    ],
    "default": [],
}
Renamed = Annotated[
    tuple[tuple[str, str], ...],
    BeforeValidator(_as_pairs),
    WithJsonSchema(_WRITTEN, mode="validation"),
]


class Also(Section):
    """Another test beside the test part, for a shift: another source, or the images of a test,
    corrupted."""

    name: Annotated[str, Field(pattern=NAME_PATTERN, max_length=32)]
    """What tables and figures call this test. Example: stl10"""
    source: Where | None = None
    """Another source to evaluate on. Empty: the records of `of`. Example: torchvision:STL10"""
    declared_public: bool = False
    """Whether nobody in that source needs protection. true: its counts are exact and free."""
    classes: Renamed = ()
    """What its labels count as, in words of dataset.classes: a mapping, or a list for the labels 0,
    1, ..., where null leaves one out. Empty: their own names. Example: {car: automobile}"""
    group: Group | None = None
    """That source's groups, with dataset.group's keys but train, for measures: groups and tests of
    some groups. Empty: none."""
    of: Name | None = None
    """Whose records are measured, corrupted or of some groups: test, or another name here. Empty:
    those of source. Example: test"""
    groups: Groups = ()
    """Groups of `of` whose records are counted. Empty: those that it counts itself. Example:
    [east]"""
    corruption: Literal["blur", "noise"] | None = None
    """Gaussian blur or noise on what the network sees, as in ImageNet-C; noise is the same every
    time. Empty: nothing. Example: blur"""
    severities: Annotated[tuple[Annotated[int, Field(ge=1, le=5)], ...], Field(min_length=1)] = (
        1,
        2,
        3,
        4,
        5,
    )
    """How strong the corruption is: a test for each."""
    epsilon: Epsilon | None = None
    """Epsilon of each count of private records, beside evaluate.epsilon. Empty: the records are
    public. Example: 0.5"""


Measure = Literal[
    "accuracy",
    "classes",
    "confusion",
    "auc",
    "groups",
    "calibration",
    "decision",
    "rmse",
    "mae",
    "r2",
]
MEASURES: tuple[Measure, ...] = get_args(Measure)
TABLES_OF: Mapping[Measure, tuple[str, ...]] = {
    "accuracy": ("right_and_wrong",),
    "classes": ("by_class",),
    "confusion": ("by_class", "answers"),
    "auc": ("by_class", "score_look", "standings"),
    "groups": ("by_group",),
    "calibration": ("right_and_wrong", "confidence"),
    "decision": ("by_class", "decision"),
    "rmse": ("right_and_wrong",),
    "mae": ("right_and_wrong", "absolute_errors"),
    "r2": ("squares",),
}
"""The tables of counts that each measure buys, as learn/measures/tables.py calls them, in the order
in which they are asked."""
OF_FINDINGS = {
    "by_class": "by_finding",
    "score_look": "score_look_by_finding",
    "standings": "standings_by_finding",
    "decision": "decision_by_finding",
}
LOOK = 0.1  # of a table's mu^2, for a first look that says what it asks
PRICES: Mapping[str, float] = {
    "sizes": LOOK,
    "score_look": LOOK,
    "score_look_by_finding": LOOK,
    "standings": 1.0 - LOOK,
    "standings_by_finding": 1.0 - LOOK,
}
"""What tables cost that are a look, or stand on one, in mu^2; all others cost 1."""
OF_NUMBERS: tuple[Measure, ...] = ("rmse", "mae", "r2")  # of what dataset.target declares
BY_CLASS: tuple[Measure, ...] = (
    "classes",
    "confusion",
    "auc",
    "decision",
)  # count each class by itself


def tables_of(
    measures: Sequence[Measure],
    findings: bool = False,
    grouped: bool = True,
    looks_at_sizes: bool = False,
) -> tuple[str, ...]:
    """Names of the tables of counts that a test buys, each once. Right and wrong of all records
    follow from those of each class or group, and from squares, so they are not bought beside them.

    Args:
        measures: as `evaluate.measures` has them.
        findings: whether each class is told by itself (`dataset.labels: many`).
        grouped: whether records have groups. Without them `groups` buys what `accuracy` does.
        looks_at_sizes: whether a number is predicted, and nobody says up to where its errors count.
    """
    tables = ["sizes"] if looks_at_sizes else []
    tables += [table for measure in measures for table in TABLES_OF[measure]]
    if not grouped:
        tables = ["right_and_wrong" if table == "by_group" else table for table in tables]
    if not {"by_class", "by_group", "squares"}.isdisjoint(tables):
        tables = [table for table in tables if table != "right_and_wrong"]
    return tuple(OF_FINDINGS.get(one, one) if findings else one for one in dict.fromkeys(tables))


def shares_of(tables: Sequence[str]) -> tuple[float, ...]:
    """The share of a test's mu^2 that each of its tables has.

    Args:
        tables: their names, one at least.
    """
    prices = [PRICES.get(table, 1.0) for table in tables]
    return tuple(price / sum(prices) for price in prices)


def _as_measures(value: Any) -> Any:
    """One measure or a list, as a tuple that is one and the same for the same tables: in the order
    of `MEASURES`, each once, and none whose tables the others buy, too."""
    if not isinstance(value, str | list | tuple):
        return value
    listed = (value,) if isinstance(value, str) else tuple(value)
    if not all(one in MEASURES for one in listed):
        return listed
    measures = [one for one in MEASURES if one in listed]
    for measure in tuple(measures):
        without = [one for one in measures if one != measure]
        if {*tables_of(without)} == {*tables_of(measures)}:
            measures = without
    return tuple(measures)


def _as_written(measures: tuple[Measure, ...]) -> Measure | tuple[Measure, ...]:
    """One measure as a word, so that a job is known by what it was known by as a word."""
    return measures[0] if len(measures) == 1 else measures


Measures = Annotated[
    tuple[Measure, ...],
    Field(min_length=1),
    BeforeValidator(_as_measures),
    PlainSerializer(_as_written),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": [*MEASURES]},
                {"type": "array", "items": {"enum": [*MEASURES]}, "minItems": 1},
            ]
        },
        mode="validation",
    ),
]


def measures_text(measures: tuple[Measure, ...]) -> str:
    """Measures as a config has them: one word, or a list."""
    return measures[0] if len(measures) == 1 else f"[{', '.join(measures)}]"


BRIER = "1 − Brier score"  # of the probabilities of findings, learn/scorers.py


def score_name(
    brier: bool, perplexity: bool, accuracy: str = "test accuracy", number: bool = False
) -> str:
    """What a test's share of its counts is called, wherever it is shown.

    Args:
        brier: whether records count by the Brier score of their findings.
        perplexity: whether they count by a language model's losses.
        accuracy: the words for a share of right predictions, which most tests count.
        number: whether they count by squared errors of a number.
    """
    if number:
        return "1 − squared error / largest²"
    if brier:
        return BRIER
    return "1 − loss / log of all words" if perplexity else accuracy


def spread_words(noised: bool) -> str:
    """What the deviation of a test's score is over, wherever it is shown.

    Args:
        noised: whether the counts are, which those of a source declared public are not.
    """
    return "noise and sampling" if noised else "sampling alone, for its counts are exact"


OF_DECISIONS = OnlyFor("evaluate.measures: decision", lambda c: "decision" in c.evaluate.measures)
OF_PREDICTIONS = OnlyFor(
    "task: classification or regression",
    lambda c: c.task in ("classification", "regression"),
)


class Evaluate(Section):
    """How the final model is measured on the test part."""

    epsilon: Epsilon | None = None
    """Epsilon of the count on the private test part. Empty: as much as the final training. Example:
    0.5"""
    measures: Annotated[Measures, OF_PREDICTIONS] = ("accuracy",)
    """What the test buys, at one price (docs/evaluation.md). accuracy: how many are right. classes,
    groups: that of each class or group. confusion: what each class was taken for. auc: of two
    classes or findings. calibration: how sure the model was. decision: how often who acts from
    `threshold` on is right. Of numbers: rmse, mae, r2. Example: [auc, calibration, groups]"""
    threshold: Annotated[float | None, Field(gt=0, lt=1), NeutralAt(None), OF_DECISIONS] = None
    """The probability of the second class, or of each finding, from which people act. A change asks
    the test anew. Empty: no decision is counted. Example: 0.1"""
    also: Annotated[tuple[Also, ...], OF_PREDICTIONS] = ()
    """Further tests, measured in the same way. Empty: none. Example: [{name: blurred, of: test,
    corruption: blur, epsilon: 0.5}]"""
