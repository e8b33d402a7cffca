"""Step sizes that grow with what gradients show, on a linear head."""

from dpladder.config.method import LearnerMethod, later
from dpladder_papers.methods.dp_prodigy.section import StepSizeFree

METHOD = LearnerMethod(
    section=StepSizeFree,
    queries=later("dpladder_papers.methods.dp_prodigy.queries:queries"),
    train=later("dpladder_papers.methods.dp_prodigy.train:train"),
)
