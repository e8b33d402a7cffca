# Everything the rules share: the parsed project, and the functions that turn wildcards into inputs,
# params, resources. What a rule reads of other jobs stands in its row (plan/rules.py). Experiments
# whose keys are the same share one job, so inputs name the experiment that owns it.

from dataclasses import dataclass

from snakemake.exceptions import WorkflowError

from dpladder.config.load import BASE
from dpladder.plan import package
from dpladder.plan.ending import conclude, logs
from dpladder.plan.outer import inner_rule_name
from dpladder.plan.pictures import pictures_of
from dpladder.plan.rules import RULES, code_of, has_rule, rung_rule
from dpladder.plan.startup import open_project, reserve

PARSED = open_project(workflow, config)
PROJECT, NODES = PARSED.project, PARSED.dag
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
    *(workflow.modifier.modify_rulename(name) for name, row in RULES.items() if not row.private)
)


def config_of(wildcards):
    return PROJECT.experiments[wildcards.get("experiment", BASE)]


# --- one join: who makes what a job reads ---


def node_of(rule, wildcards):
    node = NODES.find(rule, wildcards)
    if node is None:
        words = ", ".join(f"{name} {value}" for name, value in wildcards.items())
        raise WorkflowError(f"the config asks for no {rule} of {words}; see: dpladder plan")
    return node


def template(rule, output):
    """Where a rule puts an output, its wildcards open."""
    return str(getattr(getattr(rules, rule).output, output))


def path(node, output):
    """An output of a job, under the experiment that owns it."""
    return template(node.rule, output).format(experiment=node.experiment, **node.wildcards)


def inputs(rule):
    """An input function for each name in the row of a rule."""

    def paths_of(name, one):
        def paths(wildcards):
            nodes = node_of(rule, dict(wildcards.items())).inputs[name]
            found = [path(node, one.output) for node in nodes]
            return found if one.several or not found else found[0]

        return paths

    return {name: paths_of(name, one) for name, one in RULES[rule].inputs.items()}


def job_params(rule):
    """Params of a job: the keys and facts that it reads, and the code of what is free. Snakemake
    reruns the job when one changes."""

    def cfg(wildcards):
        return PARSED.params(node_of(rule, dict(wildcards.items())))

    return {"cfg": cfg, "code": code_of(rule)}


def those_with(rule):
    """The experiments that have a rule, as a wildcard constraint."""
    names = [name for name, config in PROJECT.experiments.items() if has_rule(config, rule)]
    return "|".join(names) or "(?!)"


@dataclass(frozen=True)
class Rung:
    """All trials of a rung that are an experiment's own, as one job."""

    experiment: str
    number: int
    trials: tuple

    @property
    def rule(self):
        return rung_rule(self.experiment, self.number)

    @property
    def wildcards(self):
        return {"experiment": self.experiment, "rung": str(self.number)}

    @property
    def input(self):
        return {name: find(self.jobs[0]) for name, find in inputs("run_trial").items()}

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
        return PARSED.params(node_of("run_trial", self.jobs[0]))

    @property
    def jobs(self):
        """Its trials, as the ledger knows them."""
        return [{**self.wildcards, "trial": trial} for trial in self.trials]


def trials_run_here(experiment, rung):
    """The trials of a rung that are an experiment's own; the others are run by the first experiment
    that has them too."""
    trials = NODES.jobs(experiment, "run_trial", rung=str(rung))
    return tuple(node.wildcards["trial"] for node in trials if node.experiment == experiment)


def rungs_together():
    """The rungs that are one job each."""
    return [
        Rung(name, number, trials)
        for name, config in PROJECT.experiments.items()
        if config.sweep.together
        for number in range(len(config.sweep.ladder))
        if (trials := trials_run_here(name, number))
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
        elif name in RULES:
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
            path(node, output)
            for node in NODES.behind_statement()
            for output in getattr(rules, node.rule).output.keys()
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
    package = picture.package.replace(".", "/")
    caption = f"../../src/{package}/captions/{picture.name}.rst"
    labels = {"experiment": picture.experiment} if picture.experiment else {}
    return report(picture.path, caption=caption, category=picture.category, labels=labels)


def plan_of(wildcards):
    return PARSED.declared_plan
