"""Steps by noised differences of losses (Tang et al.)."""

from dpladder.config.method import LearnerMethod, later
from dpladder_papers.methods.dp_zo.section import ZerothOrder

METHOD = LearnerMethod(
    section=ZerothOrder,
    queries=later("dpladder_papers.methods.dp_zo.queries:queries"),
    train=later("dpladder_papers.methods.dp_zo.train:train"),
    logit_noise=later("dpladder_papers.methods.dp_zo.queries:logit_noise"),
)
