"""Rules for further tests (evaluate.also). Each sees the config and one of these tests."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from dpladder.config.dataset_sections import Group
from dpladder.config.evaluate_sections import Also
from dpladder.config.model import Config
from dpladder.config.rules import Messages, Table, rule_if
from dpladder.config.source_rules import group_rules, overlapping_source, wrong_with_source
from dpladder.config.sources import kind_of, labels_of, names_of, overlap
from dpladder.wording import did_you_mean, value_as_text


def _name(c: Config, also: Also) -> Messages:
    """Names of tests stand in paths and tables, so each is given once; a severity makes a name of
    its own."""
    tests = c.evaluate.also
    # of two tests with one name the second is wrong, so that it is said once
    before = {one.name for one in takewhile(lambda one: one is not also, tests)}
    severe = {f"{one.name}-{how}" for one in tests if one.corruption for how in one.severities}
    if also.name in {"test"} | before | severe:
        yield "another test is called so: choose another name"


# --- of a source of its own ---


def _source(c: Config, also: Also) -> Messages:
    """A further source must be there, hold what the network takes, and no record of the private
    one."""
    source, kind = also.source or "", kind_of(also.source or "")
    if overlap(source, c.dataset.source):
        yield (
            f"{overlapping_source(source, c.dataset.source)}; to hold some of it out, use "
            f"dataset.split"
        )
    yield from wrong_with_source(source)
    if kind is not None and c.features.takes not in kind.holds:
        yield f"features.model: {c.features.model} takes {c.features.takes}"


def _classes(c: Config, also: Also) -> Messages:
    """Labels are matched by name; where one side has none, the config says what counts as what."""
    source, kind = also.source or "", kind_of(also.source or "")
    model_classes = names_of(c.dataset.source, c.dataset.classes) or ()
    names = [name for _, name in also.classes]
    known = model_classes.__contains__ if model_classes else str.isdecimal
    # classes without names are meant by their numbers
    wrong = next((name for name in names if not known(name)), None)
    if kind is None:
        return
    if wrong is not None and model_classes:
        near = did_you_mean(wrong, model_classes)
        yield (
            f"given {value_as_text(wrong)}; {near}allowed: {', '.join(model_classes)}, or null for "
            f"none"
        )
    elif wrong is not None:
        yield (
            f"given {value_as_text(wrong)}; dataset.classes has no names, so a class is meant by "
            "its number, in quotes"
        )
    elif not model_classes and not names:
        yield (
            "required where dataset.classes has no names: labels are matched by name, for the same "
            "numbers may mean other classes. List the names of both, or give the class that each "
            "label counts as, by its number in quotes"
        )
    elif not kind.is_private_file and not names and labels_of(source) is None:
        yield (
            f"required: the labels of {value_as_text(source)} are numbers, and what they are "
            "called is not known here. List their names, in the words of dataset.classes"
        )


# --- of another test's records: some groups of them, or their images corrupted, or both ---


def _test_groups(c: Config) -> Mapping[str, Group | None]:
    """The tests that another one may be of, and how their records are grouped; None where they are
    not."""
    groups = {one.name: one.group for one in c.evaluate.also if one.source is not None}
    return {"test": c.dataset.group} | groups


def _check_of(c: Config, also: Also) -> Messages:
    """A test may take the records of the test part, or of a test on a source of its own, and no
    chain of such."""
    if also.of not in _test_groups(c):
        yield f"{did_you_mean(also.of or '', _test_groups(c))}allowed: {', '.join(_test_groups(c))}"


def _groups(c: Config, also: Also) -> Messages:
    """Groups that a test takes are among those that its records are told by."""
    whose = _test_groups(c).get(also.of or "")
    known = whose.names if whose else ()
    unknown = next((name for name in also.groups if name not in known), None)
    if unknown is not None:
        key = "dataset.group" if also.of == "test" else f"group of {also.of}"
        allowed = ", ".join(known) or f"none, for {key} names no groups: declare them there"
        yield f"given {value_as_text(unknown)}; {did_you_mean(unknown, known)}allowed: {allowed}"


def _corruption(c: Config, also: Also) -> Messages:
    """A test of another test's records must differ from it, by a corruption or by its groups."""
    if not also.corruption and not also.groups:
        yield "required with of: blur, or noise; or groups, to count some of its records"
    elif also.corruption and c.features.takes != "images":
        yield (
            f"features.model: {c.features.model} takes {c.features.takes}, and images alone can "
            "be corrupted: leave it out"
        )


def _epsilon(c: Config, also: Also) -> Messages:
    """Counts of private records have a price that the config must name; counts of public ones have
    none (contract: charged-tests)."""
    private = also.of == "test" and not c.exact_test
    if private and also.epsilon is None:
        yield (
            "required: the test part is private, and each count on it is paid for: say what one "
            "may cost"
        )
    elif not private and also.epsilon is not None:
        yield "counts on what is declared public are exact and free: leave it out"


def _rules_for_wrong_kind(keys: tuple[str, ...], says: str) -> Table:
    """Rules that keep keys of the one kind of test out of the other."""
    return {key: rule_if(lambda c, also, key=key: getattr(also, key), says) for key in keys}


# an empty key is the test itself, for no single key of it is wrong
NEITHER: Table = {
    "": lambda c, also: iter(
        ["it is of a source of its own, or of another test's images: give source or of"]
    )
}
OF_A_SOURCE: Table = {
    "source": _source,
    "declared_public": rule_if(
        lambda c, also: not also.declared_public,
        "private records of other people are a lineage of their own, with a limit and a "
        "statement: count on them by dpladder.Ledger (docs/evaluation.md); or set it to true if "
        "nobody in that source needs protection; or make them a group of dataset.source that is "
        "not trained on (dataset.group)",
    ),
    "classes": _classes,
    **group_rules("group", lambda c, also: (also.source, also.group)),
    **_rules_for_wrong_kind(
        ("corruption", "groups", "epsilon"),
        "it goes with of, on a test that is named there: leave it out",
    ),
}
OF_A_TEST: Table = {
    "of": _check_of,
    "groups": _groups,
    "corruption": _corruption,
    "severities": rule_if(
        lambda c, also: len(set(also.severities)) != len(also.severities),
        "name each severity once",
    ),
    "epsilon": _epsilon,
    **_rules_for_wrong_kind(
        ("classes", "declared_public", "group"),
        "it is for a source; its records are those of another test: leave it out",
    ),
}


def rules_of(also: Also) -> Table:
    """The rules for a further test of one kind or the other.

    Args:
        also: the test. With neither a source nor `of`, or with both, only that is said of it.
    """
    if (also.source is None) == (also.of is None):
        return {"name": _name, **NEITHER}
    return {"name": _name, **(OF_A_TEST if also.source is None else OF_A_SOURCE)}
