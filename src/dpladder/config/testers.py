"""What holds for an experiment that measures another one's models (evaluate.of): it trains nothing,
and has people of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dpladder.config.model import Config, Dataset
from dpladder.config.rules import Problem
from dpladder.config.sources import labels_of, names_of
from dpladder.config.wording import KeyPath, gives, shown

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
OWN: tuple[KeyPath, ...] = (
    ("evaluate",),
    *(
        ("dataset", key)
        for key in ("declared_public", "few_usable", "group", "new_lineage", "public_test")
    ),
    ("privacy", "share"),
    ("privacy", "lifetime", "loss"),
    ("privacy", "lifetime", "weight"),
)


def problems_of_testers(
    experiments: Mapping[str, Config], given: Mapping[str, Mapping[str, object]]
) -> Iterator[Problem]:
    """`given`: what each experiment says itself; the base and cells of a grid measure nobody."""
    trained = [name for name, config in experiments.items() if config.evaluate.of is None]
    for name, config in experiments.items():
        of, beside = config.evaluate.of, name in given
        if of is None:
            found = _called_alike(name, config, experiments)
        elif beside and of in trained:
            found = _tester(config, experiments[of], given[name])
        elif of in given and of not in experiments:
            continue  # what is wrong there has been said
        else:
            found = _of_nobody(of, [other for other in trained if other != name] if beside else [])
        at: KeyPath = ("experiments", name) if beside else ()
        yield from (((*at, *key), what) for key, what in found)


def _of_nobody(of: str, others: Sequence[str]) -> Iterator[Problem]:
    allowed = (
        f"allowed: {', '.join(others)}"
        if others
        else "it is for experiments beside this one: leave it out"
    )
    yield ("evaluate", "of"), f"given {shown(of)}; {allowed}"


def _called_alike(
    name: str, config: Config, experiments: Mapping[str, Config]
) -> Iterator[Problem]:
    """A test is told by its name, and an experiment that measures another's models is one."""
    testers = {other for other, found in experiments.items() if found.evaluate.of == name}
    for place, also in enumerate(config.evaluate.also):
        if testers & {also.name, *(f"{also.name}-{severity}" for severity in also.severities)}:
            yield (
                ("evaluate", "also", place, "name"),
                f"given {shown(also.name)}; an experiment that measures {name} is called so: "
                "choose another name",
            )


def _tester(config: Config, tested: Config, given: Mapping[str, object]) -> Iterator[Problem]:
    of, dataset, there = config.evaluate.of, config.dataset, tested.dataset
    measures = f"it measures {of}, and trains nothing"
    yield from (((key,), f"{measures}: set it in {of}") for key in given if key not in SECTIONS)
    missing = [key for key in THEIRS if not gives(given, key)]
    yield from (
        (key, f"required, but missing: what {of} says is about other people; add it")
        for key in missing
    )
    if missing:
        return
    public = ("public_sample", "public_validation")
    same = {
        "labels": (dataset.labels, there.labels),
        "columns": (_feature_columns(dataset), _feature_columns(there)),
        "spans": (dataset.spans, there.spans),
    }
    trained = () if dataset.group is None else dataset.group.train
    wrong = (
        (("dataset", "lineage"), dataset.lineage == there.lineage, f"given {shown(dataset.lineage)}, the lineage of {of} itself: name that of these records; what {of} holds out is measured there"),
        (("dataset", "source"), dataset.source == there.source, f"given {shown(dataset.source)}, "
                                                                f"the source of {of} itself: name "
                                                                "that of other people's records"),
        (("dataset", "public_test"), dataset.public_test is not None, f"given {shown(dataset.public_test)}; {measures}, on private records: a public source goes into evaluate.also of {of}"),
        (("dataset", "group", "train"), bool(trained), f"given {shown(list(trained))}, but "
                                                       f"{measures}: leave it out"),
        (("evaluate", "also"), bool(config.evaluate.also), f"{measures}: further tests are those "
                                                           f"of {of}"),
        *((("dataset", key), getattr(dataset, key) != getattr(there, key), f"{measures}: set it in {of}") for key in public),
        *((("dataset", key), own != its, f"given {shown(own)}, but {shown(its)} in {of}, whose "
                                         "models are measured: give both the "
                                         "same") for key, (own, its) in same.items()),
        (("dataset", "classes"), not _classes_agree(dataset, there), f"given {shown(dataset.classes)} with source {shown(dataset.source)}; they are not the classes of {of} by their names and order: list in both the same names"),
    )  # fmt: skip
    yield from ((key, what) for key, holds, what in wrong if holds)


def _feature_columns(dataset: Dataset) -> list[object]:
    """The columns that are features: those of jsonl are none."""
    return [] if dataset.source.startswith("jsonl:") else list(dataset.columns)


def _classes_agree(one: Dataset, other: Dataset) -> bool:
    """Whether a class has the same number in both: by its name, where there are names."""
    published = [labels_of(dataset.source) for dataset in (one, other)]
    if None not in published and published[0] != published[1]:
        return False
    names = [names_of(dataset.source, dataset.classes) for dataset in (one, other)]
    return names[0] == names[1] and (names[0] is not None or one.classes == other.classes)
