"""Fine-tuning by step sizes that grow with what gradients show."""

from dpladder.config.method import LearnerMethod, later
from dpladder_papers.methods.prodigy_finetune.section import StepSizeFreeTuning

METHOD = LearnerMethod(
    section=StepSizeFreeTuning,
    queries=later("dpladder_papers.methods.prodigy_finetune.queries:queries"),
    train=later("dpladder_papers.methods.prodigy_finetune.train:train"),
    weights="dpladder.learn.finetune.predict",
)
