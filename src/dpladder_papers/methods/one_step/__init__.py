"""One step of DP-Adam (Mehta et al.)."""

from dpladder.config.method import LearnerMethod, later
from dpladder_papers.methods.one_step.section import OneStep

METHOD = LearnerMethod(
    section=OneStep,
    queries=later("dpladder_papers.methods.one_step.queries:queries"),
    train=later("dpladder_papers.methods.one_step.train:train"),
)
