# Everything the rules share: the parsed project, and the functions that turn wildcards into inputs, params, resources.
# Experiments whose keys are the same share one job, so inputs name the experiment that owns it.

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from dpladder.config.learner_sections import starts_known
from dpladder.plan import dag, stages
from dpladder.plan.outer import own_name
from dpladder.plan.startup import conclude, logs, open_project, reserve, tell

PARSED = open_project(workflow, config)
PROJECT = PARSED.project
WRITTEN = {}  # what the logs held when the run began
CODE = {rule: stages.rule_code(rule) for rule in stages.STAGES if not stages.is_mechanism(rule)}
SHARD_UNITS = 20_000
CELLS = dag.cells(PROJECT)
MODELLED = {name: config for name, config in PROJECT.experiments.items() if stages.has_models(config)}


wildcard_constraints:
    experiment="[a-z0-9][a-z0-9_-]*",
    part="train|validation|test|sample|also-[a-z0-9][a-z0-9_-]*",
    test="[a-z0-9][a-z0-9_-]*",
    shard=r"\d+",
    shards=r"\d+",
    rung=r"\d+",
    trial=r"\d+",
    target=r"[0-9.e+-]+",


# Seconds of work on released files: not worth a place in a cluster's queue. (`localrules:` takes literal names alone.)
workflow.localrules(
    *(workflow.modifier.modify_rulename(name) for name, stage in stages.STAGES.items() if not stage.private)
)


def config_of(wildcards):
    return PROJECT.experiments[wildcards.experiment]


def cfg_of(rule):
    """The params of a rule: the keys it reads, and the digest that the ledger knows its job by."""

    def cfg(wildcards):
        return PARSED.params(rule, dict(wildcards.items()))

    return cfg


def code_of(rule):
    """The versions of the mechanisms behind a job."""

    def code(wildcards):
        return PARSED.code(rule, dict(wildcards.items()))

    return code


def path_of(rule, path, experiment, **values):
    """`path` under the experiment that owns `rule` for these wildcards."""
    owner = dag.owner(PROJECT, experiment, rule, values)
    return path.format(**values | {"experiment": owner})


def output_of(rule, path):
    """The same as an input function."""

    def owned(wildcards):
        return path_of(rule, path, **dict(wildcards.items()))

    return owned


# --- paths ---

DATA = "results/{experiment}/data/privacy.json"
PUBLIC_DATA = "results/{experiment}/data/{part}/privacy.json"
FEATURES = "results/{experiment}/features/{part}/privacy.json"
MEAN = "results/{experiment}/mean/mean.safetensors"
MEAN_RECORD = "results/{experiment}/mean/privacy.json"
CENTRE = "results/{experiment}/centre/mean.safetensors"
CENTRE_RECORD = "results/{experiment}/centre/privacy.json"
START = "results/{experiment}/start/head.safetensors"
START_RECORD = "results/{experiment}/start/privacy.json"
COVARIANCE = "results/{experiment}/covariance/covariance.safetensors"
COVARIANCE_RECORD = "results/{experiment}/covariance/privacy.json"
STATISTICS = "results/{experiment}/statistics/statistics.h5"
STATISTICS_RECORD = "results/{experiment}/statistics/privacy.json"
TRIAL_WEIGHTS = "results/{experiment}/rungs/{rung}/trials/{trial}/weights.safetensors"
SCORE = "results/{experiment}/rungs/{rung}/trials/{trial}/score.json"
TRIAL_RECORD = "results/{experiment}/rungs/{rung}/trials/{trial}/privacy.json"
BEST = "results/{experiment}/rungs/{rung}/best.json"
RUNG_RECORD = "results/{experiment}/rungs/{rung}/privacy.json"
FIT = "results/{experiment}/final/{target}/fit.json"
FIT_RECORD = "results/{experiment}/final/{target}/fit.privacy.json"
WEIGHTS = "results/{experiment}/final/{target}/weights.safetensors"
FINAL_RECORD = "results/{experiment}/final/{target}/privacy.json"
METRICS = "results/{experiment}/final/{target}/metrics.json"
METRICS_RECORD = "results/{experiment}/final/{target}/metrics.privacy.json"
MEASURED = "results/{experiment}/tests/{target}/metrics.json"
MEASURED_RECORD = "results/{experiment}/tests/{target}/privacy.json"
ALSO = "results/{experiment}/final/{target}/also/{test}/metrics.json"
OPEN = "results/{experiment}/open/metrics.json"
OPEN_RECORD = "results/{experiment}/open/privacy.json"
ALSO_RECORD = "results/{experiment}/final/{target}/also/{test}/privacy.json"

# --- data and features ---


def data_of(wildcards):
    """The manifest behind a part: the private dataset's, or that of a source declared public for it."""
    return data_behind(wildcards.experiment, wildcards.part)


def data_behind(experiment, part):
    part = stages.records_of(PROJECT.experiments[experiment], part)
    if stages.is_public(PROJECT.experiments[experiment], part):
        return path_of("prepare_public", PUBLIC_DATA, experiment, part=part)
    return path_of("prepare_dataset", DATA, experiment)


def shards_of(wildcards):
    return shards_behind(wildcards.experiment, wildcards.part)


def shards_behind(experiment, part):
    config = PROJECT.experiments[experiment]
    count = config.features.shards
    if count == "auto":
        count = -(-config.dataset.nominal_size // SHARD_UNITS)
    folder = f"results/{experiment}/features/{part}/shards"
    return [f"{folder}/{shard}-of-{count}/privacy.json" for shard in range(count)]


def features_of(*parts):
    """An input function: the merged features of these parts."""

    def features(wildcards):
        return [path_of("merge_features", FEATURES, wildcards.experiment, part=part) for part in parts]

    return features


def trial_features(wildcards):
    """What a trial trains on, and what its score is counted on."""
    return features_of(*stages.trial_parts(config_of(wildcards)))(wildcards)


def also_features(wildcards):
    """Those of a further test."""
    return features_of(stages.further(config_of(wildcards))[wildcards.test].part)(wildcards)


def mean_of(wildcards):
    return mean_behind(wildcards.experiment)


def modelled(experiment):
    """The experiment whose models are measured: another one, or itself."""
    return PROJECT.experiments[experiment].evaluate.of or experiment


def mean_behind(experiment):
    """The mean that centres the features: bought, found for nothing, or none."""
    experiment = modelled(experiment)
    config = PROJECT.experiments[experiment]
    if config.features.centre == "noised":
        return path_of("estimate_mean", MEAN, experiment)
    if stages.has(config, "find_mean", {}):
        return path_of("find_mean", CENTRE, experiment)
    return []


def sample_of(wildcards):
    """The features of the public sample, where its mean is taken."""
    return features_of(*stages.stage_of("find_mean").parts(config_of(wildcards), {}))(wildcards)


def start_of(wildcards):
    """The public head that trainings start from, where they do."""
    if not stages.has(config_of(wildcards), "find_start", {}):
        return []
    return path_of("find_start", START, wildcards.experiment)


def covariance_of(wildcards):
    if stages.covariance(config_of(wildcards)) is None:
        return []
    return path_of("estimate_covariance", COVARIANCE, wildcards.experiment)


def statistics_of(wildcards):
    if stages.statistics(config_of(wildcards)) is None:
        return []
    return path_of("estimate_statistics", STATISTICS, wildcards.experiment)


# --- the ladder ---


def rungs_below(wildcards):
    """Earlier rungs' releases, where a rung's draws start from them. No checkpoint is needed for that."""
    rungs = range(int(wildcards.rung)) if stages.looks_back(config_of(wildcards)) else []
    return [path_of("select_rung", BEST, wildcards.experiment, rung=str(rung)) for rung in rungs]


def scores_of(wildcards):
    experiment, rung = wildcards.experiment, wildcards.rung
    trials = range(config_of(wildcards).sweep.ladder[int(rung)].trials)
    return [path_of("run_trial", SCORE, experiment, rung=rung, trial=str(trial)) for trial in trials]


def rungs_of(wildcards):
    rungs = range(len(config_of(wildcards).sweep.ladder))
    return [path_of("select_rung", BEST, wildcards.experiment, rung=str(rung)) for rung in rungs]


def fit_of(wildcards):
    """Nothing where there is no ladder."""
    if not config_of(wildcards).sweep.ladder:
        return []
    return path_of("fit_radius", FIT, **dict(wildcards.items()))


def fits_of(wildcards):
    return per_target("fit_radius", FIT)(wildcards) if config_of(wildcards).sweep.ladder else []


def per_target(rule, path):
    """An input function: one path for each target of an experiment."""

    def finals(wildcards):
        names = map(stages.target_name, stages.targets(config_of(wildcards)))
        return [path_of(rule, path, wildcards.experiment, target=name) for name in names]

    return finals


def further_of(wildcards):
    """What all further tests found, total by total."""
    config = config_of(wildcards)
    return [
        path_of("evaluate_also", ALSO, wildcards.experiment, target=target, test=test)
        for target in map(stages.target_name, stages.targets(config))
        for test in stages.further(config)
    ]


def measured_of(wildcards):
    """What every other lineage found, total by total."""
    names = dag.measured_by(PROJECT, wildcards.experiment)
    return [
        path_of("evaluate_of", MEASURED, name, target=target)
        for target in map(stages.target_name, stages.targets(config_of(wildcards)))
        for name in names
    ]


def open_tests(wildcards):
    """What a training without noise reads."""
    return features_of(*stages.stage_of("train_open").parts(config_of(wildcards), {}))(wildcards)


def open_of(wildcards):
    """Nothing, but for research that asks for a training without noise."""
    if not stages.has(config_of(wildcards), "train_open", {}):
        return []
    return path_of("train_open", OPEN, wildcards.experiment)


def final_of(path):
    """An input function: `path` of the rule that puts a final model out."""

    def final(wildcards):
        name = modelled(wildcards.experiment)
        return path_of(stages.final_rule(MODELLED[name]), path, name, target=wildcards.target)

    return final


def finals_of(path):
    """The same for each target of an experiment."""

    def finals(wildcards):
        return per_target(stages.final_rule(config_of(wildcards)), path)(wildcards)

    return finals


def those_with(rule):
    """The experiments that have a rule, as a wildcard constraint."""
    names = [name for name, config in PROJECT.experiments.items() if stages.has(config, rule, {})]
    return "|".join(names) or "(?!)"


@dataclass(frozen=True)
class Rung:
    """All trials of a rung that are an experiment's own, as one job; those of other versions are a group of their own."""

    experiment: str
    number: int
    trials: tuple
    group: int = 0

    @property
    def rule(self):
        return stages.rung_rule(self.experiment, self.number, self.group)

    @property
    def wildcards(self):
        return {"experiment": self.experiment, "rung": str(self.number)}

    @property
    def input(self):
        own = SimpleNamespace(**self.wildcards)
        inputs = {
            "features": trial_features,
            "mean": mean_of,
            "covariance": covariance_of,
            "statistics": statistics_of,
            "start": start_of,
            "below": rungs_below,
        }
        return {name: find(own) for name, find in inputs.items()}

    @property
    def output(self):
        files = {"weights": TRIAL_WEIGHTS, "score": SCORE, "privacy": TRIAL_RECORD}
        return {
            f"{name}_{trial}": path.format(**self.wildcards, trial=trial)
            for trial in self.trials
            for name, path in files.items()
        }

    @property
    def log(self):
        return "logs/{experiment}/rungs/{rung}/trials{group}.log".format(
            **self.wildcards, group=self.group or ""
        )

    @property
    def resources(self):
        return PROJECT.experiments[self.experiment].resources

    def mem_mb(self, wildcards, attempt):
        return self.resources.mem_mb * attempt

    def runtime(self, wildcards, attempt):
        return self.resources.runtime * attempt

    @property
    def cfg(self):
        """That of any of its trials: their keys are the same."""
        return PARSED.params("run_trial", self.jobs[0])

    @property
    def code(self):
        return PARSED.code("run_trial", self.jobs[0])

    @property
    def jobs(self):
        """Its trials, as the ledger knows them."""
        return [{**self.wildcards, "trial": trial} for trial in self.trials]


def rungs_together():
    """The rungs that are one job each."""
    return [
        Rung(name, number, trials, group)
        for name, config in PROJECT.experiments.items()
        if config.sweep.together
        for number in range(len(config.sweep.ladder))
        for group, trials in enumerate(dag.trials_by_versions(PROJECT, name, number))
    ]


def trials_apart():
    """The experiments whose trials are jobs of their own, as a wildcard constraint."""
    names = [name for name, config in PROJECT.experiments.items() if not config.sweep.together]
    return "|".join(names) or "(?!)"


def due_jobs(jobs):
    """What is due, as the ledger knows it: a rung's job is all of its trials. An outer workflow's own jobs are none of it."""
    together = {rung.rule: rung for rung in rungs_together()}
    for job in jobs:
        name = own_name(job.rule.name)
        if name in together:
            yield from (("run_trial", trial) for trial in together[name].jobs)
        elif name in stages.STAGES:
            yield name, dict(job.wildcards.items())


# --- resources ---


def threads_of(wildcards):
    return config_of(wildcards).resources.threads


def mem_mb_of(wildcards, attempt):
    return config_of(wildcards).resources.mem_mb * attempt


def runtime_of(wildcards, attempt):
    return config_of(wildcards).resources.runtime * attempt


def gpu_of(wildcards):
    return config_of(wildcards).resources.gpu


# --- the whole DAG ---


def privacy_records(wildcards):
    """The record of every job upstream of the statement, each once."""
    return list(dict.fromkeys(record for name in PROJECT.experiments for record in records_of(name)))


def records_of(name):
    config = PROJECT.experiments[name]
    targets = [stages.target_name(target) for target in stages.targets(config)]
    for part in stages.parts(config):
        owner = dag.owner(PROJECT, name, "merge_features", {"part": part})
        yield from [
            data_behind(owner, part),
            *shards_behind(owner, part),
            FEATURES.format(experiment=owner, part=part),
        ]
    if not stages.has_models(config):
        yield from (path_of("evaluate_of", MEASURED_RECORD, name, target=target) for target in targets)
        return
    if stages.has(config, "estimate_mean", {}):
        yield path_of("estimate_mean", MEAN_RECORD, name)
    if stages.has(config, "find_mean", {}):
        yield path_of("find_mean", CENTRE_RECORD, name)
    if stages.has(config, "find_start", {}):
        yield path_of("find_start", START_RECORD, name)
    if stages.covariance(config) is not None:
        yield path_of("estimate_covariance", COVARIANCE_RECORD, name)
    if stages.statistics(config) is not None:
        yield path_of("estimate_statistics", STATISTICS_RECORD, name)
    if stages.has(config, "train_open", {}):
        yield path_of("train_open", OPEN_RECORD, name)
    for rung, trials in ((str(rung), entry.trials) for rung, entry in enumerate(config.sweep.ladder)):
        for trial in map(str, range(trials)):
            yield path_of("run_trial", TRIAL_RECORD, name, rung=rung, trial=trial)
        yield path_of("select_rung", RUNG_RECORD, name, rung=rung)
    for target in targets:
        if config.sweep.ladder:
            yield path_of("fit_radius", FIT_RECORD, name, target=target)
        yield path_of(stages.final_rule(config), FINAL_RECORD, name, target=target)
        yield path_of("evaluate", METRICS_RECORD, name, target=target)
        for test in stages.further(config):
            yield path_of("evaluate_also", ALSO_RECORD, name, target=target, test=test)


def released(wildcards):
    """Every release, so that one whose file is lost is due: the ledger has its bytes, and restores them."""
    return list(dict.fromkeys(path for name in PROJECT.experiments for path in releases_of(name)))


def releases_of(name):
    config = PROJECT.experiments[name]
    targets = [stages.target_name(target) for target in stages.targets(config)]
    if not stages.has_models(config):
        yield from (path_of("evaluate_of", MEASURED, name, target=target) for target in targets)
        return
    shared = {"estimate_mean": MEAN, "estimate_covariance": COVARIANCE, "estimate_statistics": STATISTICS}
    yield from (path_of(rule, path, name) for rule, path in shared.items() if stages.has(config, rule, {}))
    for rung, entry in enumerate(config.sweep.ladder):
        for trial in map(str, range(entry.trials)):
            for path in (SCORE, TRIAL_WEIGHTS):
                yield path_of("run_trial", path, name, rung=str(rung), trial=trial)
    for target in targets:
        yield path_of(stages.final_rule(config), WEIGHTS, name, target=target)
        yield path_of("evaluate", METRICS, name, target=target)
        for test in stages.further(config):
            yield path_of("evaluate_also", ALSO, name, target=target, test=test)


def summaries(wildcards):
    return [f"results/{experiment}/summary.json" for experiment in MODELLED]


def pictures(wildcards):
    """Every figure and table of the report."""
    own = [f"results/{name}/{picture}" for name in MODELLED for picture in pictures_of(name)]
    shared = ["results/figures/budget.svg", "results/tables/spends.html"]
    shared += ["results/tables/grid.html"] if CELLS else []
    told = {
        "pareto": several_models(),
        "batches": sampled(),
        "distance": moved(),
    }
    return own + shared + [f"results/figures/{name}.svg" for name, found in told.items() if found]


def drawn(wildcards):
    """The figures among them."""
    return [path for path in pictures(wildcards) if path.endswith(".svg")]


def several_models():
    """Whether there is a frontier to draw: a point alone says nothing."""
    return sum(len(stages.targets(config)) for config in MODELLED.values()) > 1


def pictures_of(name):
    """An experiment's own; those of its ladder, and of its totals, where it has some."""
    config = PROJECT.experiments[name]
    ladder = ["figures/ladder.svg", "figures/scores.svg", "tables/trials.html"]
    return [
        "tables/finals.html",
        *(ladder if config.sweep.ladder else []),
        *(["figures/utility.svg"] if len(stages.targets(config)) > 1 or config.final.without_noise else []),
        *(["figures/shift.svg"] if shifts(name) else []),
        *(["figures/heatmap.svg", "figures/gap.svg"] if descends(name) else []),
    ]


def shifts(name):
    """Whether an experiment has further tests; or had some under an earlier config, whose picture and table still tell of them."""
    also = PROJECT.experiments[name].evaluate.also or dag.measured_by(PROJECT, name)
    return also or Path(f"results/{name}/figures/shift.svg").exists()


def repeats(wildcards):
    """The summaries of an experiment and of its repeats."""
    names = [wildcards.experiment, *PROJECT.repeats.get(wildcards.experiment, ())]
    return [f"results/{name}/summary.json" for name in names]


def descends(name):
    """Whether there are heatmaps of an experiment, learning rates against steps, and figures of gaps in r. They need the repeats
    of research mode to say anything, and are drawn once for all of these."""
    config = PROJECT.experiments[name]
    researched = config.mode == "research" and name in PROJECT.repeats
    return researched and config.learner.searches == "rate" and config.sweep.ladder


def sampled():
    """The summaries that a figure of batch sizes is about: those of research, where experiments differ in it."""
    rates = {
        name: getattr(config.learner, "sampling_rate", 1.0)
        for name, config in MODELLED.items()
        if config.mode == "research"
    }
    return [f"results/{name}/summary.json" for name in rates] if len(set(rates.values())) > 1 else []


def moved():
    """The summaries that a figure of distances is about: of research with several final models that start where everybody
    knows."""
    names = [
        name
        for name, config in MODELLED.items()
        if config.mode == "research" and starts_known(config.learner)
    ]
    models = sum(len(stages.targets(PROJECT.experiments[name])) for name in names)
    return [f"results/{name}/summary.json" for name in names] if models > 1 else []


def plan_of(wildcards):
    return PARSED.declared
