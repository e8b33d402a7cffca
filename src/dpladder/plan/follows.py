"""What follows from one config: its parts and further tests, whose records are public, what its
names stand for.

Nothing here knows rules or jobs. All of it is public, for it follows from the config alone; the one
look at a disk is `fingerprint`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from dpladder.config import Config, Project
from dpladder.config.evaluate_sections import Also
from dpladder.config.learner_sections import Head
from dpladder.config.records import ALSO, Corruption, FurtherTest, Matching
from dpladder.config.sources import kind_of, labels_of, names_of, paths_of
from dpladder.section import values_of

RESULTS = Path("results")
Keys = dict[str, Any]


def further_tests(config: Config) -> dict[str, FurtherTest]:
    """What evaluate.also asks for by the tests' names, one for each severity.

    Returns:
        Tests in the config's order, a corruption's severities one after the other.
    """
    tests = [test for also in config.evaluate.also for test in _tests_by_severity(config, also)]
    return {test.name: test for test in tests}


def _tests_by_severity(config: Config, also: Also) -> Iterator[FurtherTest]:
    """The further tests of one entry: itself, or one for each severity of its corruption."""
    if also.source is not None:
        source, classes = config.dataset.source, config.dataset.classes
        count = classes if isinstance(classes, int) else None
        grouping = None if also.group is None else also.group.grouping
        labels = labels_of(also.source) or ()
        matched = Matching(names_of(source, classes), count, source, labels, also.classes, grouping)
        names = () if grouping is None else grouping.names
        yield FurtherTest(also.name, ALSO + also.name, matched=matched, named=names)
        return
    records = "test" if also.of == "test" else f"{ALSO}{also.of}"
    whole = FurtherTest(
        also.name, records, epsilon=also.epsilon, named=_groups_of(config, also), groups=also.groups
    )
    if also.corruption is None:
        yield whole
        return
    for severity in also.severities:
        how = Corruption(also.corruption, severity)
        yield replace(whole, name=f"{also.name}-{severity}", corruption=how)


def _groups_of(config: Config, also: Also) -> tuple[str, ...]:
    """What the groups of a test's records are called that is `of` another."""
    groups = {other.name: other.group for other in config.evaluate.also if other.source is not None}
    group = config.dataset.group if also.of == "test" else groups.get(also.of or "")
    return () if group is None else group.names


def further_test(config: Config, part: str) -> FurtherTest | None:
    """The further test that a part is for, if it is one's.

    None for every part that is not a further test's, and for one that this config does not have.
    """
    return further_tests(config).get(part.removeprefix(ALSO)) if part.startswith(ALSO) else None


def records_of(config: Config, part: str) -> str:
    """The part whose records a part holds: its own, but for corrupted ones.

    A part's name says which test it is for. Corrupted images and single groups are views of records
    that another part holds, so they are prepared once.
    """
    test = further_test(config, part)
    return part if test is None else test.records


def is_public(config: Config, part: str) -> bool:
    """Whether a part is a source of its own, declared public.

    False for every part of the private source, also in research, where all of that is declared
    public.
    """
    return _public_sources(config).get(records_of(config, part)) is not None


def counts_exactly(config: Config, part: str) -> bool:
    """Whether counts on a part need no noise, and cost nothing.

    That is the operator's declaration; a private test part is noised and charged (contract:
    charged-tests).
    """
    own_test = records_of(config, part) == "test" and config.exact_test
    return own_test or is_public(config, part)


def source_of(config: Config, part: str) -> str:
    """Where the records of a part come from."""
    return _public_sources(config).get(records_of(config, part)) or config.dataset.source


def _public_sources(config: Config) -> dict[str, str | None]:
    """Sources of their own by the parts that they are for; None where a part is the private
    source's."""
    dataset = config.dataset
    return {
        "test": dataset.public_test,
        "validation": dataset.public_validation,
        "sample": dataset.public_sample,
        "unlabelled": dataset.public_unlabelled,
        **{ALSO + also.name: also.source for also in config.evaluate.also},
    }


def cells(project: Project) -> dict[str, dict[str, str]]:
    """Experiments that one table compares, each with its place on every axis. They are the cells of
    the grid, or without a grid the experiments themselves, where they are repeated. Repeats are of
    their cell.

    Returns:
        By experiment its place on each axis; empty where one table would compare nothing.
    """
    compared: Mapping[str, Mapping[str, str]] = project.grid
    if not compared and any(project.repeats.values()):
        compared = {name: {"experiment": name} for name in project.repeats}
    return {
        repeat: dict(cell)
        for name, cell in compared.items()
        for repeat in (name, *project.repeats[name])
    }


def trial_parts(config: Config) -> tuple[str, ...]:
    """The parts whose features a trial reads: it trains on one, and is scored on the same or
    another.

    The part that is scored on is the last one.
    """
    select = config.sweep.select
    return tuple(dict.fromkeys(["train", "validation" if select.by == "public" else select.part]))


def nominal_size(config: Config, part: str) -> int:
    """How many units a part has by declaration. It is n0 for the training part, and for validation
    and test in proportion to the split. All others have 1, for nobody declares their size.

    Sums are divided by declared sizes alone (contract: public-sizes). A part that is declared too
    large or too small makes figures wrong, but breaks no guarantee.
    """
    dataset = config.dataset
    if part == "train":
        return dataset.nominal_size
    split = dataset.split
    share = {"validation": split.validation, "test": split.held_out}.get(part, 0.0)
    share /= 1 - split.held_out - split.validation
    return max(1, round(dataset.nominal_size * share))


def parts(config: Config) -> tuple[str, ...]:
    """The parts whose features the experiment needs.

    In a fixed order, the training part first.
    """
    sample = ("sample",) if reads_sample(config) else ()
    also = tuple(test.part for test in further_tests(config).values())
    students = ("unlabelled",) if config.dataset.public_unlabelled is not None else ()
    trained = trial_parts(config) if config.sweep.ladder else ("train",)
    return (*trained, "test", *sample, *students, *also)


def reads_sample(config: Config) -> bool:
    """Whether the public sample centres the features, or has a head to start from."""
    return config.dataset.public_sample is not None and (
        config.features.centre == "public" or config.learner.starts_from_public_head
    )


def head(config: Config) -> Head | None:
    """The private head that all trainings of the network start from.

    None where the learner starts from no private head.
    """
    return config.learner.purchases.get("head")


def looks_back(config: Config) -> bool:
    """Whether a rung's trials follow from the earlier rungs' releases: where to look."""
    search = config.sweep.search
    return search.prior in ("monotone", "proportional") or search.draw == "binary"


def artifact(experiment: str, target: float) -> str:
    """The file that a total's guarantee is about: the weights of its final model.

    Args:
        experiment: its name.
        target: the total, as the config has it.

    Returns:
        Its path below the project's folder.
    """
    return str(RESULTS / experiment / "final" / target_name(target) / "weights.safetensors")


def target_name(target: float) -> str:
    """A total as it stands in paths, exactly: 1.0 is 1, 0.5 is 0.5.

    It must be exact, for jobs find their total by this name: `float(target_name(x)) == x`.
    """
    short = f"{target:g}"
    return short if float(short) == target else repr(target)


def fingerprint(source: str) -> str:
    """Changes when a source's files do. One time only, the newest: a size, or a digest over
    guessable times, would tell how many records or folders there are. Adding or removing a file
    makes its folder the newest. A file of a folder that is overwritten in place goes unnoticed.

    Returns:
        16 hexadecimal digits; empty where the source is no private file, or is not there.
    """
    kind = kind_of(source)
    if kind is None or not kind.is_private_file:
        return ""
    times = [time for path in paths_of(source) for time in _modification_times(path)]
    return digest(max(times))[:16] if times else ""


def _modification_times(path: Path) -> Iterator[int]:
    """Modification times of a file, or of a folder and all folders in it, in nanoseconds. Files
    inside are left out: a folder's own time moves when one comes or goes."""
    if path.is_dir():
        yield from (os.stat(folder).st_mtime_ns for folder, _, _ in os.walk(path))
    elif path.is_file():
        yield path.stat().st_mtime_ns


def digest(*parts: object) -> str:
    """sha256 of plain values, floats at full precision (json writes the shortest exact form).

    Args:
        *parts: plain values, nested as JSON allows; the order of keys plays no part.

    Returns:
        64 hexadecimal digits.

    Raises:
        ValueError: a number is infinite or NaN.
    """
    return hashlib.sha256(json.dumps(parts, sort_keys=True, allow_nan=False).encode()).hexdigest()


@cache
def plain_values(config: Config) -> Keys:
    """The config as plain values, computed once for each config: what a job is known by."""
    return values_of(config)
