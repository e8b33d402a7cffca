"""The model card: what the model is for, what is guaranteed about its training data, how it was
tuned and measured.

The words stand in card.md.jinja. Its figures are those of the statement and the summary, which were
paid for; what only people know is left for them to write.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpladder.config.evaluate_sections import score_name
from dpladder.config.features_sections import FOLDER, HUGGING_FACE, LAST
from dpladder.learn.measures.figures import FIGURES, OF_FINDINGS
from dpladder.learn.measures.tested import ClassTested, Tested
from dpladder.network.facts import INPUT
from dpladder.privacy.accounting.rounding import (
    NoisedFigure,
    markdown_cell,
    percent,
    round_nearest,
    round_up,
    round_up_short,
)
from dpladder.privacy.statement.templates import fill
from dpladder.report.model_chapter import baseline_as_good, largest
from dpladder.report.summary import read_test
from dpladder.use.generate import FREE
from dpladder.use.model import Model

TASKS = {
    "features": "tabular-classification",
    "images": "image-classification",
    "texts": "text-classification",
}
SPEAKING = "text-generation"
# an example of input, in Python, and the packages that an exported folder imports
NEEDS = {
    "features": ("[[0.5, 1.25]]", "torch and safetensors"),
    "images": ('["picture.jpg"]', "torch, timm, safetensors and Pillow"),
    "texts": ('["a text"]', "torch, transformers and safetensors"),
}


def card(model: Model, with_header: bool) -> str:
    """Markdown, in which what others say passes through markdown_cell."""
    return fill("use/card.md.jinja", card_facts(model) | {"header": with_header})


def card_facts(model: Model) -> dict[str, Any]:
    """All that the template may name: each figure as it is shown, stated ones rounded up."""
    config, features, depths = model.facts["config"], model.features, model.map.depths
    example, needs = NEEDS.get(features.takes, ("", ""))
    several_depths = not model.speaks and depths is not None and depths.names != (LAST,)
    return {
        "task": SPEAKING if model.speaks else TASKS[features.takes],
        "speaks": model.speaks,
        "lineage": config["dataset.lineage"],
        "hub_name": _hub_name(model),
        "network": None if features.model == "none" else markdown_cell(_public_network(model)),
        "whole": features.until == INPUT,
        "cut_at": features.until,
        "depths": ", ".join(depths.names) if depths and several_depths else None,
        "equal_lengths": depths is not None and depths.length_of_each is not None,
        "findings": model.findings,
        "classes": len(model.classes),
        "class_names": ", ".join(map(markdown_cell, model.classes)),
        "classes_of_record": config.get("dataset.labels", 1),
        "example": example,
        "needs": needs,
        "pooled": model.pooled,
        "takes_texts": features.takes == "texts",
        "unit": config["dataset.unit"].get("called") or config["dataset.unit"]["by"],
        "relation": config["privacy.relation"],
        "target_epsilon": round_up_short(model.facts["target_epsilon"]),
        "delta": round_up_short(config["privacy.delta"]),
        "stated": None if model.privacy is None else _stated(model.privacy),
        "learner": config["learner"]["name"],
        "steps": model.facts.get("steps"),
        "tested": _tested(model),
        "free_writing": FREE,
    }


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


def _stated(privacy: Mapping[str, Any]) -> dict[str, Any]:
    """What the statement says of the model. A config that came after other releases may follow from
    them: then the figure with them is the model's (contract 15)."""
    facts = {"guarantee": privacy["statement"], "notes": privacy["told"], "release": False}
    share = privacy["search_share"]
    facts["search_share"] = None if share is None else round_nearest(100 * share, 0)
    if privacy["mode"] != "release":
        return facts
    earlier, chosen = privacy["with_earlier"], privacy["chosen"]
    return facts | {
        "release": True,
        "epsilon": round_up(privacy["epsilon"]),
        "with_earlier": round_up(earlier["epsilon"]) if earlier else None,
        "chosen": None if chosen is None else round_up(chosen),
        "joint_epsilon": round_up(privacy["joint_epsilon"]),
        "delta": round_up_short(privacy["delta"]),
    }


def _tested(model: Model) -> dict[str, Any] | None:
    """What evaluate released beside the weights, as the template shows it; None where it released
    nothing. Counts are noised already, so rates and their spreads are post-processing."""
    path = model.path.resolve().with_name("metrics.json")
    if not path.is_file():
        return None
    tested = read_test(path)
    if (one := tested.perplexity) is not None:
        return {
            "perplexity": round_nearest(one.value, 2),
            "perplexity_low": round_nearest(one.low, 2),
            "perplexity_high": round_nearest(one.high, 2),
        }
    config = model.facts["config"]
    one_of_classes = not model.findings and config.get("dataset.labels", 1) == 1
    rival = baseline_as_good(
        tested,
        len(model.classes) if one_of_classes else None,
        largest(config.get("dataset.majority"), config.get("dataset.rare"), len(model.classes)),
    )
    return {
        "perplexity": None,
        "score": score_name(tested.brier, perplexity=False, accuracy="Accuracy"),
        "brier": tested.brier,
        "score_of_groups": score_name(model.findings, perplexity=False, accuracy="accuracy"),
        "noised": tested.noised,
        "accuracy": percent(tested.accuracy),
        "spread": percent(tested.spread),
        "spread_is_over": tested.spread_is_over,
        "rival": rival and rival[0],
        "rival_accuracy": rival and percent(rival[1]),
        "figures": [
            {
                "heading": figure.heading[0].upper() + figure.heading[1:],
                "value": round_nearest(measured.value),
                "sd": round_nearest(measured.sd) if measured.sd else None,
            }
            for figure in FIGURES
            if (measured := tested.figures.get(figure.name)) is not None
        ],
        "classes": None if tested.classes is None else [*map(_accuracy_row, tested.classes)],
        **_finding_rows(tested),
        "groups": None
        if tested.groups is None
        else [_accuracy_row(one) | {"trained": one.trained} for one in tested.groups],
        "worst": tested.worst and markdown_cell(tested.worst.name),
        "worst_accuracy": tested.worst and percent(tested.worst.value),
    }


def _accuracy_row(one: ClassTested) -> dict[str, Any]:
    """A class or group as a row of a table: its share that is right, with its spread."""
    return {
        "name": markdown_cell(one.name),
        "accuracy": None if one.accuracy is None else percent(one.accuracy),
        "spread": None if one.spread is None else percent(one.spread),
    }


def _finding_rows(tested: Tested) -> dict[str, Any]:
    """Each finding's figures, each with the deviation of its noise. A figure that the test did not
    buy has no column."""
    if tested.findings is None:
        return {"finding_headings": [], "findings": None}
    bought = {name for one in tested.findings for name in one.figures}
    figures = [figure for figure in OF_FINDINGS if figure.name in bought]

    def figure_text(figure: NoisedFigure | None) -> str | None:
        if figure is None:
            return None
        noise = f" ± {round_nearest(figure.sd)}" if figure.sd else ""
        return f"{round_nearest(figure.value)}{noise}"

    rows = [
        {
            "name": markdown_cell(one.name),
            "figures": [figure_text(one.figures[figure.name]) for figure in figures],
        }
        for one in tested.findings
    ]
    return {"finding_headings": [figure.heading for figure in figures], "findings": rows}
