"""Newton steps of logistic regression (Mehta et al.)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from dpladder.config.learner_sections import LearnerSection, LinkName, Radius, Searched
from dpladder.config.method import LearnerMethod, later
from dpladder.section import Count


class Newton(LearnerSection):
    """DP-Newton: noised gradients and Hessians of logistic regression, class by class (Mehta et
    al.). The ladder's r is 1/lambda, in the range that sweep.search gives r."""

    searches: ClassVar[Searched] = "ridge"
    name: Literal["dp_newton"] = "dp_newton"
    radius: Radius = 1.0
    steps: Count = Field(10, description="Number of Newton steps.")
    link: LinkName = Field(
        "softmax",
        description="From logits to the loss. softmax: over the classes, with its tight "
        "sensitivities. sigmoid: one for each class, as published, whose biases start "
        "at -log(m - 1).",
    )


METHOD = LearnerMethod(
    section=Newton,
    queries=later("dpladder_papers.methods.dp_newton.train:queries"),
    train=later("dpladder_papers.methods.dp_newton.train:train"),
    logit_noise=later("dpladder_papers.methods.dp_newton.train:logit_noise"),
    # fitted to digits, mixture and mnist5k-112
    prior={True: (0.07, 1.72), False: (0.15, 2.64)},
)
