# Everything the rules share: the parsed project, and the functions that turn wildcards into inputs,
# params, resources. Experiments whose keys are the same share one job, so inputs name the
# experiment that owns it.

from dataclasses import dataclass

from dpladder.config.load import BASE
from dpladder.plan import job_identity, package, rule_specs
from dpladder.plan.outer import inner_rule_name
from dpladder.plan.pictures import pictures_of
from dpladder.plan.startup import conclude, logs, open_project, reserve, print_failed_jobs

PARSED = open_project(workflow, config)
PROJECT = PARSED.project
WRITTEN = {}  # what the logs held when the run began
PICTURES = [picture for picture in pictures_of(PROJECT) if picture.path]


wildcard_constraints:
    experiment="[a-z0-9][a-z0-9_-]*",
    part="train|validation|test|sample|unlabelled|also-[a-z0-9][a-z0-9_-]*",
    test="[a-z0-9][a-z0-9_-]*",
    shard=r"\d+",
    shards=r"\d+",
    rung=r"\d+",
    trial=r"\d+",
    target=r"[0-9.e+-]+",


# Seconds of work on released files: not worth a place in a cluster's queue. (`localrules:` takes
# literal names alone.)
workflow.localrules(
    *(
        workflow.modifier.modify_rulename(name)
        for name, spec in rule_specs.RULE_SPECS.items()
        if not spec.private
    )
)


def config_of(wildcards):
    return PROJECT.experiments[wildcards.get("experiment", BASE)]


# --- one join: who makes what a job reads ---


def template(rule, output):
    """Where a rule puts an output, its wildcards open."""
    return str(getattr(getattr(rules, rule).output, output))


def path(rule, output, experiment, **values):
    """An output of a job, under the experiment that owns it."""
    owner = job_identity.owner(PROJECT, experiment, rule, values)
    return template(rule, output).format(experiment=owner, **values)


def from_jobs(output, *makers):
    """An input function: this output of all jobs of the makers that agree with the wildcards of the
    one that asks. A path where they leave one job open; else a list, which is empty where the
    config has none of the makers."""

    def outputs(wildcards):
        values = dict(wildcards.items())
        name = values.pop("experiment", BASE)
        paths = [
            path(maker, output, name, **job)
            for maker in makers
            for job in rule_specs.jobs(PROJECT.experiments[name], maker, **values)
        ]
        alone = set(rule_specs.RULE_SPECS[makers[0]].per) <= values.keys()
        return paths[0] if alone and paths else paths

    return outputs


def features_of(rule):
    """An input function: the merged features of the parts that a rule reads. Before anything is
    released, units are counted, which may stop the run."""

    def features(wildcards):
        config, spec = config_of(wildcards), rule_specs.RULE_SPECS[rule]
        experiment = wildcards.get("experiment", BASE)
        paths = [
            path("merge_features", "privacy", experiment, part=part)
            for part in spec.parts(config, dict(wildcards.items()))
        ]
        waits = spec.releases and rule != "count_units"
        if waits and rule_specs.jobs(config, "count_units"):
            paths.append(path("count_units", "privacy", experiment))
        return paths

    return features


def job_params(rule):
    """Params of a job: the keys and facts that it reads, and the code of what is free. Snakemake
    reruns the job when one changes."""

    def cfg(wildcards):
        return PARSED.params(rule, dict(wildcards.items()))

    return {"cfg": cfg, "code": rule_specs.code_of(rule)}


mean_of = from_jobs("mean", "estimate_mean", "find_mean")
sums_of = from_jobs("sums", "estimate_sums")
start_of = from_jobs("head", "estimate_head", "find_start")
public_start_of = from_jobs("head", "find_start")


def data_of(wildcards):
    """The manifest behind a part: the private dataset's, or that of a source declared public for
    it."""
    config = config_of(wildcards)
    part = rule_specs.records_of(config, wildcards.part)
    if rule_specs.is_public(config, part):
        return path("prepare_public", "privacy", wildcards.experiment, part=part)
    return path("prepare_dataset", "privacy", wildcards.experiment)


def rungs_below(wildcards):
    """Earlier rungs' releases, where a rung's draws start from them. No checkpoint is needed for
    that."""
    rungs = range(int(wildcards.rung)) if rule_specs.looks_back(config_of(wildcards)) else []
    return [path("select_rung", "best", wildcards.experiment, rung=str(rung)) for rung in rungs]


def those_with(rule):
    """The experiments that have a rule, as a wildcard constraint."""
    names = [
        name for name, config in PROJECT.experiments.items() if rule_specs.has_job(config, rule, {})
    ]
    return "|".join(names) or "(?!)"


class Own(dict):
    """Wildcards of a job whose rule has none."""

    __getattr__ = dict.__getitem__


@dataclass(frozen=True)
class Rung:
    """All trials of a rung that are an experiment's own, as one job."""

    experiment: str
    number: int
    trials: tuple

    @property
    def rule(self):
        return rule_specs.rung_rule(self.experiment, self.number)

    @property
    def wildcards(self):
        return {"experiment": self.experiment, "rung": str(self.number)}

    @property
    def input(self):
        own = Own(self.wildcards)
        inputs = {
            "features": features_of("run_trial"),
            "mean": mean_of,
            "sums": sums_of,
            "start": start_of,
            "below": rungs_below,
        }
        return {name: find(own) for name, find in inputs.items()}

    @property
    def output(self):
        return {
            f"{name}_{trial}": template("run_trial", name).format(**self.wildcards, trial=trial)
            for trial in self.trials
            for name in ("weights", "score", "privacy")
        }

    @property
    def log(self):
        return "logs/{experiment}/rungs/{rung}/trials.log".format(**self.wildcards)

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
    def jobs(self):
        """Its trials, as the ledger knows them."""
        return [{**self.wildcards, "trial": trial} for trial in self.trials]


def rungs_together():
    """The rungs that are one job each."""
    return [
        Rung(name, number, trials)
        for name, config in PROJECT.experiments.items()
        if config.sweep.together
        for number in range(len(config.sweep.ladder))
        if (trials := job_identity.trials_run_here(PROJECT, name, number))
    ]


def trials_apart():
    """The experiments whose trials are jobs of their own, as a wildcard constraint."""
    names = [name for name, config in PROJECT.experiments.items() if not config.sweep.together]
    return "|".join(names) or "(?!)"


def due_jobs(jobs):
    """What is due, as the ledger knows it: a rung's job is all of its trials. An outer workflow's
    own jobs are none of it."""
    together = {rung.rule: rung for rung in rungs_together()}
    for job in jobs:
        name = inner_rule_name(job.rule.name)
        if name in together:
            yield from (("run_trial", trial) for trial in together[name].jobs)
        elif name in rule_specs.RULE_SPECS:
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
    """The record of every job upstream of the statement."""
    return outputs_of(lambda name: name == "privacy")


def published(wildcards):
    """Every other output of these jobs: the statement names the bytes that it is about, and one
    whose file is lost is due. What was released is restored."""
    return outputs_of(lambda name: name != "privacy")


def outputs_of(wanted):
    """Of the jobs upstream of the statement the outputs that are wanted, each once."""
    return list(
        dict.fromkeys(
            path(maker, output, name, **job)
            for name, config in PROJECT.experiments.items()
            for maker, spec in rule_specs.RULE_SPECS.items()
            for job in (rule_specs.jobs(config, maker) if spec.per is not None else [])
            for output in getattr(rules, maker).output.keys()
            if wanted(output)
        )
    )


def summaries(wildcards):
    return [f"results/{experiment}/summary.json" for experiment in PROJECT.experiments]


def summary_records(wildcards):
    return [f"results/{experiment}/summary.privacy.json" for experiment in PROJECT.experiments]


def summary_tables(wildcards):
    return [f"results/{experiment}/summary.csv" for experiment in PROJECT.experiments]


def filed(picture):
    """A picture as an output, with its place in Snakemake's own report."""
    if not picture.category:
        return picture.path
    caption = f"../../src/dpladder/report/captions/{picture.name}.rst"
    labels = {"experiment": picture.experiment} if picture.experiment else {}
    return report(picture.path, caption=caption, category=picture.category, labels=labels)


def plan_of(wildcards):
    return PARSED.declared_plan
