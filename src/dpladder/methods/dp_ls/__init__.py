"""Ridge regression from noised second moments (Mehta et al.)."""

from dpladder.config.method import LearnerMethod, later
from dpladder.methods.dp_ls.section import LeastSquares

METHOD = LearnerMethod(
    section=LeastSquares,
    queries=later("dpladder.methods.dp_ls.queries:queries"),
    train=later("dpladder.methods.dp_ls.train:train"),
    logit_noise=later("dpladder.methods.dp_ls.queries:logit_noise"),
)
