"""What a learner is to all that plan, charge, run and attack it. One `METHOD` says it, for a
learner of dpladder's own and for one of another package alike (config/learners.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, get_args

from dpladder.errors import BadInput

Function = Callable[..., Any]


@dataclass(frozen=True)
class Method:
    """A learner.

    Args:
        section: its keys in the config, and its traits.
        queries: `(learner, hyper, constants)` to all that one training asks (learn/queries.py).
        train: `(inputs, queries, learner, hyper, constants)` to a generator that yields questions,
            is sent noised answers, and returns weights (learn/curator.py).
        logit_noise: `(learner, hyper, constants)` to kappa, the sd of the noise that one training
            puts into a logit. A learner that is tuned must have this law: another one's would steer
            its search to the wrong r.
        weights: the module that says what its weights mean (learn/layers.py has what is needed).
        version: rises when what it computes, draws or charges changes in meaning
            (plan/mechanisms.py).
        package: that it comes from.
    """

    section: Any
    queries: Function
    train: Function
    logit_noise: Function | None = None
    weights: str = "dpladder.learn.layers"
    version: int = 1
    package: str = "dpladder"

    def __post_init__(self) -> None:
        if len(get_args(self.section.model_fields["name"].annotation)) != 1:
            raise BadInput(
                f"{self.section.__name__} must have name: Literal[<the learner's name>]."
            )
        if self.section.searches is not None and self.logit_noise is None:
            raise BadInput(
                f"learner {self.name} is tuned, and has no law of its kappa. Give logit_noise, or "
                "leave `searches` out of its section."
            )

    @property
    def name(self) -> str:
        name, *further = get_args(self.section.model_fields["name"].annotation) or ("",)
        if further or not isinstance(name, str) or not name:
            raise BadInput(
                f"{self.section.__name__} must have name: Literal[<the learner's name>]."
            )
        return name

    @property
    def built_in(self) -> bool:
        return self.package == "dpladder"


def later(where: str) -> Function:
    """The function `module:name`. Its module is imported when it is called first, for a plan never
    loads torch."""
    module, _, name = where.partition(":")

    def call(*arguments: Any) -> Any:
        return getattr(import_module(module), name)(*arguments)

    call.__module__, call.__name__ = module, name
    return call
