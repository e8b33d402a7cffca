"""What the config says of a model in words, for people who look at its results: public all of
it.

Nothing here is priced, and no ledger is read. The report shows it beside each model, so it must
name no path of the operator's and nothing that only the data says.
"""

from __future__ import annotations

from pathlib import Path

from dpladder.config import Config, Project
from dpladder.config.depths import in_words
from dpladder.config.features_sections import FOLDER, HUGGING_FACE
from dpladder.config.label_sets import MANY
from dpladder.config.load import BASE
from dpladder.config.sources import SOURCES, kind_of

MOST_NAMES = 20  # of classes that are listed


def about(project: Project) -> dict[str, dict[str, str]]:
    """What each experiment with models of its own is about. Of repeats only the first is told, and
    of a grid the first cell, because a table compares the others.

    Args:
        project: all experiments, resolved, so that a choice stands in the config as it was made.

    Returns:
        By experiment, what is said of it in words, by what it is about.
    """
    beside = {name for name in project.grid if name != BASE}
    firsts = {name: project.experiments[name] for name in project.repeats if name not in beside}
    return {name: _describe_experiment(config) for name, config in firsts.items()}


def _describe_experiment(config: Config) -> dict[str, str]:
    return {
        "what it does": _task(config),
        "public network": _network(config),
        "learner": config.learner.name,
        "private data": _data(config),
    }


def _task(config: Config) -> str:
    """What the model tells of a record. Of many classes MOST_NAMES are listed."""
    classes = config.dataset.classes
    if config.task == "language_model":
        return "writes texts"
    if config.dataset.target is not None:
        column, (least, largest) = config.dataset.target.column, config.dataset.target.range
        return f"predicts {column or 'a number'}, from {least:,g} to {largest:,g}"
    does = (
        "tells {} findings, each by itself"
        if config.dataset.labels == MANY
        else "tells {} classes apart"
    )
    if isinstance(classes, tuple):
        some = ", ".join(classes[:MOST_NAMES]) + (", ..." if len(classes) > MOST_NAMES else "")
        return f"{does.format(len(classes))}: {some}"
    kind = kind_of(config.dataset.source)
    known = classes or (kind and kind.classes)
    count = len(known) if isinstance(known, tuple) else known
    return does.format(count) if count else "tells classes apart"


def _network(config: Config) -> str:
    """Where a checkpoint or a network lies in the operator's file system is nobody's business."""
    features = config.features
    if features.model == "none":
        return "none: the records are features"
    size = "" if features.image_size is None else f" at {features.image_size} pixels"
    until = features.until
    depth = f", depths: {depths_of(config)}" if until is None else f", trained above {until}"
    return f"{model_as_text(features.model)}{size}, weights: {Path(features.weights).name}{depth}"


def model_as_text(model: str) -> str:
    """A network by its name alone: where its files lie on the operator's machine is private.

    Args:
        model: `features.model`. Names of hubs stay whole; of a local folder the last part is left.
    """
    if model.startswith((f"{HUGGING_FACE}.", f"{HUGGING_FACE}~", f"{HUGGING_FACE}/")):
        return Path(model.removeprefix(HUGGING_FACE)).name
    return Path(model.removeprefix(FOLDER)).name if model.startswith(FOLDER) else model


def depths_of(config: Config) -> str:
    """Which depths of a network features are of, as far as it is known before they are made.

    Where a public sample's labels choose the depths, nobody knows them before they are tried.
    """
    features = config.features
    by_sample = features.layers == "auto" and features.centre == "public"
    reason = " or others, whichever the labels of dataset.public_sample are for"
    return in_words(features) + (reason if by_sample and config.dataset.labels == 1 else "")


def _data(config: Config) -> str:
    """Whose records are protected: a private file goes by its kind, for its name is the
    operator's."""
    dataset = config.dataset
    kind = SOURCES[dataset.source.partition(":")[0]]
    source = kind.called if kind.is_private_file else dataset.source
    pooled = ", each as one record, the mean of theirs" if dataset.unit.pooled else ""
    return (
        f"{source}; {dataset.nominal_size:,} {dataset.unit.word}s declared for training{pooled}; "
        f"lineage {dataset.lineage}"
    )
