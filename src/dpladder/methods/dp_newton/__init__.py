"""Newton steps of logistic regression (Mehta et al.)."""

from dpladder.config.method import Method, later
from dpladder.methods.dp_newton.section import Newton

METHOD = Method(
    section=Newton,
    queries=later("dpladder.methods.dp_newton.queries:queries"),
    train=later("dpladder.methods.dp_newton.train:train"),
    logit_noise=later("dpladder.methods.dp_newton.queries:logit_noise"),
)
