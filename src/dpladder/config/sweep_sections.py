"""The config's sections about the ladder: rungs, where they look, the fit, the final training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from dpladder.config.dataset_sections import OF_CLASSES
from dpladder.config.features_sections import OF_POOLED
from dpladder.config.search_sections import OF_LADDER
from dpladder.section import Count, Epsilon, NeutralAt, OnlyFor, Positive, Section

# only on data that nobody needs protection in (contract: research)
IN_RESEARCH = OnlyFor("mode: research", lambda c: c.mode == "research")
OF_COUNTS = OnlyFor("sweep.select.by: noisy_count", lambda c: c.sweep.select.by == "noisy_count")


class Rung(Section):
    epsilon: Epsilon
    """Epsilon of each single trial of this rung, its score included. Example: 0.05"""
    trials: Annotated[int, Field(ge=1, le=10_000)]
    """Number of trials. Example: 3"""


class Search(Section):
    """Where trials look for the total step size r = eta * steps."""

    unit: Literal["kappa", "r"] = "kappa"
    """What is drawn and fitted. kappa: the deviation of a training's noise in a logit. r: as in the
    paper."""
    kappa: tuple[Positive, Positive] = (0.05, 20.0)
    """Smallest and largest kappa."""
    draw: Annotated[
        Literal["stratified", "log_uniform", "uniform", "grid", "binary"], OF_LADDER
    ] = "stratified"
    """How trials are drawn. stratified: evenly over the prior or the range. log_uniform: at random
    in its logarithm. uniform: the paper's. grid, binary: bisect it."""
    eta: tuple[Positive, Positive] = (1e-6, 0.5)
    """Smallest and largest learning rate, for records of length 32."""
    steps: tuple[Count, Count] = (30, 500)
    """Fewest and most training steps."""
    decompose: Literal["eta_first", "steps_first", "balanced", "random"] = "eta_first"
    """Which of eta and steps reaches its limit first, or both in step. random: the paper's random
    splits of r."""
    prior: Annotated[Literal["lognormal", "none", "monotone", "proportional"], OF_LADDER] = (
        "lognormal"
    )
    """What is known before a rung. lognormal: the best kappa on public data. monotone: the rung
    below's r is the lower end. proportional: that r, scaled with epsilon, is the centre."""
    expected: tuple[Positive, Annotated[float, Field(gt=1, allow_inf_nan=False)]] | None = None
    """The lognormal prior's median, and the factor that is one deviation. Empty: the learner's own,
    fitted on public data. Example: [1.6, 2]"""
    seed: Annotated[int, Field(ge=0)] = 0
    """Public seed of the draws of r. Noise never comes from it."""

    def _problems(self) -> Iterator[str]:
        for name, (low, high) in (("eta", self.eta), ("steps", self.steps), ("kappa", self.kappa)):
            if low > high:
                yield f"{name} must be [smallest, largest], and {low} > {high}"


class Select(Section):
    """How a rung's best trial is chosen."""

    by: Annotated[Literal["noisy_count", "public"], OF_LADDER] = "noisy_count"
    """What scores trials. noisy_count: a noised count of correct predictions. public:
    dataset.public_validation."""
    part: Annotated[Literal["train", "validation"], OF_LADDER, OF_COUNTS] = "train"
    """The private part whose correct predictions are counted."""
    share: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False), OF_COUNTS] = 0.05
    """Share of each rung's mu squared that pays for its scores."""


class Sweep(Section):
    """The ladder's rungs: cheap private trials. `sweep: auto` buys those that pay on public data of
    this strength, if any."""

    rungs: tuple[Rung, ...] | None = None
    """The rungs, cheapest first. []: no trials, and kappa by the prior alone. Empty: auto, the
    rungs and the score share that pay. Example: [{epsilon: 0.05, trials: 3}]"""
    search: Search = Field(default_factory=Search)
    select: Select = Field(default_factory=Select)
    together: bool = True
    """true: a rung is one job, whose trials share passes over the features. false: a job per trial,
    for a cluster."""

    @property
    def ladder(self) -> tuple[Rung, ...]:
        """The rungs as far as they are known: what is left to the plan is settled there
        (plan/resolve.py). Empty both where there are no trials and where the plan has not chosen
        yet."""
        return self.rungs or ()


class Fit(Section):
    """How r is extrapolated from the rungs to the final budget."""

    degree: Literal[1, 2] = 1
    """Degree of the curve through the rungs' best; it needs one rung more than that."""
    against: Literal["kappa", "epsilon", "mu"] = "kappa"
    """What r grows with from the rungs to the total. kappa: nothing, kappa stays. epsilon: as in
    the paper. mu: Gaussian DP's."""
    using: Literal["best", "pooled"] = "pooled"
    """Which scores are fitted. pooled: every trial's. best: each rung's best alone (the paper)."""


class Calibrate(Section):
    """A map that puts released probabilities right, by one noised histogram of the training part's
    margins. null: none is bought, and the slope follows from a public law alone."""

    share: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] | None = None
    """Its share of the final training's mu squared. Empty: what pays on public data, 0.01 to 0.05,
    from n0*mu = 1,000 on with two classes, 300 with more. Example: 0.02"""


class Final(Section):
    """The final private training."""

    budget: Annotated[Literal["remaining"] | Epsilon, OF_LADDER] = "remaining"
    """Epsilon of the final training. remaining: all that the total leaves."""
    targets: tuple[Epsilon, ...] = ()
    """Several totals that share one sweep. Empty: privacy.epsilon alone. Example: [0.5, 1, 2]"""
    calibrate: Annotated[Calibrate | None, NeutralAt(None)] = Field(default_factory=Calibrate)
    without_noise: Annotated[bool, IN_RESEARCH, OF_CLASSES, OF_POOLED] = False
    """Whether to train once more with a millionth of the noise, shown as epsilon = infinity, in up
    to eight times the steps of sweep.search. It protects nobody."""

    def _problems(self) -> Iterator[str]:
        if len(set(self.targets)) != len(self.targets):
            yield "targets must name each total once"
        if self.targets and self.budget != "remaining":
            yield "targets are totals, so they need budget: remaining"
