"""Newton steps of logistic regression (Mehta et al.)."""

from dpladder.config.method import LearnerMethod, later
from dpladder_papers.methods.dp_newton.section import Newton

METHOD = LearnerMethod(
    section=Newton,
    queries=later("dpladder_papers.methods.dp_newton.queries:queries"),
    train=later("dpladder_papers.methods.dp_newton.train:train"),
    logit_noise=later("dpladder_papers.methods.dp_newton.queries:logit_noise"),
)
