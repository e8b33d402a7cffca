"""The model card: what the model is for, what is guaranteed about its training data, how it was
tuned and measured.

The words stand in card.md.jinja. Its figures are those of the statement and the summary, which were
paid for; what only people know is left for them to write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from dpladder.config.evaluate_sections import score_name
from dpladder.config.features_sections import FOLDER, HUGGING_FACE, LAST
from dpladder.config.level_texts import number_as_text
from dpladder.data.columns import levels_of, name_of, restored_columns
from dpladder.learn.measures.figures import FIGURES, OF_FINDINGS, MeasuredFigure
from dpladder.learn.measures.tested import ClassTested, Tested, with_interval
from dpladder.network.facts import INPUT
from dpladder.privacy.accounting.rounding import NoisedFigure, markdown_cell, percent, round_nearest
from dpladder.privacy.statement.templates import fill
from dpladder.report.model_chapter import baseline_as_good, largest
from dpladder.report.summary import read_summary, read_test
from dpladder.use.generate import FREE_TO_PUBLISH
from dpladder.use.model import Model

TASKS = {
    "features": "tabular-classification",
    "images": "image-classification",
    "texts": "text-classification",
}
SPEAKING = "text-generation"
MOST_SHOWN = 20  # columns of an example
OF_NUMBERS = {"features": "tabular-regression"}  # the Hub has no word for others
# an example of input, in Python, and the packages that an exported folder imports; of features as
# many as the model takes
NEEDS = {
    "features": ("", ("torch", "safetensors", "numpy")),
    "images": ('["picture.jpg"]', ("torch", "timm", "safetensors", "numpy", "Pillow")),
    "texts": ('["a text"]', ("torch", "transformers", "safetensors", "numpy")),
}


def card(model: Model, with_header: bool) -> str:
    """Markdown. What others say passes through `markdown_cell`, here or in the template."""
    config, features, depths = model.facts["config"], model.features, model.map.depths
    example, needs = NEEDS.get(features.takes, ("", ()))
    example = example or _example_row(model)
    scores = _scores(model)
    several_depths = not model.speaks and depths is not None and depths.names != (LAST,)
    facts = {
        "model": model,
        "privacy": model.privacy,
        "header": with_header,
        "metrics": ", ".join(_values_and_notes(scores)),
        "task": SPEAKING
        if model.speaks
        else TASKS[features.takes]
        if model.range is None
        else OF_NUMBERS.get(features.takes, "other"),
        "lineage": config["dataset.lineage"],
        "hub_name": _hub_name(model),
        "network": None if features.model == "none" else markdown_cell(_public_network(model)),
        "whole": features.until == INPUT,
        "depths": ", ".join(depths.names) if depths and several_depths else None,
        "equal_lengths": depths is not None and depths.length_of_each is not None,
        "classes": len(model.classes),
        **dict(zip(("least", "largest"), map(number_as_text, model.range or ()), strict=False)),
        "class_names": ", ".join(map(markdown_cell, model.classes)),
        "classes_of_record": config.get("dataset.labels", 1),
        "monotone": ", ".join(
            f"{markdown_cell(name)} {way}" for name, way in config.get("monotone", {}).items()
        ),
        "example": example,
        "needs": ", ".join(needs),
        "unit": config["dataset.unit"].get("called") or config["dataset.unit"]["by"],
        "relation": config["privacy.relation"],
        "delta": config["privacy.delta"],
        "learner": config["learner"]["name"],
        "steps": model.facts.get("steps"),
        "free_writing": FREE_TO_PUBLISH,
    }
    return fill("use/card.md.jinja", facts | scores)


def _example_row(model: Model) -> str:
    """A row of a table by the names of its columns, or as many numbers, in Python."""
    columns = restored_columns(model.facts["inference"].get("columns", ()))
    if not columns:
        return f"[[0.5] * {model.network['width']}]"
    if len(columns) > MOST_SHOWN:
        return '"table.csv"'
    cells = {}
    for column in columns:
        low, high = getattr(column, "range", None) or (0.0, 1.0)
        cells[name_of(column)] = next(iter(levels_of(column)), (low + high) / 2)
    return f"[{cells}]"


def _hub_name(model: Model) -> str | None:
    """What Hugging Face's site calls the public network, where it has it: not a folder, nor a
    bundled one. The card's header links there."""
    name = model.features.model.removeprefix(HUGGING_FACE)
    known = (
        name != model.features.model
        and name.count("/") == 1
        and not name.startswith((".", "~", "/"))
    )
    return name if known and not Path(name).is_dir() else None


def _public_network(model: Model) -> str:
    """The public network by its name. Where it was a folder, by the folder's own, for where that
    lay is nobody's business."""
    name = model.features.model
    if name.startswith(HUGGING_FACE) and _hub_name(model) is None:
        return Path(name.removeprefix(HUGGING_FACE)).name
    return Path(name.removeprefix(FOLDER)).name if name.startswith(FOLDER) else name


def score_files(model: Model) -> dict[str, str]:
    """Each score that evaluate released as Hugging Face's site reads it: a YAML file in
    `.eval_results`, whose notes have its interval. The data set is the lineage by its name.

    Returns:
        Texts by the name of the score; none where the model was not tested.
    """
    lineage = model.facts["config"]["dataset.lineage"]
    return {
        name: yaml.safe_dump(
            [{"dataset": {"id": lineage, "task_id": name}, "value": value} | notes],
            sort_keys=False,
            allow_unicode=True,
        )
        for name, (value, notes) in _values_and_notes(_scores(model)).items()
    }


def _values_and_notes(scores: dict[str, Any]) -> dict[str, tuple[float, dict[str, str]]]:
    """Each score of a test by its name in files, rounded as the card shows it, and its interval in
    words."""
    tested: Tested | None = scores["tested"]
    if tested is None:
        return {}
    name = "one_minus_brier" if tested.brier else "accuracy"
    headline = tested.headline.figure
    known = {"perplexity" if tested.perplexity else name: headline} if not tested.range else {}
    known |= tested.figures
    over = "noise" if tested.perplexity else tested.spread_is_over
    values = {}
    for name, measured in known.items():
        if measured is not None:
            low, high = map(round_nearest, measured.interval)
            notes = {"notes": f"95 % interval {low} to {high}, over {over}"}
            values[name] = (float(round_nearest(measured.value)), notes)
    return values


def test_beside(model: Model) -> Tested | None:
    """What the test beside the weights released; None where there was none."""
    path = model.path.resolve().with_name("metrics.json")
    if not path.is_file():
        return None
    summary = path.parents[2] / "summary.json"  # of the experiment; it alone knows a number's unit
    models = read_summary(summary).models if summary.is_file() else ()
    return replace(read_test(path), unit=next((one.test.unit for one in models), ""))


def _scores(model: Model) -> dict[str, Any]:
    """What evaluate released beside the weights, and what a reader has to know beside it; of
    `tested` None where it released nothing. Counts are noised already, so rates and their spreads
    are post-processing."""
    config, tested = model.facts["config"], test_beside(model)
    if tested is None:
        return {"tested": None}
    one_of_classes = not model.findings and config.get("dataset.labels", 1) == 1
    rival = baseline_as_good(
        tested,
        len(model.classes) if one_of_classes else None,
        largest(config.get("dataset.majority"), config.get("dataset.rare"), len(model.classes)),
    )
    # a figure that the test did not buy has no column
    bought = {name for one in tested.findings or () for name in one.figures}
    of_findings = [figure for figure in OF_FINDINGS if figure.name in bought]
    acts = tested.threshold
    threshold = [] if acts is None else [("Threshold of a decision", percent(acts))]
    return {
        "tested": tested,
        "score": score_name(tested.brier, perplexity=False, accuracy="Accuracy"),
        "score_of_groups": score_name(
            model.findings, perplexity=False, accuracy="accuracy", number=model.range is not None
        ),
        "rival": rival and rival[0],
        "rival_share": rival and rival[1],
        "figures": threshold
        + [
            (figure.heading[0].upper() + figure.heading[1:], _in_unit(measured, figure, tested))
            for figure in FIGURES
            if (measured := tested.figures.get(figure.name)) is not None
        ],
        "finding_headings": [figure.heading for figure in of_findings],
        "findings": [
            (one.name, [with_interval(one.figures[it.name], it.style) for it in of_findings])
            for one in tested.findings or ()
        ],
        "score_text": with_interval(tested.score),
        "classes_tested": _rows_of(tested.classes),
        "groups_tested": _rows_of(tested.groups),
        "trained_groups": {one.name for one in tested.groups or () if one.trained},
    }


def _in_unit(measured: NoisedFigure, figure: MeasuredFigure, tested: Tested) -> str:
    """A figure with its interval, and the unit of what is a number's own."""
    unit = tested.unit if figure.style == "number" else ""
    return f"{with_interval(measured, figure.style)} {unit}".rstrip()


def _rows_of(tested: Sequence[ClassTested] | None) -> list[tuple[str, str]] | None:
    """Each class or group by its name, with its score and interval."""
    return None if tested is None else [(one.name, with_interval(one.score)) for one in tested]
