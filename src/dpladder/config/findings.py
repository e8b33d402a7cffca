"""What a config may say beside `dataset.labels: many`: the learners, searches and measures that
take findings, and the keys that only they have."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from dpladder.config.label_sets import MANY, MOST_FINDINGS
from dpladder.config.learners import names_with
from dpladder.config.rules import Messages, Table, union

TAKEN: Mapping[str, tuple[object, ...]] = {
    "learner.name": names_with("findings"),
    "learner.link": ("sigmoid",),
    "learner.alpha": (1.0,),
    "learner.init": ("zero", "random"),
    "learner.public": ("auto", "none"),
    "hpo.name": ("ladder",),
    "final.without_noise": (False,),
    "task": ("classification",),
}
"""The values that take findings. A key that a section lacks is not asked for."""


def has_many_labels(c: Any) -> bool:
    """Whether a record has any number of findings, each told by itself (`dataset.labels: many`)."""
    return bool(c.dataset.labels == MANY)


def _check_supported(key: str, c: Any) -> Messages:
    """One rule for each key of `TAKEN`: with findings its value must be among those that take
    them."""
    section, _, name = key.rpartition(".")
    value = getattr(getattr(c, section) if section else c, name, None)
    if has_many_labels(c) and value is not None and value not in TAKEN[key]:
        allowed = " or ".join(
            str(one).lower() if isinstance(one, bool) else str(one) for one in TAKEN[key]
        )
        yield f"with dataset.labels: many a record has several findings: set {key}: {allowed}"


def _label(c: Any) -> Messages:
    """A list of label columns is a column for each finding, so there must be as many as classes."""
    columns = c.dataset.label
    if not isinstance(columns, tuple):
        return
    if not has_many_labels(c):
        yield "a list is a column for each class: set dataset.labels: many, or name one column"
    count = c.dataset.classes if isinstance(c.dataset.classes, int) else len(c.dataset.classes)
    if count != len(columns):
        yield f"{len(columns)} columns for {count} classes: name a column for each class, in order"


def _shared_sums(c: Any) -> Messages:
    """Sums over the records of one class mean nothing where a record has several findings."""
    if has_many_labels(c) and c.learner.trials_are_solved:
        yield "with dataset.labels: many there are no sums of classes: set sums: covariance"


def check_finding_count(count: int) -> Messages:
    """What a record's number can hold: a digit to the base of 3 for each finding, in 63 bits.

    Args:
        count: of classes.
    """
    if count > MOST_FINDINGS:
        yield f"given 'many' with {count} classes; at most {MOST_FINDINGS} can be told together"


def _check_further_tests(c: Any) -> Messages:
    if has_many_labels(c) and any(also.source is not None for also in c.evaluate.also):
        yield (
            "with dataset.labels: many another source's labels are not matched: give tests of test "
            "alone"
        )


RULES: Table = {
    "evaluate.also": _check_further_tests,
    "dataset.label": _label,
    "learner.shared": _shared_sums,
}
"""Beside them, each key of `TAKEN` has its rule."""


def with_finding_rules(rules: Table) -> Table:
    """A table of rules with those of findings, where both may be about one key.

    Args:
        rules: for records of one class. Of a key that is in both, they speak only where findings do
            not.
    """

    def both(key: str, c: Any) -> Messages:
        problems = [*_check_supported(key, c)]
        yield from problems or (rules[key](c) if key in rules else ())

    return {**union(rules, RULES), **{key: partial(both, key) for key in TAKEN}}
