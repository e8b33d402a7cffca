"""DP-Adam on a linear head (Mehta et al.)."""

from dpladder.config.method import LearnerMethod, later
from dpladder_papers.methods.dp_adam.section import Adam

METHOD = LearnerMethod(
    section=Adam,
    queries=later("dpladder_papers.methods.dp_adam.queries:queries"),
    train=later("dpladder_papers.methods.dp_adam.train:train"),
    logit_noise=later("dpladder_papers.methods.dp_adam.queries:logit_noise"),
)
