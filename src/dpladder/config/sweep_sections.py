"""The config's sections about the ladder: rungs, where they look, the fit, the final training."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from dpladder.config.section import Count, Positive, Section


class Rung(Section):
    epsilon: Positive = Field(
        description="epsilon of each single trial of this rung, its score included"
    )
    trials: Annotated[int, Field(ge=1, le=10_000)] = Field(description="number of trials")


class Search(Section):
    """Where trials look for the total step size r = eta * steps."""

    unit: Literal["kappa", "r"] = Field(
        "kappa",
        description="what is drawn and fitted: kappa, the sd of the noise that a training puts "
        "into a logit; or r itself (the paper)",
    )
    kappa: tuple[Positive, Positive] = Field((0.05, 20.0), description="smallest and largest kappa")
    draw: Literal["stratified", "log_uniform", "uniform", "grid", "binary"] = Field(
        "stratified",
        description="how trials are placed: evenly over the prior or the range; at random in the "
        "range's logarithm; uniform, the paper's; grid and binary bisect",
    )
    eta: tuple[Positive, Positive] = Field(
        (1e-6, 0.5), description="smallest and largest learning rate, for records of length 32"
    )
    steps: tuple[Count, Count] = Field((30, 500), description="fewest and most training steps")
    decompose: Literal["eta_first", "steps_first", "balanced", "random"] = Field(
        "eta_first",
        description="how r splits into eta and steps: which of the two is pushed to its limit "
        "first, or both in step; random: the paper's random splits",
    )
    prior: Literal["lognormal", "none", "monotone", "proportional"] = Field(
        "lognormal",
        description="what is known before a rung: how the best kappa lies on public data; nothing; "
        "or, of the rung below, r as the lower end, or r scaled with epsilon as the "
        "centre",
    )
    expected: tuple[Positive, Annotated[float, Field(gt=1, allow_inf_nan=False)]] | None = Field(
        None,
        description="the lognormal prior's median, and the factor that is one deviation; empty: "
        "the learner's own, fitted on public data",
    )
    seed: Annotated[int, Field(ge=0)] = Field(
        0, description="public seed of the draws of r; noise never comes from it"
    )

    @model_validator(mode="after")
    def _ranges_ascend(self) -> Search:
        for name, (low, high) in (("eta", self.eta), ("steps", self.steps), ("kappa", self.kappa)):
            if low > high:
                raise ValueError(f"{name} must be [smallest, largest], and {low} > {high}")
        return self


class Select(Section):
    """How a rung's best trial is chosen. Nothing about a trial's quality is free on private
    data."""

    by: Literal["noisy_count", "public"] = Field(
        "noisy_count",
        description="noised count of correct predictions, or a declared-public validation source",
    )
    part: Literal["train", "validation"] = Field(
        "train", description="the private part whose correct predictions are counted"
    )
    share: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = Field(
        0.05, description="share of each rung's mu squared that pays for its scores"
    )


class Sweep(Section):
    """The ladder's rungs: cheap private trials. `sweep: auto` buys those that pay on public data of
    this strength, if any."""

    rungs: tuple[Rung, ...] | None = Field(
        None,
        description="by hand: one entry per rung, cheapest first; []: no trials, kappa by the "
        "prior alone; empty: auto, the rungs and the score share that pay",
    )
    search: Search = Field(default_factory=Search, description=Search.__doc__)
    select: Select = Field(default_factory=Select, description=Select.__doc__)
    together: bool = Field(
        True,
        description="true: a rung is one job, and its trials share a process and a pass over the "
        "features; false: one job per trial, for a cluster",
    )

    @property
    def ladder(self) -> tuple[Rung, ...]:
        """The rungs as far as they are known: what is left to the plan is settled there
        (plan/resolve.py)."""
        return self.rungs or ()


class Fit(Section):
    """How r is extrapolated from the rungs to the final budget."""

    degree: Literal[1, 2] = Field(
        1,
        description="1: line, 2: parabola through the rungs' best; needs one rung more than its "
        "degree",
    )
    against: Literal["kappa", "epsilon", "mu"] = Field(
        "kappa",
        description="what r grows along from the rungs to the total: kappa, which stays as it is; "
        "epsilon (the paper); or mu",
    )
    using: Literal["best", "pooled"] = Field(
        "pooled",
        description="every trial's released score, in one response surface; or each rung's best "
        "trial alone (the paper)",
    )


class Final(Section):
    """The final private training."""

    budget: Literal["remaining"] | Positive = Field(
        "remaining",
        description="remaining: all that the total leaves; or the final run's own epsilon",
    )
    targets: tuple[Positive, ...] = Field(
        (), description="several totals that share one sweep; empty: privacy.epsilon alone"
    )

    without_noise: bool = Field(
        False,
        description="only in mode: research: true trains once more with a noise of a millionth, "
        "for up to eight times the steps that sweep.search allows, shown as epsilon = "
        "infinity, for the gap to privacy; no release, and it protects nobody",
    )

    @model_validator(mode="after")
    def _targets_are_a_set(self) -> Final:
        if len(set(self.targets)) != len(self.targets):
            raise ValueError("targets must name each total once")
        if self.targets and self.budget != "remaining":
            raise ValueError("targets are totals, so they need budget: remaining")
        return self
