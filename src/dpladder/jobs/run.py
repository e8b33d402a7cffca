"""From a job of the workflow to the module of its rule."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dpladder.jobs import task as tasks
from dpladder.jobs.task import Task
from dpladder.network.compiler import postpone_compiler
from dpladder.plan.rules import module_of


def run_job(snakemake: Any) -> None:
    """Do the work of this job's rule."""
    postpone_compiler()
    tasks.run(snakemake, run_rule)


def run_rule(task: Task[Any]) -> None:
    """The function of its module's name does the work. A module without one says what it releases,
    and its release is all that its job does.

    """
    module = module_of_rule(task.rule)
    name = module.__name__.rpartition(".")[2]
    if hasattr(module, name):
        getattr(module, name)(task)
        return
    from dpladder.jobs.release import release_once  # jobs that release nothing load less

    release_once(module.release_of(task))


def module_of_rule(rule: str) -> Any:
    """The module that does a rule's work.

    Args:
        rule: it names the module, but where its row says another one (`RuleSpec.module`).
    """
    name = module_of(rule)
    return import_module(name if "." in name else f"dpladder.jobs.{name}")
