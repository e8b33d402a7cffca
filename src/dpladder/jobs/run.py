"""From a job of the workflow to the module of its rule."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from dpladder.config.plugins import module_of_job
from dpladder.errors import BadInput
from dpladder.jobs import task as tasks
from dpladder.jobs.task import Task
from dpladder.plan import rule_specs


def run_job(snakemake: Any) -> None:
    """Do the work of this job's rule."""
    tasks.run(snakemake, run_rule)


def run_rule(task: Task[Any]) -> None:
    """The function of its module's name does the work. A module without one says what it releases,
    and its release is all that its job does.

    Raises:
        BadInput: no installed package has the rule's module.
    """
    name, module = rule_specs.module_of(task.rule), module_of_rule(task.rule)
    if module is None:
        raise BadInput(f"no installed package has the job of rule {name}. Install dpladder whole.")
    if hasattr(module, name):
        getattr(module, name)(task)
        return
    from dpladder.jobs.release import release_once  # jobs that release nothing load less

    release_once(module.release_of(task))


def module_of_rule(rule: str) -> Any:
    """The module that does a rule's work, of this package or of another one (config/plugins.py).

    Args:
        rule: it names the module, but for rules that share one (`RuleSpec.module`).

    Returns:
        The module; None where no installed package has it.
    """
    name = rule_specs.module_of(rule)
    if (brought := module_of_job(name)) is not None:
        return brought
    return import_module(f"dpladder.jobs.{name}") if find_spec(f"dpladder.jobs.{name}") else None
