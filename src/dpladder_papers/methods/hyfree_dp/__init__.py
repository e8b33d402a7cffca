"""Step sizes from noised losses, on a linear head (Bu & Liu)."""

from dpladder.config.method import LearnerMethod, later
from dpladder_papers.methods.hyfree_dp.section import HyperparameterFree

METHOD = LearnerMethod(
    section=HyperparameterFree,
    queries=later("dpladder_papers.methods.hyfree_dp.queries:queries"),
    train=later("dpladder_papers.methods.hyfree_dp.train:train"),
)
