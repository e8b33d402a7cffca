"""A noised mean of each class."""

from dpladder.config.method import LearnerMethod, later
from dpladder_papers.methods.dp_prototypes.section import Prototypes

METHOD = LearnerMethod(
    section=Prototypes,
    queries=later("dpladder_papers.methods.dp_prototypes.queries:queries"),
    train=later("dpladder_papers.methods.dp_prototypes.train:train"),
)
