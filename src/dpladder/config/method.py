"""What a learner or a search is to all that plan, charge, run and attack it. One `METHOD` says it,
for dpladder's own and for those of another package alike (config/learners.py,
config/searches.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal, get_args

from dpladder.errors import BadInput

Function = Callable[..., Any]
DISTRIBUTION = "dpladder"
"""What is installed under this name is dpladder's own."""


Kind = bool | Literal["number", "curves", "curves of a number"]
"""What a prior in kappa is of: whether features are centred; of numbers (dataset.target), whether
they are or not; of a table's curves (plan/curves.py)."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """What learners and searches have in common.

    Args:
        section: its keys in the config, and its traits.
        package: the distribution that it comes in.
    """

    section: Any
    package: str = DISTRIBUTION

    def __post_init__(self) -> None:
        names = get_args(self.section.model_fields["name"].annotation)
        if len(names) != 1 or not isinstance(names[0], str) or not names[0]:
            raise BadInput(f"{self.section.__name__} must have name: Literal[<the method's name>].")

    @property
    def name(self) -> str:
        """What the config calls it, as its section's `name` says."""
        return name_of(self.section)

    @property
    def built_in(self) -> bool:
        """Whether it is dpladder's own. Of others a statement says that they rest on their authors'
        word."""
        return self.package == DISTRIBUTION


@dataclass(frozen=True, kw_only=True)
class LearnerMethod(Method):
    """A learner.

    Args:
        queries: `(learner, hyper, constants)` to all that one training asks (learn/queries.py).
        train: `(inputs, queries, learner, hyper, constants)` to a generator that yields questions,
            is sent noised answers, and returns weights (learn/curator.py).
        logit_noise: `(learner, hyper, constants)` to kappa, the sd of the noise that one training
            puts into a logit. A learner that is tuned must have this law: another one's would steer
            its search to the wrong r.
        weights: the module that says what its weights mean (learn/layers.py has what is needed).
        prior: the median of the best kappa on public data and the factor of one deviation, by
            kind of feature (`Kind`). Empty: dp_gd's (search/prior.py).
        slope: what the margins of two classes are multiplied by to be as sure as they are right, on
            public data (learn/measures/calibrate.py). None: not measured, so margins stay.
    """

    queries: Function
    train: Function
    logit_noise: Function | None = None
    weights: str = "dpladder.learn.layers"
    prior: Mapping[Kind, tuple[float, float]] = field(default_factory=dict, hash=False)
    slope: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.section.searches is not None and self.logit_noise is None:
            raise BadInput(
                f"learner {self.name} is tuned, and has no law of its kappa. Give logit_noise, or "
                "leave `searches` out of its section."
            )


@dataclass(frozen=True, kw_only=True)
class SearchMethod(Method):
    """A private search.

    Args:
        price: `(search, epsilon, delta, relation)` to the events that it spends of a total, its
            released weights included.
        searcher: the section to a `Searcher`, which declares draws and asks for trainings
            (search/protocol.py).
        scored: whether the training that is released spends a part of its mu on a score.
        attack: keys of its section for `dpladder audit`: runs that are few and short.
    """

    price: Function
    searcher: Function
    scored: bool = True
    attack: Mapping[str, Any] = field(default_factory=dict)


def name_of(section: Any) -> str:
    """The method that a section is for, by the one value that its `name` may have."""
    [name] = get_args(section.model_fields["name"].annotation)
    return str(name)


def later(where: str) -> Function:
    """The function `module:name`. Its module is imported when it is called first, for a plan never
    loads torch.

    Args:
        where: a module by its whole path, a colon, and the function in it. Neither is looked up
            before the first call.

    Returns:
        A function that says that module and name of itself.
    """
    module, _, name = where.partition(":")

    def call(*arguments: Any) -> Any:
        return getattr(import_module(module), name)(*arguments)

    call.__module__, call.__name__ = module, name
    return call
