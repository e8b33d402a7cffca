"""Fine-tuning of the public network."""

from dpladder.config.method import LearnerMethod, later
from dpladder.methods.dp_finetune.section import FineTune

METHOD = LearnerMethod(
    section=FineTune,
    queries=later("dpladder.methods.dp_finetune.queries:queries"),
    train=later("dpladder.methods.dp_finetune.train:train"),
    logit_noise=later("dpladder.methods.dp_finetune.queries:logit_noise"),
    weights="dpladder.learn.finetune.predict",
)
