"""The same descent with one hidden layer."""

from dpladder.config.method import LearnerMethod, later
from dpladder_papers.methods.dp_mlp.section import HiddenLayer

METHOD = LearnerMethod(
    section=HiddenLayer,
    queries=later("dpladder_papers.methods.dp_mlp.queries:queries"),
    train=later("dpladder_papers.methods.dp_mlp.train:train"),
    logit_noise=later("dpladder_papers.methods.dp_mlp.queries:logit_noise"),
)
