"""Fine-tuning by step sizes from noised losses (Bu & Liu)."""

from dpladder.config.method import LearnerMethod, later
from dpladder_papers.methods.hyfree_finetune.section import HyperparameterFreeTuning

METHOD = LearnerMethod(
    section=HyperparameterFreeTuning,
    queries=later("dpladder_papers.methods.hyfree_finetune.queries:queries"),
    train=later("dpladder_papers.methods.hyfree_finetune.train:train"),
    weights="dpladder.learn.finetune.predict",
)
