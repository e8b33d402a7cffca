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
    """What is drawn and fitted. kappa: the standard deviation of the noise that a training puts
    into a logit. r: eta times steps, as in the paper."""
    kappa: tuple[Positive, Positive] = (0.05, 20.0)
    """Smallest and largest kappa."""
    draw: Annotated[
        Literal["stratified", "log_uniform", "uniform", "grid", "binary"], OF_LADDER
    ] = "stratified"
    """How trials are placed. stratified: evenly over the prior or the range. log_uniform: at random
    in the range's logarithm. uniform: the paper's. grid and binary bisect the range."""
    eta: tuple[Positive, Positive] = (1e-6, 0.5)
    """Smallest and largest learning rate, for records of length 32."""
    steps: tuple[Count, Count] = (30, 500)
    """Fewest and most training steps."""
    decompose: Literal["eta_first", "steps_first", "balanced", "random"] = "eta_first"
    """How r splits into eta and steps: which of the two reaches its limit first, or both in step.
    random: the paper's random splits."""
    prior: Annotated[Literal["lognormal", "none", "monotone", "proportional"], OF_LADDER] = (
        "lognormal"
    )
    """What is known before a rung. lognormal: where the best kappa lies on public data. monotone:
    the r of the rung below is the lower end. proportional: that r, scaled with epsilon, is the
    centre."""
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
    """How trials are scored. noisy_count: by a noised count of correct predictions. public: on
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
    """How trials run. true: a rung is one job, and its trials share a pass over the features.
    false: one job per trial, for a cluster."""

    @property
    def ladder(self) -> tuple[Rung, ...]:
        """The rungs as far as they are known: what is left to the plan is settled there
        (plan/resolve.py). Empty both where there are no trials and where the plan has not chosen
        yet."""
        return self.rungs or ()


class Fit(Section):
    """How r is extrapolated from the rungs to the final budget."""

    degree: Literal[1, 2] = 1
    """Degree of the curve through the rungs' best: 1 a line, 2 a parabola. It needs one rung more
    than its degree."""
    against: Literal["kappa", "epsilon", "mu"] = "kappa"
    """What r grows along from the rungs to the total. kappa: it stays as it is. epsilon: the
    paper's. mu: Gaussian DP's."""
    using: Literal["best", "pooled"] = "pooled"
    """Which scores are fitted: every trial's, in one response surface, or each rung's best alone
    (the paper)."""


class Calibrate(Section):
    """A map that puts released probabilities right, by one noised histogram of the training part's
    margins. null: none is bought, and the slope follows from a public law alone."""

    share: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] | None = None
    """Share of the final training's mu squared that buys it. Empty: what pays on public data, 0.01
    to 0.05. With two classes it pays from n0*mu = 1,000 on, with more from 300. Example: 0.02"""


class Final(Section):
    """The final private training."""

    budget: Annotated[Literal["remaining"] | Epsilon, OF_LADDER] = "remaining"
    """Epsilon of the final training. remaining: all that the total leaves."""
    targets: tuple[Epsilon, ...] = ()
    """Several totals that share one sweep. Empty: privacy.epsilon alone. Example: [0.5, 1, 2]"""
    calibrate: Annotated[Calibrate | None, NeutralAt(None)] = Field(default_factory=Calibrate)
    without_noise: Annotated[bool, IN_RESEARCH, OF_CLASSES, OF_POOLED] = False
    """Whether to train once more with a millionth of the noise, shown as epsilon = infinity. It
    takes up to eight times the steps of sweep.search, protects nobody and is no release."""

    def _problems(self) -> Iterator[str]:
        if len(set(self.targets)) != len(self.targets):
            yield "targets must name each total once"
        if self.targets and self.budget != "remaining":
            yield "targets are totals, so they need budget: remaining"
