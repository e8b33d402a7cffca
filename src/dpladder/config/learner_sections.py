"""What learners' sections are made of: their traits, and the keys that several of them have. A
method's own section stands in its folder (methods/<name>/__init__.py).

`searches` says what the ladder's r stands for. `rate`: r is the total step size eta * steps.
`ridge`: r is 1/lambda, because ridge regression at lambda is close to gradient flow stopped at time
1/lambda (Ali, Kolter & Tibshirani 2019). None: there is nothing to search, so there is no ladder.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from dpladder.section import (
    Count,
    Epsilon,
    Fraction,
    NonNegative,
    Positive,
    Section,
)

Searched = Literal["rate", "ridge"] | None

# The largest bounds are far above any use, and far below where float32 products overflow. The least
# is what float32 can scale any gradient or record back into (learn/bounds.py, learn/records.py).
SMALLEST_SCALE = 1e-12
Clip = Annotated[
    Positive,
    Field(ge=SMALLEST_SCALE, le=1e6, description="C, the L2 bound on one unit's gradient."),
]
Radius = Annotated[
    Positive,
    Field(
        ge=SMALLEST_SCALE,
        le=1e4,
        description="Radius of a public ball that records are scaled into first.",
    ),
]


SamplingRate = Annotated[
    float,
    Field(
        gt=0,
        le=1,
        description="Share of the units at each step. 1: all, which costs exactly its Gaussian. "
        "Below 1: a Poisson sample.",
    ),
]


Clipping = Annotated[
    Literal["flat", "automatic"],
    Field(
        description="flat: a gradient longer than clip is cut to it. automatic: each is scaled to "
        "clip * g / (|g| + 0.01) (Bu et al. 2023)."
    ),
]


LinkName = Literal["softmax", "sigmoid", "identity"]
Schedule = Literal["constant", "cosine", "linear"]
Linked = Annotated[
    LinkName,
    Field(
        description="From logits to the loss. softmax: over the classes. sigmoid: for each of m "
        "classes, its bias from -log(m - 1) on, a probability of 1/m. identity: half the squared "
        "error, set by dataset.target."
    ),
]


Bias = Annotated[bool, Field(description="Whether a constant feature is appended.")]
Init = Annotated[
    Literal["zero", "random", "public"],
    Field(
        description="Initial weights. random: from the public seed. public: a head trained "
        "without noise on dataset.public_sample."
    ),
]
Public = Annotated[
    Literal["auto", "none", "gradient"],
    Field(
        description="Whether dataset.public_sample's labels guide training, at no cost. gradient: "
        "training starts from the head of init: public, and each step adds the sample's mean "
        "gradient, weighted by variances. auto: gradient for a softmax head from zero, but for a "
        "network without learner.head."
    ),
]
Look = Annotated[
    float,
    Field(
        ge=0,
        lt=1,
        description="Share of a guided training's mu^2 for a noised count of the public head's "
        "right answers. Where they are too few the sample is not followed. 0: you vouch for it.",
    ),
]
Augment = Annotated[
    int,
    Field(
        ge=1,
        le=64,
        description="Views per training image, at no cost: itself and fixed crops, whose "
        "gradients are averaged before clipping.",
    ),
]


class LearnerSection(Section):
    """What every learner's section has: its name, and traits. A plan, jobs and the audit go by
    traits, never by a learner's name: what a method can stands beside its keys."""

    searches: ClassVar[Searched] = None
    findings: ClassVar[bool] = False  # takes dataset.labels: many
    numbers: ClassVar[bool] = False  # takes dataset.target
    classes: ClassVar[bool] = True  # tells classes apart
    several_labels: ClassVar[bool] = False  # takes records of several classes
    above_cut: ClassVar[bool] = False  # goes on from the public network itself
    linear_head: ClassVar[bool] = False  # is a descent on a linear head
    has_head: ClassVar[bool] = True  # has a head that a public one can stand in for
    name: str

    @property
    def sampling(self) -> float:
        """The share of the units that a step sees; 1 on full batches.

        Below 1 a training is booked as nearly Gaussian, at a part of delta (privacy.share).
        """
        return 1.0

    @property
    def views(self) -> int:
        """The number of views of each record of the training part. A record's gradients are
        averaged before clipping, so views move no sum further and cost nothing."""
        return 1

    @property
    def start(self) -> Literal["zero", "random", "public"] | None:
        """What a descent starts from; None where nothing descends. The head's first weights are
        meant."""
        return None

    @property
    def draws_start(self) -> bool:
        """Whether some first weights are random, whatever `start` is."""
        return False

    @property
    def constant_feature(self) -> bool:
        """Whether a constant is appended to what its head sees."""
        return False

    @property
    def guidance(self) -> Literal["auto", "none", "gradient"]:
        """Whether the gradients of the public sample join a descent's own; auto: the plan
        decides."""
        return "none"

    @property
    def guidable(self) -> bool:
        """Whether public gradients could guide it unasked."""
        return False

    @property
    def look_share(self) -> float:
        """The part of a guided training's mu^2 that buys a look."""
        return 0.0

    @property
    def head_alone(self) -> bool:
        """Whether of a network nothing but its head is trained."""
        return False

    @property
    def purchases(self) -> dict[str, Any]:
        """The releases that trainings share and that are paid for beside them, by their keys.

        Returns:
            A section with an epsilon of its own for each; empty of a learner that buys none.
        """
        return {}

    @property
    def trials_are_solved(self) -> bool:
        """Whether trials are free solutions of sums that were released before. A rung then pays for
        its scores alone."""
        return False

    @property
    def exact_under(self) -> tuple[str, ...]:
        """The relations under which the cost of its noise is known. Under another one a config is
        refused (contract: refuse-first)."""
        return "add_remove", "replace_one"

    @property
    def uses_public_gradient(self) -> bool:
        """Whether the mean gradient of public records is added at each step, once nothing is left
        to the plan."""
        return self.guidance == "gradient"

    @property
    def starts_from_public_head(self) -> bool:
        """Whether a descent starts from a head that was trained on the public sample."""
        return self.start == "public" or self.uses_public_gradient

    @property
    def starts_from_private_head(self) -> bool:
        """Whether a training of the network starts from a private head that was released
        before."""
        return "head" in self.purchases

    @property
    def starts_at_public_point(self) -> bool:
        """Whether a descent starts at zero, or at the public network: its distance from there is
        worth telling."""
        return self.start == "zero" and not (
            self.draws_start or self.uses_public_gradient or self.starts_from_private_head
        )

    def of_trial(self, number: int) -> Self:
        """As one trial reads it, and the final training behind the best one.

        Args:
            number: of the trial in its rung, from 0. It follows from no data, so neither does the
                choice.
        """
        return self

    @property
    def chosen_keys(self) -> dict[str, Any]:
        """What trials choose beside r, by key, as this section has it."""
        return {}


def configured_purchases(**purchases: Section | None) -> dict[str, Any]:
    """Those of the purchases that the config asks for.

    Args:
        **purchases: a section by its key; None where the config leaves it out.
    """
    return {name: one for name, one in purchases.items() if one is not None}


class HeadTraining(LearnerSection):
    """What every learner reads that trains a head step by step."""

    findings: ClassVar[bool] = True
    link: Linked = "softmax"
    bias: Bias = False
    init: Init = "zero"
    augment: Augment = 1

    @property
    def views(self) -> int:
        return self.augment

    @property
    def start(self) -> Literal["zero", "random", "public"]:
        return self.init

    @property
    def constant_feature(self) -> bool:
        return self.bias


class Descending(HeadTraining):
    """What every descent along noised, clipped gradients reads."""

    clip: Clip = 1.0
    clipping: Clipping = "flat"
    weight_decay: NonNegative = 0.0
    """L2 penalty added to the noised gradient."""
    public: Public = "auto"
    look: Look = 0.05
    sampling_rate: SamplingRate = 1.0
    average: Literal["none", "ema", "swa"] = "none"
    """Which iterate is released: the last, or an average."""
    free_step: bool = False
    """Whether a last, free step is taken along the last direction."""

    @property
    def sampling(self) -> float:
        return self.sampling_rate

    @property
    def guidance(self) -> Literal["auto", "none", "gradient"]:
        return self.public

    @property
    def guidable(self) -> bool:
        """Whether public gradients could guide it unasked: a linear head that starts from zero,
        through a softmax, also where a network then goes on from it."""
        heads = self.linear_head or self.starts_from_private_head
        return heads and (self.init, self.link) == ("zero", "softmax")

    @property
    def look_share(self) -> float:
        return self.look

    @property
    def lr_schedule(self) -> Schedule:
        """How the learning rate falls."""
        return "constant"


class Rated(Descending):
    """A descent whose learning rate is given."""

    schedule: Schedule = "constant"
    """How the learning rate falls from eta on: not at all, along half a cosine, or a line."""

    @property
    def lr_schedule(self) -> Schedule:
        return self.schedule


class ByMomentum(Rated):
    """Full-batch gradient descent with momentum (Panda et al.)."""

    searches: ClassVar[Searched] = "rate"
    momentum: Fraction = 0.9
    """Heavy-ball momentum."""
    free_step: bool = True
    """Whether a last, free step is taken along the momentum buffer."""


class Lora(Section):
    """Low-rank adapters: up @ down is added to frozen matrices (Hu et al. 2021)."""

    rank: Count = 4
    """Rank of an adapter."""
    alpha: Positive = 8.0
    """Scale of an adapter: up @ down is multiplied by alpha / rank."""
    targets: tuple[str, ...] = Field(("*",), min_length=1)
    """Patterns of names of linear and convolution layers (GPT-2's c_attn, c_fc and c_proj too). *:
    all of them."""
    freeze: Literal["down", "none"] = "down"
    """down: it stays as a public seed draws it, so no noise multiplies noise (Sun et al. 2024,
    FFA-LoRA). none: both are trained."""


class Head(Section):
    """A private head, released once, from which all trainings of the network with equal keys
    start."""

    epsilon: Epsilon
    """Epsilon of the head. Example: 0.5"""


class Tuning(HeadTraining):
    """What is trained by every learner that goes on from the public network itself: which of its
    tensors, and the head."""

    above_cut: ClassVar[bool] = True
    trains: Literal["head", "norm_and_bias", "last_block", "all", "lora"] | tuple[str, ...] = (
        "last_block"
    )
    """What is trained beside the head. head: nothing. norm_and_bias: vectors alone (BitFit).
    last_block: it and what follows. all: everything above the cut. lora: adapters. Or patterns of
    tensor names."""
    lora: Lora = Field(default_factory=Lora)
    head: Head | None = None

    @property
    def draws_start(self) -> bool:
        """Whether some weights start at random values, which are public draws: adapters do, but
        for those whose random factor is frozen."""
        return self.trains == "lora" and self.lora.freeze == "none"

    @property
    def head_alone(self) -> bool:
        """Whether the network stays as it is, so that what is trained is a linear head."""
        return self.trains == "head"

    @property
    def purchases(self) -> dict[str, Any]:
        """What trainings buy once for all that share it: the head that they start from."""
        return configured_purchases(head=self.head)


class TunedDescent(Tuning, Descending):
    """Tuning by a descent along noised, clipped gradients."""


Alpha = Annotated[float, Field(gt=0, le=1)]
SumsShared = Literal["covariance", "all"]


class SharedCovariance(Section):
    """A noised feature covariance, released once for every training with equal keys."""

    epsilon: Epsilon
    """Epsilon of the shared sums together. Example: 0.2"""
    sums: Literal["covariance"] = "covariance"
    """Which sums are shared."""


class SharedSums(SharedCovariance):
    """Noised sums, released once for every training with equal keys: the covariance, or all that
    DP-LS asks for. Trials on all sums pay for their scores alone, and the final training makes them
    more exact."""

    sums: SumsShared = "covariance"  # type: ignore[assignment]
    """Which sums are shared."""
    alpha: tuple[Alpha, ...] = ()
    """With sums: all, values of alpha that trials take in turn; the final training takes the best
    trial's. Empty: learner.alpha. Example: [0.1, 1]"""

    def _problems(self) -> Iterator[str]:
        if self.alpha and self.sums != "all":
            yield "alpha needs all sums: set sums: all, or leave it out"
