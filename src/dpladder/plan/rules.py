"""Every rule in one table: what it reads, which configs have it, how its jobs are spread.

CONTRIBUTING.md says what else a rule needs. tests/workflow/test_rules.py holds the table against
the parsed rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dpladder.config import Config
from dpladder.config.plugins import rules_of_packages
from dpladder.config.records import ALSO
from dpladder.config.search_sections import Ladder
from dpladder.plan import package, reads
from dpladder.plan.follows import (
    further_tests,
    is_public,
    parts,
    records_of,
    target_name,
    trial_parts,
)
from dpladder.plan.inputs import BELOW, COUNTED, DATA, FEATURES, SEEN, START, SUMS, outputs
from dpladder.plan.node import RuleSpec, Wildcards
from dpladder.privacy.statement.documents import FINALS, PlanDocument

# --- whose private files a job opens ---


# Each of these takes a config and a job's wildcards. It returns the parts whose features or
# manifests the job opens, the main one first.
def _guided_train_part(config: Config, wildcards: Wildcards) -> tuple[str, ...]:
    """The training part; and the public sample, where it guides steps."""
    return ("train", *_guides(config))


def _test(config: Config, wildcards: Wildcards) -> tuple[str, ...]:
    return ("test",)


def _further_test(config: Config, wildcards: Wildcards) -> tuple[str, ...]:
    return (ALSO + wildcards["test"],)


def _named_parts(config: Config, wildcards: Wildcards) -> tuple[str, ...]:
    """The part that the job's own wildcard names."""
    return (wildcards["part"],)


def _trial_and_guide_parts(config: Config, wildcards: Wildcards) -> tuple[str, ...]:
    return (*trial_parts(config), *_guides(config))


def _guides(config: Config) -> tuple[str, ...]:
    """The public sample, where its gradients guide private steps."""
    return ("sample",) if config.learner.uses_public_gradient else ()


def _sample(config: Config, wildcards: Wildcards) -> tuple[str, ...]:
    return ("sample",) if config.features.centre == "public" else ()


def _start(config: Config, wildcards: Wildcards) -> tuple[str, ...]:
    return ("sample",)


def _student_parts(config: Config, wildcards: Wildcards) -> tuple[str, ...]:
    """Public records without labels; a test only where counts on it are free."""
    return ("unlabelled", *(["test"] if config.exact_test else []))


def _all_tests(config: Config, wildcards: Wildcards) -> tuple[str, ...]:
    """For research, which counts exactly on every test that there is."""
    also = (test.part for test in further_tests(config).values())
    return ("train", "test", *_guides(config), *also)


# --- which configs have a rule ---


def _counts(config: Config) -> bool:
    """What is declared public is counted without noise."""
    return config.mode == "release"


def _finds_mean(config: Config) -> bool:
    """A mean that is bought is the rule estimate_mean's instead."""
    return config.features.centre in ("public", "network")


def _finds_start(config: Config) -> bool:
    return config.learner.starts_from_public_head


def _teaches(config: Config) -> bool:
    return config.dataset.public_unlabelled is not None


def _climbs(config: Config) -> bool:
    return bool(config.sweep.ladder)


def _trains_last(config: Config) -> bool:
    return isinstance(config.hpo, Ladder)


def _tests_further(config: Config) -> bool:
    return bool(config.evaluate.also)


def _trains_open(config: Config) -> bool:
    """Without noise nothing is protected, so the data must be declared public."""
    return config.final.without_noise and config.mode == "research"


def _searches(config: Config) -> bool:
    """A private search trains, chooses and puts the model out in one job."""
    return not isinstance(config.hpo, Ladder)


# --- the table ---


MODEL = {"weights": outputs("weights", *FINALS)}
# What a head that is bought starts from. The public head reads the whole learner, and follows from
# those of its keys that the bought head reads too: so learners that differ in the rest share it.
PUBLIC_START = {"start": outputs("head", "find_start", tells_apart=False)}
RULES: dict[str, RuleSpec] = {
    "prepare_dataset": RuleSpec(reads.PrepareDataset),
    "prepare_public": RuleSpec(reads.PreparePublic, parts=_named_parts, per=("part",)),
    "extract_features": RuleSpec(
        reads.ExtractFeatures, DATA, _named_parts, per=("part", "shards", "shard")
    ),
    "merge_features": RuleSpec(
        reads.MergeFeatures,
        {"shards": outputs("privacy", "extract_features", several=True)},
        _named_parts,
        per=("part",),
    ),
    "count_units": RuleSpec(
        reads.CountUnits, FEATURES, when=_counts, buys="dataset.census", label="class counts"
    ),
    "estimate_mean": RuleSpec(
        reads.EstimateMean, {**FEATURES, **COUNTED}, buys="features.mean", label="mean"
    ),
    "find_mean": RuleSpec(reads.FindMean, FEATURES, _sample, _finds_mean),
    "find_start": RuleSpec(reads.FindStart, SEEN, _start, _finds_start, free=True),
    "estimate_sums": RuleSpec(reads.EstimateSums, SEEN, buys="learner.shared", label="sums"),
    "estimate_head": RuleSpec(
        reads.EstimateHead,
        {**SEEN, **PUBLIC_START},
        _guided_train_part,
        buys="learner.head",
        label="head",
    ),
    "run_trial": RuleSpec(
        reads.RunTrial,
        {**SEEN, **SUMS, **START, **BELOW},
        _trial_and_guide_parts,
        _climbs,
        per=("rung", "trial"),
    ),
    "select_rung": RuleSpec(
        reads.SelectRung,
        {"scores": outputs("score", "run_trial", several=True)},
        when=_climbs,
        per=("rung",),
        steers=True,
    ),
    "fit_radius": RuleSpec(
        reads.FitRadius,
        {"rungs": outputs("best", "select_rung", several=True)},
        when=_climbs,
        per=("target",),
        steers=True,
    ),
    "train_final": RuleSpec(
        reads.TrainFinal,
        {"fit": outputs("fit", "fit_radius"), **SEEN, **SUMS, **START},
        _guided_train_part,
        _trains_last,
        per=("target",),
    ),
    "private_search": RuleSpec(
        reads.SearchPrivately,
        {**SEEN, **START},
        _guided_train_part,
        _searches,
        per=("target",),
    ),
    "train_student": RuleSpec(
        reads.TrainStudent,
        {**MODEL, **SEEN},
        _student_parts,
        _teaches,
        per=("target",),
        free=True,
    ),
    # Two rules measure a final model, each with keys of its own, and share one module.
    "evaluate": RuleSpec(reads.EvaluateFinal, {**MODEL, **SEEN}, _test, per=("target",)),
    "evaluate_also": RuleSpec(
        reads.EvaluateAlso,
        {**MODEL, **SEEN},
        _further_test,
        _tests_further,
        per=("target", "test"),
        module="evaluate",
    ),
    "train_open": RuleSpec(reads.TrainOpen, {**SEEN, **START}, _all_tests, _trains_open),
    # What follows is not behind the statement.
    "plan_spend": RuleSpec(PlanDocument, per=None, stated=False),
    "compose_privacy": RuleSpec(PlanDocument, per=None, stated=False),
    "summarise": RuleSpec(
        reads.Summarise,
        {
            "rungs": outputs("best", "select_rung", several=True),
            "fits": outputs("fit", "fit_radius", several=True),
            "finals": outputs("weights", *FINALS, several=True),
            "metrics": outputs("metrics", "evaluate", several=True),
            "students": outputs("metrics", "train_student", several=True),
            "also": outputs("metrics", "evaluate_also", several=True),
            "open": outputs("metrics", "train_open"),
        },
        stated=False,
    ),
    "write_report": RuleSpec(reads.WriteReport, per=None, stated=False),
}
for module in rules_of_packages():
    RULES |= module.RULES
RUNG_RULE = "run_rung"  # begins the names of rules that do all trials of a rung in one job


def module_of(rule: str) -> str:
    """The module of `jobs` that does a rule's work.

    Args:
        rule: of the table.
    """
    return RULES[rule].module or rule


def rung_rule(experiment: str, rung: int) -> str:
    """The name of a rung's own rule. Each has one, because its trials are its outputs, and the rung
    says how many there are.

    Args:
        experiment: whose rung it is.
        rung: its number, from 0.
    """
    return f"{RUNG_RULE}_{experiment}_{rung}"


def rung_of(rule: str) -> dict[str, str] | None:
    """The rung that a rule is for, if it is a rung's own.

    Args:
        rule: its name, as Snakemake has it inside this workflow.

    Returns:
        The experiment and the rung as wildcards; None for every other rule.
    """
    if not rule.startswith(f"{RUNG_RULE}_"):
        return None
    experiment, _, rung = rule.removeprefix(f"{RUNG_RULE}_").rpartition("_")
    return {"experiment": experiment, "rung": rung}


def has_rule(config: Config, rule: str) -> bool:
    """Whether a config has a rule at all."""
    row = RULES[rule]
    return row.when(config) and (not row.buys or _configured_input(config, row) is not None)


def _configured_input(config: Config, row: RuleSpec) -> Any:
    """The value of the key that asks for a rule's release; None where the config does not ask for
    it."""
    section, _, name = row.buys.partition(".")
    if section == "learner":
        return config.learner.purchases.get(name)
    return getattr(getattr(config, section), name)


def purchases(config: Config) -> Iterator[tuple[str, Any]]:
    """The rules whose one release all trainings of an experiment share, and what the config buys of
    each.

    Each has an epsilon of its own, which comes before anything that a total leaves.
    """
    for rule, row in RULES.items():
        if row.buys and has_rule(config, rule):
            yield rule, _configured_input(config, row)


def jobs(config: Config, rule: str, **fixed: str) -> list[dict[str, str]]:
    """The wildcards of an experiment's jobs of a rule.

    Args:
        config: the experiment's.
        rule: of the table.
        **fixed: values of wildcards; jobs are spread over the others.

    Returns:
        One dictionary for each job, in the order of `per`; none where the config has not the rule.
    """
    wildcards: list[dict[str, str]] = [{}] if has_rule(config, rule) else []
    for wildcard in RULES[rule].per or ():
        wildcards = [
            {**job, wildcard: value}
            for job in wildcards
            for value in SPREAD[wildcard](config, rule, job)
            if fixed.get(wildcard, value) == value
        ]
    return wildcards


def _parts_of(config: Config, rule: str, job: Wildcards) -> Iterable[str]:
    """Corrupted records, and those of a group, are another part's: a public source is prepared
    once."""
    if rule != "prepare_public":
        return parts(config)
    return dict.fromkeys(
        records_of(config, part) for part in parts(config) if is_public(config, part)
    )


def _shards(config: Config, rule: str, job: Wildcards) -> tuple[str]:
    """How many jobs extract a part. It follows from the declared size alone: the real one is
    private."""
    shards = config.features.shards
    return (
        str(math.ceil(config.dataset.nominal_size / SHARD_UNITS) if shards == "auto" else shards),
    )


SHARD_UNITS = 20_000  # of one extraction job, where features.shards is auto
SPREAD: Mapping[str, Callable[[Config, str, Wildcards], Iterable[str]]] = {
    "part": _parts_of,
    "shards": _shards,
    "shard": lambda config, rule, job: map(str, range(int(job["shards"]))),
    "rung": lambda config, rule, job: map(str, range(len(config.sweep.ladder))),
    "trial": lambda config, rule, job: map(
        str, range(config.sweep.ladder[int(job["rung"])].trials)
    ),
    "target": lambda config, rule, job: map(target_name, config.totals),
    "test": lambda config, rule, job: further_tests(config),
}
"""The values of each wildcard, given those that stand before it in `per`."""


def code_of(rule: str) -> str:
    """What stands for the code of a job beside its config: of figures and documents the package's
    digest (plan/package.py). Of mechanisms nothing: their releases are kept whatever code made
    them.
    """
    return "" if RULES[rule].is_mechanism else package.digest()
