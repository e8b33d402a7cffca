"""The config's section about tests: what is measured, on whom, and further tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from dpladder.config.dataset_sections import Group, Groups, Where
from dpladder.config.section import NAME_PATTERN, Name, Positive, Section


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

    name: Annotated[str, Field(pattern=NAME_PATTERN, max_length=32)] = Field(
        description="what it is called in tables and figures"
    )
    source: Where | None = Field(
        None,
        description="another source to evaluate on; empty: those of `of`, corrupted",
    )
    declared_public: bool = Field(
        False,
        description="true: nobody in that source needs protection, and its counts are exact "
        "and free",
    )
    classes: Renamed = Field(
        (),
        description="what its labels count as: a list that names the labels 0, 1, ... in the words "
        "of dataset.classes (null: left out), or a mapping of its own labels to those "
        "words; empty: each label counts under its own name",
    )
    group: Group | None = Field(
        None,
        description="of a source: the groups of its records, which may be called otherwise than "
        "those of dataset.group; for measures: groups, and for tests of some of them",
    )
    of: Name | None = Field(
        None,
        description="test, or another name here: that test's images, corrupted, one test for each "
        "severity; or those of its records that are of some groups",
    )
    groups: Groups = Field(
        (),
        description="of `of`, the groups whose records are counted; empty: those that it counts "
        "itself",
    )
    corruption: Literal["blur", "noise"] | None = Field(
        None,
        description="Gaussian, as in ImageNet-C, on the image that the network sees; noise is "
        "drawn from the image itself, so that it is the same every time",
    )
    severities: Annotated[tuple[Annotated[int, Field(ge=1, le=5)], ...], Field(min_length=1)] = (
        Field((1, 2, 3, 4, 5), description="how strong: 1 to 5")
    )
    epsilon: Positive | None = Field(
        None,
        description="of each count where its records are private ones of the test part: paid "
        "beside evaluate.epsilon",
    )


Measures = Literal["accuracy", "classes", "confusion", "auc", "groups", "calibration"]
BY_CLASS: tuple[Measures, ...] = ("classes", "confusion", "auc")


class Evaluate(Section):
    """How the final model is measured on the test part."""

    of: Name | None = Field(
        None,
        description="only in experiments: another one, whose final models are measured on this "
        "one's private test part. Nothing is trained; other sections are as they are "
        "there, and this dataset.lineage alone pays, up to this privacy.epsilon for "
        "each model",
    )
    epsilon: Positive | None = Field(
        None,
        description="epsilon of the noised test count on the private test part; empty: as much as "
        "the final training",
    )
    measures: Measures = Field(
        "accuracy",
        description="what that buys: how many are right; how many of each class, or of each of "
        "dataset.group, at the same price and so with more noise in the sum; beside "
        "classes, with half of it, what each was taken for (confusion), or of two "
        "classes AUC; beside how many are right, with half of it, how sure the model "
        "was of them (calibration)",
    )
    also: tuple[Also, ...] = Field(
        (), description="further tests, each by a name, measured in the same way"
    )
