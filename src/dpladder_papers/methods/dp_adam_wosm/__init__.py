"""DP-Adam without a second moment (Mohapatra et al.)."""

from dpladder.config.method import LearnerMethod, later
from dpladder_papers.methods.dp_adam_wosm.section import AdamNoSecondMoment

METHOD = LearnerMethod(
    section=AdamNoSecondMoment,
    queries=later("dpladder_papers.methods.dp_adam_wosm.queries:queries"),
    train=later("dpladder_papers.methods.dp_adam_wosm.train:train"),
    logit_noise=later("dpladder_papers.methods.dp_adam_wosm.queries:logit_noise"),
)
