"""The final model's file: the weights, and all that is public and needed to use them elsewhere.

Everything in the file is a release or public, for the file is published as it is: `dpladder
predict`, exports and cards read nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpladder.config.task_rules import TASK_OF_POOLING
from dpladder.data.columns import column_as_json
from dpladder.data.layout import renamed_columns
from dpladder.jobs.seen import SeenPart
from dpladder.jobs.task import Task
from dpladder.learn import weights
from dpladder.learn.interface import Weights
from dpladder.learn.trainings import weights_of
from dpladder.plan.reads import SearchPrivately, TrainFinal, TrainStudent

# Of what a feature cache says of itself, the part that comes from the config and from a public
# network.
NETWORK = (
    *("model", "weights", "image_size", "largest_image", "tokens", "pooling", "depths", "until"),
    *("normalize", "dtype", "batch_size", "width", "shape", "weights_sha256", "tokenizer_sha256"),
    *("transform", "forward_batch", "arithmetic", "timm", "torch", "transformers"),
)


def save_model(
    path: Path,
    trained: Weights,
    task: Task[TrainFinal | SearchPrivately | TrainStudent],
    train: SeenPart,
    choice: Mapping[str, Any],
) -> None:
    """Write a final model, with all that is public and needed to use it elsewhere.

    What its statement says is not known yet; it lies in results/privacy.json.

    Args:
        path: of the file.
        trained: released weights.
        task: the job, whose config is written beside them.
        train: the part that it was trained on: the public facts of its features alone.
        choice: how the model was trained.

    A training's `choice` holds its rate, steps and kappa, which are public or released with the
    weights.
    """
    facts = {
        "experiment": task.experiment,
        "target_epsilon": task.reads.target,
        "statement": task.reads.question_id,
        "config": task.public_cfg,
        "inference": _inference(task, train),
    }
    learner = task.reads.learner
    names = weights_of(learner).tensors(learner, train.constants)
    weights.save(path, trained, {**choice, **facts}, train.map.mean, names)


def _inference(
    task: Task[TrainFinal | SearchPrivately | TrainStudent], train: SeenPart
) -> dict[str, Any]:
    """What somebody needs to put a new record through the same map: the task, classes, columns,
    network and centring. Of the cache's attributes only those in NETWORK are copied, none of which
    counts or names a record."""
    # vouched for before COMMIT: the seal that the query names covers what the cache says
    attrs, names, target = train.part.attrs, task.reads.classes, task.reads.predicts
    network = {name: attrs[name] for name in NETWORK if name in attrs}
    if target is not None:
        names = (target.column or "number",)
    kind = "classification" if target is None else "regression"
    return {
        "task": TASK_OF_POOLING.get(str(network.get("pooling")), kind),
        "classes": list(names)
        if isinstance(names, tuple)
        else [*map(str, range(train.part.classes))],
        **({} if target is None else {"range": target.range}),
        "columns": [column_as_json(column) for column in task.reads.columns],
        "named": dict(renamed_columns(task.reads)),
        "network": network,
        "map": train.map.facts,
    }
