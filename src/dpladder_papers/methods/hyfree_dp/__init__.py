"""Step sizes from noised losses, on a linear head (Bu & Liu)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dpladder.config.learner_sections import Bias, LearnerSection, Linked, SamplingRate
from dpladder.config.method import LearnerMethod, later
from dpladder.section import Count, NonNegative, Positive

Steering = Literal["guarded", "published"]


class LossesLookedAt(LearnerSection):
    """HyFreeDP: step sizes from privatised losses, automatic clipping (Bu & Liu)."""

    findings: ClassVar[bool] = True
    steps: Count = 50
    """Number of training steps."""
    eta: Positive = 1.0
    """The first learning rate. Private losses move it."""
    link: Linked = "softmax"
    every: Count = 5
    """K, the steps from one look at the losses to the next."""
    gamma: Annotated[float, Field(gt=1, allow_inf_nan=False)] = 1.01
    """Noise on gradients, as a multiple of what it would be without losses to pay for."""
    points: Literal[3, 5] = 3
    """Losses at each look: here, and one or two steps either way."""
    loss_noise: Literal["gaussian", "laplace"] = "gaussian"
    """Law of the losses' noise. laplace is charged as its Gaussian bound on full batches. On
    samples it is charged exactly, under privacy.relation: add_remove alone."""
    optimizer: Literal["sgd", "momentum", "adamw"] = "sgd"
    """What makes a direction of the noised gradients. Losses are looked at along it."""
    weight_decay: NonNegative = 0.0
    """Weight decay, decoupled as AdamW's."""
    steering: Steering = "guarded"
    """How rate and bound follow noised losses. guarded: the rate moves twofold at most, and only
    where losses differ by more than their noise; the bound is twice their mean. published: the rate
    goes to each parabola's bottom, and the bound is the last noised loss."""
    sampling_rate: SamplingRate = 1.0
    bias: Bias = False

    @property
    def sampling(self) -> float:
        return self.sampling_rate

    @property
    def constant_feature(self) -> bool:
        return self.bias

    @property
    def exact_under(self) -> tuple[str, ...]:
        """Laplace losses of samples have an exact price only where neighbours lack a record."""
        laplace_samples = self.loss_noise == "laplace" and self.sampling_rate < 1
        return ("add_remove",) if laplace_samples else super().exact_under


class HyperparameterFree(LossesLookedAt):
    """HyFreeDP on a linear head: step sizes from privatised losses, automatic clipping (Bu &
    Liu)."""

    name: Literal["hyfree_dp"] = "hyfree_dp"


METHOD = LearnerMethod(
    section=HyperparameterFree,
    queries=later("dpladder_papers.methods.hyfree_dp.train:queries"),
    train=later("dpladder_papers.methods.hyfree_dp.train:train"),
)
