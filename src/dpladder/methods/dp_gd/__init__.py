"""Full-batch gradient descent with momentum on a linear head (Panda et al.)."""

from dpladder.config.method import LearnerMethod, later
from dpladder.methods.dp_gd.section import Descent

METHOD = LearnerMethod(
    section=Descent,
    queries=later("dpladder.methods.dp_gd.queries:queries"),
    train=later("dpladder.methods.dp_gd.train:train"),
    logit_noise=later("dpladder.methods.dp_gd.queries:logit_noise"),
)
