"""Descent preconditioned by the noised covariance (Mehta et al.)."""

from dpladder.config.method import LearnerMethod, later
from dpladder_papers.methods.dp_fc.section import FeatureCovariance

METHOD = LearnerMethod(
    section=FeatureCovariance,
    queries=later("dpladder_papers.methods.dp_fc.queries:queries"),
    train=later("dpladder_papers.methods.dp_fc.train:train"),
    logit_noise=later("dpladder_papers.methods.dp_fc.queries:logit_noise"),
)
