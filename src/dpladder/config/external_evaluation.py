"""What holds for an experiment that measures another one's models (evaluate.of): it trains nothing,
and has people of its own.

The count is charged to the lineage whose records are counted, and to no other (contract 16). So
these rules keep what is said of other people's data apart from what is said of the models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from dpladder.config.dataset_sections import Dataset
from dpladder.config.model import Config, ExternalEvaluation
from dpladder.config.rules import Messages, Problem, Table, problems, rule_if
from dpladder.config.sources import labels_of, names_of
from dpladder.config.wording import KeyPath, holds_key, value_as_text

# What such an experiment must say itself, and the sections that it may.
THEIRS = (
    ("dataset", "lineage"),
    ("dataset", "source"),
    ("dataset", "nominal_size"),
    ("privacy", "epsilon"),
)
SECTIONS = ("dataset", "privacy", "evaluate", "resources", "respend")
# What the other one says of its own data and of what it buys there, which is nothing of these
# people.
TESTER_KEYS: tuple[KeyPath, ...] = (
    ("evaluate",),
    *(
        ("dataset", key)
        for key in (
            "census",
            "declared_public",
            "equal_rows",
            "group",
            "majority",
            "public_test",
            "rare",
            "version",
        )
    ),
    ("privacy", "share"),
    ("privacy", "lifetime", "loss"),
    ("privacy", "lifetime", "weight"),
)


def problems_of_testers(
    experiments: Mapping[str, Config], overrides: Mapping[str, Mapping[str, object]]
) -> Iterator[Problem]:
    """What is wrong with experiments that measure another one's models, and with names that collide
    with theirs.

    Args:
        experiments: those that are valid so far, by name, the base and cells of the grid among
            them.
        overrides: what each experiment says itself; the base and cells of a grid measure nobody.
    """
    trained = [name for name, config in experiments.items() if config.tested is None]
    for name, config in experiments.items():
        of, beside = config.tested, name in overrides
        if not isinstance(config, ExternalEvaluation):
            problems = _check_test_names(name, config, experiments)
        # models can be measured only of an experiment that trains, so no chain of such is possible
        elif beside and of in trained:
            problems = _tester(config, experiments[config.tested], overrides[name])
        elif of in overrides and of not in experiments:
            continue  # what is wrong there has been said
        else:
            problems = _check_measured_exists(
                config.tested, [other for other in trained if other != name] if beside else []
            )
        at: KeyPath = ("experiments", name) if beside else ()
        yield from (((*at, *key), what) for key, what in problems)


def _check_measured_exists(of: str, names: Sequence[str]) -> Iterator[Problem]:
    """Models that can be measured are those of experiments that train, this one left out."""
    allowed = (
        f"allowed: {', '.join(names)}"
        if names
        else "it is for experiments beside this one: leave it out"
    )
    yield ("evaluate", "of"), f"given {value_as_text(of)}; {allowed}"


def _check_test_names(
    name: str, config: Config, experiments: Mapping[str, Config]
) -> Iterator[Problem]:
    """A test is told by its name, and an experiment that measures another's models is one."""
    testers = {other for other, config_of in experiments.items() if config_of.tested == name}
    for place, also in enumerate(config.evaluate.also):
        if testers & {also.name, *(f"{also.name}-{severity}" for severity in also.severities)}:
            yield (
                ("evaluate", "also", place, "name"),
                f"given {value_as_text(also.name)}; an experiment that measures {name} is called "
                "so: choose another name",
            )


def _tester(
    config: ExternalEvaluation, tested: Config, override: Mapping[str, object]
) -> Iterator[Problem]:
    """What it must say itself, what it must not, and how its data must fit the models."""
    of = config.tested
    yield from (
        ((key,), f"{_measures(config)}: set it in {of}") for key in override if key not in SECTIONS
    )
    missing = [key for key in THEIRS if not holds_key(override, key)]
    yield from (
        (key, f"required, but missing: what {of} says is about other people; add it")
        for key in missing
    )
    # what was inherited in place of a missing key is about other people, so rules would compare
    # nonsense
    if not missing:
        yield from problems(RULES, config, beside=(tested.dataset,))


def _measures(c: ExternalEvaluation) -> str:
    return f"it measures {c.tested}, and trains nothing"


def _check_left_out(key: str, c: ExternalEvaluation, there: Dataset) -> Messages:
    """A key that is about training: only the experiment that trains may set it."""
    if getattr(c.dataset, key) != getattr(there, key):
        yield f"{_measures(c)}: set it in {c.tested}"


def _check_same_as_measured(key: str, c: ExternalEvaluation, there: Dataset) -> Messages:
    """A key on which the meaning of labels or features depends: both sides must agree."""
    mine, its = (_comparable(dataset, key) for dataset in (c.dataset, there))
    if mine != its:
        yield (
            f"given {value_as_text(mine)}, but {value_as_text(its)} in {c.tested}, whose models "
            "are measured: give both the same"
        )


def _comparable(dataset: Dataset, key: str) -> object:
    """A value as both sides are compared by. Of jsonl the columns are no features, so they may
    differ."""
    if key == "columns":
        return [] if dataset.source.startswith("jsonl:") else list(dataset.columns)
    return getattr(dataset, key)


def _classes_agree(one: Dataset, other: Dataset) -> bool:
    """Whether a class has the same number in both: by its name, where there are names.

    A count of right predictions compares numbers, so other names under the same numbers would make
    it meaningless.
    """
    published = [labels_of(dataset.source) for dataset in (one, other)]
    if None not in published and published[0] != published[1]:
        return False
    names = [names_of(dataset.source, dataset.classes) for dataset in (one, other)]
    return names[0] == names[1] and (names[0] is not None or one.classes == other.classes)


RULES: Table = {
    "mode": rule_if(
        lambda c, there: c.mode == "research",
        lambda c, there: (
            f"evaluate.of pays for counts of other people's records, and in research nobody is "
            f"protected: give the source to evaluate.also of {c.tested}, where counts are exact"
        ),
    ),
    "dataset.lineage": rule_if(
        lambda c, there: c.dataset.lineage == there.lineage,
        lambda c, there: (
            f"given {value_as_text(there.lineage)}, the lineage of {c.tested} itself: name that of "
            f"these records; what {c.tested} holds out is measured there"
        ),
    ),
    "dataset.source": rule_if(
        lambda c, there: c.dataset.source == there.source,
        lambda c, there: (
            f"given {value_as_text(there.source)}, the source of {c.tested} itself: name that of "
            "other people's records"
        ),
    ),
    "dataset.public_test": rule_if(
        lambda c, there: c.dataset.public_test is not None,
        lambda c, there: (
            f"{_measures(c)}, on private records: a public source goes into evaluate.also of "
            f"{c.tested}"
        ),
    ),
    "dataset.group.train": rule_if(
        lambda c, there: c.dataset.group is not None and c.dataset.group.train,
        lambda c, there: (
            f"given {value_as_text(list(c.dataset.group.train))}, but {_measures(c)}: leave it out"
        ),
    ),
    "evaluate.also": rule_if(
        lambda c, there: c.evaluate.also,
        lambda c, there: f"{_measures(c)}: further tests are those of {c.tested}",
    ),
    "dataset.public_sample": partial(_check_left_out, "public_sample"),
    "dataset.public_validation": partial(_check_left_out, "public_validation"),
    "dataset.public_unlabelled": partial(_check_left_out, "public_unlabelled"),
    "dataset.labels": partial(_check_same_as_measured, "labels"),
    "dataset.columns": partial(_check_same_as_measured, "columns"),
    "dataset.spans": partial(_check_same_as_measured, "spans"),
    "dataset.classes": rule_if(
        lambda c, there: not _classes_agree(c.dataset, there),
        lambda c, there: (
            f"given {value_as_text(c.dataset.classes)} with source "
            f"{value_as_text(c.dataset.source)}; they are not the classes of {c.tested} by their "
            "names and order: list in both the same names"
        ),
    ),
}
"""Each sees the experiment and the data set of the one that it measures."""
