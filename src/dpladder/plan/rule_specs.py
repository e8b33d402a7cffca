"""Every rule in one table: what it reads, what it stands on, which configs have it, whose code it
runs. And what follows from a config for its jobs.

CONTRIBUTING.md says what else a rule needs. tests/workflow/test_rules.py holds the table against
the parsed rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from dpladder.config import Config, Project
from dpladder.config.evaluate_sections import Also
from dpladder.config.learner_sections import Head
from dpladder.config.load import BASE
from dpladder.config.plugins import rules_of_packages
from dpladder.config.search_sections import Ladder
from dpladder.config.shift import ALSO, Corruption, FurtherTest, Matching
from dpladder.config.sources import labels_of, names_of
from dpladder.plan import mechanisms, package, rule_params
from dpladder.plan.rule_params import RuleSpec, Wildcards
from dpladder.privacy.statement.documents import FINALS, PlanDocument

RESULTS = Path("results")

# --- what follows from a config ---


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


def cells(project: Project, experiment: str = BASE) -> dict[str, dict[str, str]]:
    """Experiments that one table compares, each with its place on every axis. They are the cells of
    the grid, or without a grid the experiments themselves, where they are repeated. Repeats are of
    their cell.

    Args:
        project: all experiments.
        experiment: unused, as in all functions of `job_identity.OF_PROJECT`.

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
    students = ("unlabelled",) if _teaches(config) else ()
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


# --- which configs have a rule, of those that have models ---


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


CACHES = ("merge_features",)
RULE_SPECS: dict[str, RuleSpec] = {
    "prepare_dataset": RuleSpec(rule_params.PrepareDataset, per=()),
    "prepare_public": RuleSpec(rule_params.PreparePublic, parts=_named_parts, per=("part",)),
    "extract_features": RuleSpec(
        rule_params.ExtractFeatures,
        ("prepare_dataset",),
        _named_parts,
        per=("part", "shards", "shard"),
    ),
    "merge_features": RuleSpec(
        rule_params.MergeFeatures, ("extract_features",), _named_parts, per=("part",)
    ),
    "count_units": RuleSpec(
        rule_params.CountUnits, CACHES, when=_counts, buys="dataset.census", per=()
    ),
    "estimate_mean": RuleSpec(rule_params.EstimateMean, CACHES, buys="features.mean", per=()),
    "find_mean": RuleSpec(rule_params.FindMean, CACHES, _sample, _finds_mean, per=()),
    "find_start": RuleSpec(rule_params.FindStart, CACHES, _start, _finds_start, per=()),
    "estimate_sums": RuleSpec(rule_params.EstimateSums, CACHES, buys="learner.shared", per=()),
    "estimate_head": RuleSpec(
        rule_params.EstimateHead, CACHES, _guided_train_part, buys="learner.head", per=()
    ),
    "run_trial": RuleSpec(
        rule_params.RunTrial, CACHES, _trial_and_guide_parts, _climbs, per=("rung", "trial")
    ),
    "select_rung": RuleSpec(rule_params.SelectRung, ("run_trial",), when=_climbs, per=("rung",)),
    "fit_radius": RuleSpec(rule_params.FitRadius, ("select_rung",), when=_climbs, per=("target",)),
    "train_final": RuleSpec(
        rule_params.TrainFinal,
        ("fit_radius", *CACHES),
        _guided_train_part,
        _trains_last,
        per=("target",),
    ),
    "private_search": RuleSpec(
        rule_params.SearchPrivately, CACHES, _guided_train_part, _searches, per=("target",)
    ),
    "train_student": RuleSpec(
        rule_params.TrainStudent, (*FINALS, *CACHES), _student_parts, _teaches, per=("target",)
    ),
    # Two rules measure a final model, each with keys of its own, and share one module.
    "evaluate": RuleSpec(rule_params.EvaluateFinal, FINALS, _test, per=("target",)),
    "evaluate_also": RuleSpec(
        rule_params.EvaluateAlso,
        FINALS,
        _further_test,
        _tests_further,
        per=("target", "test"),
        module="evaluate",
    ),
    "train_open": RuleSpec(rule_params.TrainOpen, CACHES, _all_tests, _trains_open, per=()),
    # What follows is not behind the statement, so these rules have no `per`.
    "plan_spend": RuleSpec(PlanDocument),
    "compose_privacy": RuleSpec(PlanDocument),
    "summarise": RuleSpec(rule_params.Summarise),
    "write_report": RuleSpec(rule_params.WriteReport),
}
for module in rules_of_packages():
    RULE_SPECS |= module.RULES
RUNG_RULE = "run_rung"  # begins the names of rules that do all trials of a rung in one job


def module_of(rule: str) -> str:
    """The module of `jobs` that does a rule's work.

    Args:
        rule: of the table.
    """
    return RULE_SPECS[rule].module or rule


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


def _has_rule(config: Config, rule: str) -> bool:
    spec = RULE_SPECS[rule]
    return spec.when(config) and (not spec.buys or _configured_input(config, spec) is not None)


def _configured_input(config: Config, spec: RuleSpec) -> Any:
    """The value of the key that asks for a rule's release; None where the config does not ask for
    it."""
    section, _, name = spec.buys.partition(".")
    if section == "learner":
        return config.learner.purchases.get(name)
    return getattr(getattr(config, section), name)


def purchases(config: Config) -> Iterator[tuple[str, Any]]:
    """The rules whose one release all trainings of an experiment share, and what the config buys of
    each.

    Each has an epsilon of its own, which comes before anything that a total leaves.
    """
    for rule, spec in RULE_SPECS.items():
        if spec.buys and _has_rule(config, rule):
            yield rule, _configured_input(config, spec)


def jobs(config: Config, rule: str, **fixed: str) -> list[dict[str, str]]:
    """The wildcards of an experiment's jobs of a rule.

    Args:
        fixed: Values of wildcards; jobs are spread over the others. A fixed part need not be one
            that this experiment uses: it may own features that only others need.

    Returns:
        One dictionary for each job, in the order of `per`; none where the config has not the rule.
    """
    wildcards: list[dict[str, str]] = [{}] if _has_rule(config, rule) else []
    for wildcard in RULE_SPECS[rule].per or ():
        wildcards = [
            {**job, wildcard: value}
            for job in wildcards
            for value in (
                [fixed[wildcard]] if wildcard in fixed else SPREAD[wildcard](config, rule, job)
            )
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


def has_job(config: Config, rule: str, wildcards: Wildcards) -> bool:
    """Whether a config has this job: its rule at all, and the rung, trial and target that it is
    about. Any part of the data will do: an experiment may own features that only others need.

    Args:
        config: an experiment's.
        rule: of the table.
        wildcards: the job's; one of them may be missing where it is not asked about.
    """
    rungs = config.sweep.ladder
    if not _has_rule(config, rule):
        return False
    if wildcards.get("part", "").startswith(ALSO) or "test" in wildcards:
        part = wildcards.get("part") or ALSO + wildcards["test"]
        if further_test(config, part) is None:
            return False
    if "rung" in wildcards:
        rung = int(wildcards["rung"])
        return rung < len(rungs) and int(wildcards.get("trial", 0)) < rungs[rung].trials
    return "target" not in wildcards or float(wildcards["target"]) in config.totals


def ancestry(config: Config, rule: str) -> tuple[str, ...]:
    """A rule and every rule it stands on, of those that a config has.

    Returns:
        Names in alphabetical order. Rules that a config does not have are left out, and what stands
        behind them alone.
    """
    return _ancestry(rule, frozenset(name for name in RULE_SPECS if not _has_rule(config, name)))


@cache
def _ancestry(rule: str, absent: frozenset[str]) -> tuple[str, ...]:
    after = [parent for parent in RULE_SPECS[rule].after if parent not in absent]
    return tuple(sorted({rule}.union(*(_ancestry(parent, absent) for parent in after))))


def is_mechanism(rule: str) -> bool:
    """Whether a rule's jobs are known by its name: releases, and what they stand on. Figures and
    documents are free, and known by their code.

    `select_rung` and `fit_radius` read no private file, but final trainings stand on what they
    choose.
    """
    return RULE_SPECS[rule].private or rule in ("select_rung", "fit_radius")


def _methods(rule_reads: Any, rule: str) -> tuple[str, ...]:
    """The learner and the search that a rule's job runs, if it runs one."""
    spec = RULE_SPECS[rule]
    learner = [rule_reads.learner.name] if spec.trains else []
    return (*learner, *([rule_reads.hpo.name] if spec.searches else []))


def _guide(rule_reads: Any, rule: str) -> str | None:
    """The mechanism of public gradients, where they guide a training or a head that is bought."""
    spec = RULE_SPECS[rule]
    descends = spec.trains or issubclass(spec.reads, rule_params.EstimateHead)
    learner = getattr(
        rule_reads, "learner", rule_reads
    )  # a job that buys a head reads the keys alone
    return mechanisms.GUIDE if descends and learner.uses_public_gradient else None


def mechanisms_of(rule_reads: Any, rule: str) -> tuple[str, ...]:
    """The mechanisms of a rule's job. `rule_reads`: the config, or what the job reads of it."""
    return mechanisms.mechanism_names(rule, *_methods(rule_reads, rule), _guide(rule_reads, rule))


def mechanisms_behind(config: Config, rule: str) -> tuple[str, ...]:
    """The mechanisms that a job stands on, its own included, in alphabetical order.

    Args:
        config: an experiment's.
        rule: the job's.
    """
    names = {
        name
        for one in ancestry(config, rule)
        if is_mechanism(one)
        for name in mechanisms_of(config, one)
    }
    return tuple(sorted(names))


def code_of(rule: str) -> str:
    """What stands for the code of a job beside its config: of figures and documents the package's
    digest (plan/package.py). Of mechanisms nothing: their releases are kept whatever code made
    them.
    """
    return "" if is_mechanism(rule) else package.digest()
