"""The learners' sections: one class for each method, with the options that it reads and no others.

`searches` says what the ladder's r stands for. `rate`: r is the total step size eta * steps.
`ridge`: r is 1/lambda, because ridge regression at lambda is close to gradient flow stopped at time
1/lambda (Ali, Kolter & Tibshirani 2019). None: there is nothing to search, so there is no ladder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union, get_args

from pydantic import Field, model_validator

from dpladder.config.others import LEARNERS, others
from dpladder.config.rules import Messages, Table
from dpladder.config.section import Count, Fraction, NonNegative, Positive, Section, restored

Searched = Literal["rate", "ridge"] | None

# Bounds: far above any use, and far below where float32 products overflow; and at the least what
# float32 can scale any gradient or record back into (learn/bounds.py, learn/records.py).
LEAST = 1e-12
Clip = Annotated[
    Positive, Field(ge=LEAST, le=1e6, description="C, the L2 bound on one unit's gradient")
]
Radius = Annotated[
    Positive,
    Field(
        ge=LEAST, le=1e4, description="records are scaled into a ball of this public radius first"
    ),
]


SamplingRate = Annotated[
    float,
    Field(
        gt=0,
        le=1,
        description="1: full batch, which costs exactly its Gaussian; below 1: a Poisson sample of "
        "the units at each step",
    ),
]


Clipping = Annotated[
    Literal["flat", "automatic"],
    Field(
        description="how a gradient is kept within clip: a longer one is cut to it; automatic: "
        "every one is scaled to clip * g / (|g| + 0.01), so that clip and eta are one "
        "number to choose (Bu et al. 2023)"
    ),
]


LinkName = Literal["softmax", "sigmoid"]
Linked = Annotated[
    LinkName,
    Field(
        description="from logits to the loss: one softmax over the classes; or one sigmoid for "
        "each, whose biases start at -log(m - 1), where each of m classes has "
        "probability 1/m"
    ),
]


Bias = Annotated[bool, Field(description="append a constant feature")]
Init = Annotated[
    Literal["zero", "random", "public"],
    Field(
        description="initial weights; random ones come from the public seed, public ones are a "
        "head trained without noise on dataset.public_sample"
    ),
]
Public = Annotated[
    Literal["auto", "none", "gradient"],
    Field(
        description="gradient: training starts from the head of init: public, and at each step the "
        "mean gradient of dataset.public_sample's labelled records is added to the private one, "
        "weighted by variances, at no cost; a network's step takes a batch of them, and a head "
        "that is bought for it (learner.head) is guided first; auto: so where there is a "
        "public_sample, and a softmax head from zero that it can guide, but for a network without "
        "learner.head"
    ),
]
Look = Annotated[
    float,
    Field(
        ge=0,
        lt=1,
        description="with public: gradient, the part of a training's mu^2 that buys a noised count "
        "of the public head's right answers; where they are too few the sample is not followed. "
        "0: you vouch for the sample",
    ),
]
Augment = Annotated[
    int,
    Field(
        ge=1,
        le=64,
        description="views per image of the training part, at no further cost: the image and fixed "
        "crops of it, whose gradients are averaged before clipping",
    ),
]


class Descending(Section):
    """What every descent along noised, clipped gradients reads."""

    name: str
    clip: Clip = 1.0
    clipping: Clipping = "flat"
    link: Linked = "softmax"
    weight_decay: NonNegative = Field(0.0, description="L2 penalty added to the noised gradient")
    bias: Bias = False
    init: Init = "zero"
    public: Public = "auto"
    look: Look = 0.05
    sampling_rate: SamplingRate = 1.0
    average: Literal["none", "ema", "swa"] = Field(
        "none", description="which iterate is released: the last, or an average of released ones"
    )
    augment: Augment = 1
    free_step: bool = Field(
        False, description="one last step along the last direction, free post-processing"
    )


class Rated(Descending):
    """A descent whose learning rate is given."""

    schedule: Literal["constant", "cosine", "linear"] = Field(
        "constant",
        description="how the learning rate falls over the steps: not at all, along half a cosine, "
        "or along a line; eta is the first step's",
    )


class Descent(Rated):
    """Full-batch gradient descent with momentum (Panda et al.), on a linear head or with one hidden
    layer."""

    searches: ClassVar[Searched] = "rate"
    name: Literal["dp_gd", "dp_mlp"] = Field(
        "dp_gd",
        description="dp_gd: the paper's full-batch gradient descent on a linear head; dp_mlp: the "
        "same with one hidden layer",
    )
    momentum: Fraction = Field(0.9, description="heavy-ball momentum")
    free_step: bool = Field(
        True, description="one last step along the momentum buffer, free post-processing"
    )


class Adam(Rated):
    """DP-Adam on a linear head (Mehta et al.). A step moves each weight by about eta, whatever the
    gradient's scale: let sweep.search.eta reach down to 0.001."""

    searches: ClassVar[Searched] = "rate"
    name: Literal["dp_adam"] = "dp_adam"
    betas: tuple[Fraction, Fraction] = Field((0.9, 0.999), description="decay of the two moments")
    stability: Positive = Field(1e-8, description="added to the root of the second moment")


class AdamNoSecondMoment(Rated):
    """DP-Adam whose second moment is its public noise level (Mohapatra et al., DPAdamWOSM).
    sweep.search.eta as for dp_adam."""

    searches: ClassVar[Searched] = "rate"
    name: Literal["dp_adam_wosm"] = "dp_adam_wosm"
    beta: Fraction = Field(0.9, description="decay of the first moment")
    stability: Positive = Field(1e-8, description="added to the noise level")


class Lora(Section):
    """Low-rank adapters beside frozen matrices: up @ down is added to each (Hu et al. 2021)."""

    rank: Count = Field(4, description="rows of down, columns of up")
    alpha: Positive = Field(8.0, description="up @ down is multiplied by alpha / rank")
    targets: tuple[str, ...] = Field(
        ("*",),
        min_length=1,
        description="patterns of the names of linear and convolution layers (GPT-2's c_attn, c_fc "
        "and c_proj too); *: all of them",
    )


class Head(Section):
    """A private head on what the public network puts out, released once: every training of the
    network with equal keys starts from it."""

    epsilon: Positive = Field(description="epsilon of the head alone, at the lineage's delta")


class Tuning(Section):
    """What is trained by every learner that goes on from the public network itself: which of its
    tensors, and the head."""

    name: str
    link: Linked = "softmax"
    bias: Bias = False
    init: Init = "zero"
    augment: Augment = 1
    trains: Literal["head", "norm_and_bias", "last_block", "all", "lora"] | tuple[str, ...] = Field(
        "last_block",
        description="what is trained beside the head: nothing; vectors alone (BitFit); the last "
        "block, and what follows it; all above the cut; adapters; or what these "
        "patterns of tensor names fit",
    )
    lora: Lora = Field(default_factory=Lora, description=Lora.__doc__)
    head: Head | None = Field(None, description=Head.__doc__)


class FineTune(Tuning, Rated):
    """Fine-tuning of the public network itself, above `features.until`, with a linear head on top.
    Weights start at the public ones, and what is released is the difference from them; weight_decay
    pulls back to them."""

    searches: ClassVar[Searched] = "rate"
    name: Literal["dp_finetune"] = "dp_finetune"
    optimizer: Literal["momentum", "adam"] = Field(
        "momentum", description="what makes a direction of the noised gradients"
    )
    momentum: Fraction = Field(0.9, description="heavy-ball momentum, with optimizer: momentum")
    betas: tuple[Fraction, Fraction] = Field(
        (0.9, 0.999), description="decay of the two moments, with adam"
    )
    stability: Positive = Field(
        1e-8, description="added to the root of the second moment, with adam"
    )


class Covariance(Section):
    """A noised feature covariance, released once and shared by every training with equal keys."""

    epsilon: Positive = Field(
        description="epsilon of the noised covariance alone, at the lineage's delta"
    )


Alpha = Annotated[float, Field(gt=0, le=1)]


class Statistics(Section):
    """All noised sums of DP-LS, released once and shared. Trials are free solutions of them at
    other alpha and lambda, and pay for their scores alone; the final training makes the same sums
    more exact with what its total leaves. The file holds 2 d^2 bytes for each class and one more:
    0.33 GB at 1,280 features and 100 classes."""

    epsilon: Positive = Field(
        description="epsilon of the noised sums together, at the lineage's delta"
    )
    alpha: tuple[Alpha, ...] = Field(
        (),
        description="public values that trials take in turn, the final training the best trial's; "
        "empty: learner.alpha",
    )


class LeastSquares(Section):
    """DP-LS: ridge regression, weighted by class, from noised second moments (Mehta et al.). The
    ladder's r is 1/lambda, in the range that sweep.search gives r."""

    searches: ClassVar[Searched] = "ridge"
    steps: ClassVar[int] = 1
    name: Literal["dp_ls"] = "dp_ls"
    radius: Radius = 1.0
    alpha: Alpha = Field(
        1.0, description="weight of all records beside a class's own, free post-processing"
    )
    covariance: Covariance | None = Field(None, description=Covariance.__doc__)
    statistics: Statistics | None = Field(None, description=Statistics.__doc__)

    @model_validator(mode="after")
    def _one_of_them_is_shared(self) -> LeastSquares:
        if self.covariance and self.statistics:
            raise ValueError("statistics hold the covariance already; name one of the two")
        return self

    def of_trial(self, number: int) -> LeastSquares:
        """As one trial reads it, and the final training behind the best one."""
        values = (self.statistics and self.statistics.alpha) or (self.alpha,)
        return self.model_copy(update={"alpha": values[number % len(values)]})


class Newton(Section):
    """DP-Newton: noised gradients and Hessians of logistic regression, class by class (Mehta et
    al.). The ladder's r is 1/lambda, in the range that sweep.search gives r."""

    searches: ClassVar[Searched] = "ridge"
    name: Literal["dp_newton"] = "dp_newton"
    radius: Radius = 1.0
    steps: Count = Field(10, description="Newton steps")
    link: LinkName = Field(
        "softmax",
        description="softmax over classes, with its tight sensitivities; or one sigmoid per class, "
        "as published, whose biases start at -log(m - 1)",
    )


class FeatureCovariance(Section):
    """DP-FC: gradient descent preconditioned by the noised feature covariance (Mehta et al.)."""

    searches: ClassVar[Searched] = "rate"
    name: Literal["dp_fc"] = "dp_fc"
    clip: Clip = 1.0
    clipping: Clipping = "flat"
    link: Linked = "softmax"
    radius: Radius = 1.0
    damping: Positive = Field(0.1, description="added to every eigenvalue of the mean covariance")
    covariance: Covariance | None = Field(None, description=Covariance.__doc__)


Steering = Literal["guarded", "published"]


class LossesLookedAt(Section):
    """HyFreeDP: step sizes from privatised losses, automatic clipping (Bu & Liu)."""

    searches: ClassVar[Searched] = None
    name: str
    steps: Count = Field(50, description="training steps")
    eta: Positive = Field(1.0, description="first learning rate; private losses move it")
    link: Linked = "softmax"
    every: Count = Field(5, description="K, steps from one look at the losses to the next")
    gamma: Annotated[float, Field(gt=1, allow_inf_nan=False)] = Field(
        1.01, description="noise on gradients over what it would be without losses to pay for"
    )
    points: Literal[3, 5] = Field(
        3, description="losses at each look: here, and one or two steps either way"
    )
    loss_noise: Literal["gaussian", "laplace"] = Field(
        "gaussian",
        description="of the losses; laplace is charged as its Gaussian bound on full batches, and "
        "on samples exactly, under privacy.relation: add_remove alone",
    )
    optimizer: Literal["sgd", "momentum", "adamw"] = Field(
        "sgd",
        description="what makes a direction of the noised gradients; the losses are looked "
        "at along it",
    )
    weight_decay: NonNegative = Field(0.0, description="decoupled, as AdamW's")
    steering: Steering = Field(
        "guarded",
        description="how rate and bound follow noised losses; guarded: the rate moves twofold at "
        "most, and only where losses differ by more than their noise, and losses have twice their "
        "mean as room; published: the rate goes to each parabola's bottom, and the last noised "
        "loss is the bound",
    )
    sampling_rate: SamplingRate = 1.0
    bias: Bias = False


class HyperparameterFree(LossesLookedAt):
    """HyFreeDP on a linear head: step sizes from privatised losses, automatic clipping (Bu &
    Liu)."""

    name: Literal["hyfree_dp"] = "hyfree_dp"


class HyperparameterFreeTuning(Tuning, LossesLookedAt):
    """Fine-tuning of the public network, as dp_finetune's, with the steps of HyFreeDP: their sizes
    from privatised losses, automatic clipping (Bu & Liu). weight_decay pulls back to the public
    weights."""

    name: Literal["hyfree_finetune"] = "hyfree_finetune"


class ZerothOrder(Section):
    """DP-ZO on a linear head: steps along public random directions, by noised differences of the
    loss (Tang et al.). Directions have length 1, so that eta means what it means elsewhere; many
    more steps than elsewhere pay."""

    searches: ClassVar[Searched] = "rate"
    name: Literal["dp_zo"] = "dp_zo"
    clip: Annotated[
        Positive, Field(le=1e6, description="C, the bound on one unit's difference of losses")
    ] = 1.0
    link: Linked = "softmax"
    smoothing: Positive = Field(
        1.0, description="phi, how far along a direction the loss is looked at"
    )
    noise: Literal["gaussian", "laplace"] = Field(
        "gaussian",
        description="of the noised difference; laplace makes each step pure DP, and is charged as "
        "its Gaussian bound",
    )
    bias: Bias = False


class OneStep(Section):
    """A single step of DP-Adam from zero on a linear head. The rate scales the weights and changes
    no prediction."""

    searches: ClassVar[Searched] = None
    steps: ClassVar[int] = 1
    name: Literal["one_step"] = "one_step"
    clip: Clip = 1.0
    clipping: Clipping = "flat"
    eta: Positive = Field(0.01, description="the learning rate")
    stability: Positive = Field(
        1e-8, description="added to the gradient's size; a large one keeps its direction"
    )
    bias: Bias = False


class Prototypes(Section):
    """A noised mean of each class; the nearest by angle wins. One release, nothing to search, and
    small classes count as much as large ones (as Wahdany et al.'s DPPL, with plain means)."""

    searches: ClassVar[Searched] = None
    steps: ClassVar[int] = 1
    eta: ClassVar[float] = 1.0
    name: Literal["dp_prototypes"] = "dp_prototypes"
    radius: Radius = 1.0


class GrowingSteps(Descending):
    """Step sizes that grow with what the released gradients show (Prodigy, D-Adaptation)."""

    searches: ClassVar[Searched] = None
    steps: Count = Field(50, description="training steps")
    eta: Positive = Field(
        1.0, description="d0, a first estimate of how far the optimum is; it only grows"
    )
    gradient_bound: NonNegative = Field(
        0.0, description="G, added under the root of the squared gradients"
    )
    step_sizes: Literal["prodigy", "d_adaptation"] = Field(
        "prodigy",
        description="whose they are: Prodigy's, where gradients met at smaller steps count for "
        "less, or D-Adaptation's, where all count alike",
    )


class StepSizeFree(GrowingSteps):
    """Gradient descent on a linear head whose step sizes grow with what the released gradients show
    (Prodigy, D-Adaptation)."""

    name: Literal["dp_prodigy"] = "dp_prodigy"


class StepSizeFreeTuning(Tuning, GrowingSteps):
    """Fine-tuning of the public network, as dp_finetune's, with the step sizes of dp_prodigy: they
    grow with what the released gradients show, and there is no rate to search."""

    name: Literal["prodigy_finetune"] = "prodigy_finetune"


Learner = Annotated[
    Descent
    | Adam
    | AdamNoSecondMoment
    | FineTune
    | LeastSquares
    | Newton
    | FeatureCovariance
    | HyperparameterFree
    | HyperparameterFreeTuning
    | ZerothOrder
    | OneStep
    | Prototypes
    | StepSizeFree
    | StepSizeFreeTuning,
    Field(discriminator="name"),
]


def names(section: Any) -> tuple[str, ...]:
    """The learners that a section is for."""
    return get_args(section.model_fields["name"].annotation)


OWN_SECTIONS: tuple[Any, ...] = get_args(get_args(Learner)[0])
OTHERS = others(LEARNERS)
"""Those of other packages."""
SECTIONS = (*OWN_SECTIONS, *(other.section for other in OTHERS.values()))
if not TYPE_CHECKING:  # nobody who checks types can know those of others
    Learner = Annotated[Union[SECTIONS], Field(discriminator="name")]  # noqa: UP007
DEFAULT = "dp_gd"
# linear heads: a public sample can guide their descents, and what they know is taught to students
HEADS = ("dp_gd", "dp_adam", "dp_adam_wosm", "dp_prodigy")


def learner_of(values: Mapping[str, Any]) -> Learner:
    """A learner's section from plain values."""
    learner: Learner = restored(Learner, values)
    return learner


def shares_releases(learner: Any) -> bool:
    """Whether trainings stand on a release that is paid for beside them."""
    return any(
        getattr(learner, name, None) is not None for name in ("covariance", "statistics", "head")
    )


# rooms of learn/ that hold more than the one learner of their name
SHARED = dict.fromkeys(("dp_gd", "dp_adam", "dp_adam_wosm"), "heads")


def room_of(learner: str) -> str:
    """The package that a learner lies in."""
    if learner in OTHERS:
        return OTHERS[learner].room
    return f"dpladder.learn.{SHARED.get(learner, learner)}"


def section_of(learner: str) -> Any:
    """The section that a learner reads."""
    return next(section for section in SECTIONS if learner in names(section))


def starts_public(learner: Any) -> bool:
    """Whether a descent starts from a head that was trained on the public sample."""
    return getattr(learner, "init", None) == "public" or guided(learner)


def starts_bought(learner: Any) -> bool:
    """Whether a training of the network starts from a private head that was released before."""
    return getattr(learner, "head", None) is not None


def guided(learner: Any) -> bool:
    """Whether the gradients of the public sample join a descent's own."""
    return getattr(learner, "public", "none") == "gradient"


def guidable(learner: Any) -> bool:
    """Whether they could unasked: of a linear head that starts from zero, through a softmax, also
    where a network then goes on from it."""
    heads = learner.name in HEADS or starts_bought(learner)
    descends = heads and isinstance(learner, Descending)
    return descends and (learner.init, learner.link) == ("zero", "softmax")


def starts_known(learner: Any) -> bool:
    """Whether a descent starts at zero, or at the public network: its distance from there is worth
    telling."""
    drawn = learner.name == "dp_mlp" or getattr(learner, "trains", None) == "lora"
    zero = isinstance(learner, Descending | Tuning) and learner.init == "zero"
    return zero and not (drawn or guided(learner) or starts_bought(learner))


def _trains(c: Any) -> Messages:
    learner = c.learner
    if isinstance(learner, Tuning) and c.features.until is None and learner.trains != "head":
        yield (
            "what is trained lies above features.until: name the last layer that stays frozen "
            "there, or set trains: head"
        )


def _augment(c: Any) -> Messages:
    if getattr(c.learner, "augment", 1) > 1 and c.features.takes != "images":
        yield (
            "views are crops of images on their way into a network, and with features.model: "
            f"{c.features.model} there are none; set it to 1, or give images and a network"
        )


def _init(c: Any) -> Messages:
    init = getattr(c.learner, "init", "zero")
    if not guided(c.learner) and init == "public":
        yield from _public_head(c)
    if guided(c.learner) and init == "random":
        yield ("with learner.public: gradient training starts from the public head: leave it out")


def _public(c: Any) -> Messages:
    if guided(c.learner):
        yield from _public_head(c)


def _loss_noise(c: Any) -> Messages:
    laplace = getattr(c.learner, "loss_noise", "gaussian") == "laplace"
    if laplace and c.learner.sampling_rate < 1 and c.privacy.relation != "add_remove":
        yield (
            f"laplace losses on Poisson samples have no known cost under {c.privacy.relation}: use "
            "gaussian, or sampling_rate 1"
        )


def _head(c: Any) -> Messages:
    if not starts_bought(c.learner):
        return
    if c.task == "language_model":
        yield "a language model has no head: leave it out"
    elif c.features.until is None or c.learner.trains == "head":
        yield (
            "trainings of the network start from it: name features.until, and learner.trains of "
            "it, or leave it out"
        )
    if c.learner.init != "zero":
        yield f"training starts from one head: leave it out, or learner.init: {c.learner.init}"


def _public_head(c: Any) -> Messages:
    if c.dataset.public_sample is None:
        yield "it needs dataset.public_sample, whose labelled records train the head"
    if getattr(c.learner, "link", "softmax") != "softmax":
        yield "that head is trained by softmax: set learner.link: softmax, or leave it out"
    if c.learner.name == "dp_mlp" or c.task == "language_model":
        whose = "dp_mlp" if c.learner.name == "dp_mlp" else "a language model"
        yield f"{whose} has no head of its own to start from; leave it out"


RULES: Table = {
    "learner.trains": _trains,
    "learner.augment": _augment,
    "learner.init": _init,
    "learner.public": _public,
    "learner.head": _head,
    "learner.loss_noise": _loss_noise,
}
