"""Rules between the keys of the data, and of what is measured on it.

Shares, counts and names of classes are compared with each other as the operator declared them. No
rule reads a record: what depends on records could stop a run for a private reason (contract:
refuse-first).
"""

from __future__ import annotations

from functools import partial
from itertools import zip_longest

from dpladder.config import findings
from dpladder.config.dataset_sections import SOURCES_OF_DATASET
from dpladder.config.evaluate_sections import BY_CLASS, OF_NUMBERS
from dpladder.config.images_with_table import apart_of
from dpladder.config.label_sets import MANY, NUMBER, most_labels
from dpladder.config.learners import names_with
from dpladder.config.model import Config
from dpladder.config.rules import Messages, Table, rule_if
from dpladder.config.search_sections import Ladder
from dpladder.config.source_rules import group_rules, overlapping_source, wrong_with_source
from dpladder.config.sources import SourceKind, count_of_classes, kind_of, labels_of, overlap
from dpladder.wording import value_as_text

MOST_CONFUSED = 30  # classes in a table of what each was taken for
LINE_COLUMNS = ("id", "user", "split")


def _kind(c: Config) -> SourceKind | None:
    """What is known of the private source."""
    return kind_of(c.dataset.source)


def _names(c: Config) -> tuple[str, ...]:
    """Names of the classes, where the config lists any."""
    return c.dataset.classes if isinstance(c.dataset.classes, tuple) else ()


def _source(field: str, c: Config) -> Messages:
    """A source that exists and, of a public one, shares no record with the private source by its
    name."""
    private, source = c.dataset.source, getattr(c.dataset, field)
    yield from wrong_with_source(source)
    if source is None or field == "source":
        return
    # a record that is public in one place and private in the other has no privacy to keep
    if overlap(source, private):
        yield (
            f"{overlapping_source(source, private)}; name another one that is open to everybody, "
            "or hold out private data by dataset.split"
        )
    kind = kind_of(source)
    of_one = kind is not None and not kind.by_columns
    if of_one and findings.has_many_labels(c):
        yield "with dataset.labels: many name a table or arrays: a record of this has one label"
    told_by_groups = group_rules("", lambda: (source, c.dataset.group)).values()
    of_part = field not in ("public_sample", "public_unlabelled")
    if of_part and any([*rule()] for rule in told_by_groups):
        yield (
            "with dataset.group its records are told by the same groups, and it has none there: "
            "name it in evaluate.also"
        )
    # the student learns what the released head says of a record, which is post-processing
    if field == "public_unlabelled" and not c.learner.linear_head:
        heads = ", ".join(names_with("linear_head"))
        yield f"a linear head labels them: set learner.name to one of {heads}"
    if not of_part and (field == "public_unlabelled" or not c.learner.starts_from_public_head):
        return
    # labels that are numbers are matched by place there, which must not mean other classes
    here, there = labels_of(private), labels_of(source)
    if here is not None and there is not None and here != there:
        place = next(at for at, both in enumerate(zip_longest(here, there)) if both[0] != both[1])
        remedy = (
            f"learner.{'public: gradient' if c.learner.uses_public_gradient else 'init: public'} "
            "needs one whose labels are the same"
            if field == "public_sample"
            else "name it in evaluate.also, where labels are matched by name"
        )
        yield (
            f"its label {place} and that of {value_as_text(private)} are not the same class by "
            f"their names: {remedy}"
        )


def _columns(c: Config) -> Messages:
    """Columns may be chosen, but never the one that holds the labels."""
    columns, source = c.dataset.columns, c.dataset.source
    if source.startswith("jsonl:") and not set(columns) <= set(LINE_COLUMNS):
        yield f"for jsonl name those of {', '.join(LINE_COLUMNS)} that its lines have"
    elif columns and c.features.takes == "texts" and source.startswith(("csv:", "parquet:")):
        yield "of a table of texts the column text is read; leave it out"
    # a feature that is the label would be right every time, and say nothing of new records
    elif repeated := {*c.dataset.names_of_columns} & {*(c.dataset.label_columns or ("label",))}:
        names = ", ".join(sorted(repeated))
        yield f"names {names}, which holds the labels and is no feature; leave it out"
    elif c.dataset.monotone and (wrong := _no_direction(c)):
        yield f"says that {next(iter(c.dataset.monotone))} is monotone; {wrong}"


def _no_direction(c: Config) -> str:
    """What to do where a prediction has no direction to rise in, or no final training has one."""
    if (
        c.task == "classification"
        and c.dataset.labels != MANY
        and count_of_classes(c.dataset.source, c.dataset.classes) != 2
    ):
        return "that is of two classes, of findings (dataset.labels: many) or of a number"
    if not isinstance(c.hpo, Ladder):
        return "a private search releases no such model: set hpo: {name: ladder}"
    return ""


def _two_users(c: Config) -> bool:
    """Whether both a column and a folder say whose an image is."""
    apart = apart_of(c.dataset.source)
    return c.dataset.user is not None and apart is not None and apart.patient is not None


def _classes(c: Config) -> Messages:
    """Refuse the operator's own files without declared classes: to read classes off the data would
    reveal which there are."""
    classes, kind = c.dataset.classes, _kind(c)
    if classes is None and kind and kind.is_private_file:
        yield (
            "required for your own data: list the class names, or say how many there are; they are "
            "public"
        )
    if len(_names(c)) == 1 or (classes == 1 and c.task == "classification"):
        yield "a single class leaves nothing to tell apart; name two or more"


def _count(c: Config) -> int | None:
    return count_of_classes(c.dataset.source, c.dataset.classes)


def _majority(c: Config) -> Messages:
    """The largest of K classes has a share of 1/K at least, so a smaller one is a slip."""
    share, count = c.dataset.majority, _count(c)
    if share is not None and count and c.dataset.target is None and share < 1 / count:
        yield (
            f"given {share:g}, and the largest of {count} classes holds {1 / count:.4g} at least: "
            "correct it, or leave it out"
        )


def _rare(c: Config) -> Messages:
    """The rarest of K classes has a share of 1/K at most. Of findings each has its own, so nothing
    follows."""
    share, count, largest = c.dataset.rare, _count(c), c.dataset.majority
    if share is None or c.dataset.labels != 1:
        return
    if count and share > 1 / count:
        yield (
            f"given {share:g}, and the rarest of {count} classes holds {1 / count:.4g} at most: "
            "correct it, or leave it out"
        )
    elif largest is not None and share > 1 - largest:
        yield f"dataset.majority leaves {1 - largest:.4g} to all other classes: correct one of both"


def labels(c: Config) -> Messages:
    """A record of several classes needs room for them, and a learner and a measure that know of
    it."""
    dataset, kind, names, count = c.dataset, _kind(c), _names(c), _count(c) or 2
    if dataset.labels in (1, NUMBER):
        return
    if kind and not kind.by_columns:
        yield f"a record of {value_as_text(dataset.source)} has one label: leave it out"
    if dataset.labels == MANY:
        yield from findings.check_finding_count(count)
    elif not c.learner.several_labels:
        yield (
            f"{c.learner.name} takes one class for each record: use learner: {{name: "
            f"{' or '.join(names_with('several_labels'))}}}, or leave it out"
        )
    # a set of classes is kept as one whole number of 63 bits (label_sets.py)
    elif dataset.labels > most_labels(count):
        yield f"of {count} classes at most {most_labels(count)} can be told together"
    if any("|" in name for name in names) and not isinstance(dataset.label, tuple):
        yield "a name in dataset.classes holds a bar, which stands between names: call it otherwise"
    if any(name.strip().startswith("-") for name in names):
        yield (
            "a name in dataset.classes begins with a minus, and rows of labels are filled up with "
            "numbers below 0: call it otherwise"
        )


def _test_part(c: Config) -> Messages:
    """A final model is measured: on a private test part, or on a public source."""
    split = c.dataset.split
    if c.dataset.public_test is None and split.rule == "hash" and split.test == 0:
        yield (
            "the final model needs something to be measured on: raise it, or name "
            "dataset.public_test"
        )


def _measures(c: Config) -> Messages:
    """A record counts once in what is bought, so that one unit moves a count by its bound."""
    measures, labels, count = c.evaluate.measures, c.dataset.labels, _count(c)
    if labels == NUMBER:
        if "groups" in measures and c.dataset.group is None:
            yield "groups needs dataset.group, which names the groups"
        return
    if not {*OF_NUMBERS}.isdisjoint(measures):
        yield "rmse, mae and r2 are of numbers: name what is predicted in dataset.target"
    if not {*BY_CLASS}.isdisjoint(measures) and labels != MANY and labels > 1:
        yield (
            "with dataset.labels above 1 a record is of several classes, and would count in "
            "several: use accuracy, or groups"
        )
    if "groups" in measures and c.dataset.group is None:
        yield "groups needs dataset.group, which names the groups"
    if "confusion" in measures and labels == MANY:
        yield "confusion is of classes, and findings are each told by themselves: use classes"
    if "confusion" in measures and count and count > MOST_CONFUSED:
        yield (
            f"a table of {count} times {count} counts would be mostly noise, and {MOST_CONFUSED} "
            "classes are the most that it is made of: set measures: classes"
        )
    # one score, which two classes have and findings have each
    for one in sorted({"auc", "decision"} & {*measures}) if count != 2 and labels != MANY else ():
        reason = f"there are {count} classes" if count else "its classes are known when it is read"
        yield (
            f"{reason}, and {one} is of two: set measures: classes, or dataset.classes to two names"
        )
    if "decision" in measures and c.evaluate.threshold is None:
        yield "decision needs evaluate.threshold, the probability from which people act"


DATASET: Table = {
    **{f"dataset.{field}": partial(_source, field) for field in SOURCES_OF_DATASET},
    "dataset.columns": _columns,
    "dataset.id": rule_if(
        lambda c: c.dataset.id is not None and apart_of(c.dataset.source) is not None,
        "an image is known by its path below the folder, and so is a bag; leave it out",
    ),
    "dataset.user": rule_if(_two_users, "dataset.source.patient says whose an image is; keep one"),
    "dataset.classes": _classes,
    "dataset.labels": labels,
    "dataset.majority": _majority,
    "dataset.rare": _rare,
    "dataset.unit.pool": rule_if(
        lambda c: c.dataset.unit.pooled and (c.features.until or c.task == "language_model"),
        "a mean is of pooled features, and this learner trains a part of the network: use a head's "
        "learner without features.until, or a cap",
    ),
    "dataset.split.test": _test_part,
    **group_rules("dataset.group", lambda c: (c.dataset.source, c.dataset.group)),
    "evaluate.measures": _measures,
}
