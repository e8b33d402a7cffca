"""One step of DP-Adam (Mehta et al.)."""

from dpladder.config.method import Method, later
from dpladder.methods.one_step.section import OneStep

METHOD = Method(
    section=OneStep,
    queries=later("dpladder.methods.one_step.queries:queries"),
    train=later("dpladder.methods.one_step.train:train"),
)
