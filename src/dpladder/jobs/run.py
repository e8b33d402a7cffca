"""From a job of the workflow to the module of its rule."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dpladder.jobs import task as tasks
from dpladder.jobs.task import Task
from dpladder.plan import rule_specs


def run_job(snakemake: Any) -> None:
    """Do the work of this job's rule."""
    tasks.run(snakemake, run_rule)


def run_rule(task: Task[Any]) -> None:
    """The function of its module's name does the work. A module without one says what it releases,
    and its release is all that its job does.

    Args:
        task: the job; its rule names the module, but for rules that share one (`RuleSpec.module`).
    """
    name = rule_specs.module_of(task.rule)
    module = import_module(f"dpladder.jobs.{name}")
    if hasattr(module, name):
        getattr(module, name)(task)
        return
    from dpladder.jobs.release import release_once  # jobs that release nothing load less

    release_once(module.release_of(task))
