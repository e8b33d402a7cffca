"""The model card: what the model is for, what is guaranteed about its training data, how it was tuned and measured.

Its figures are those of the statement and the summary, which were paid for; what only people know is left for them to write.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dpladder.privacy.accounting.shown import up
from dpladder.use.model import Model

TASKS = {
    "features": "tabular-classification",
    "images": "image-classification",
    "texts": "text-classification",
}
TO_WRITE = "*To be written by those who publish this model.*"


def card(model: Model, with_header: bool) -> str:
    lines = [*(_header(model) if with_header else ()), *_body(model)]
    return "\n".join(lines) + "\n"


def _header(model: Model) -> Iterator[str]:
    yield from (
        "---",
        f"pipeline_tag: {TASKS[model.features.takes]}",
        "tags: [differential-privacy, dpladder]",
        "---",
        "",
    )


def _body(model: Model) -> Iterator[str]:
    lineage = model.facts["config"]["dataset.lineage"]
    yield from (f"# A differentially private classifier: {lineage}", "")
    yield f"It tells {len(model.classes)} classes apart: {', '.join(model.classes)}."
    if model.features.model != "none":
        what = "a head on the features of"
        if model.features.until:
            what = f"trained, above its layer {model.features.until}, from the public weights of"
        yield f"It is {what} {model.features.model}, a network that is taken to have seen none of the private data."
    yield from ("", "## Intended use", "", TO_WRITE, "")
    yield from ("## Use", "", "```python", "import model", 'classifier = model.load(".")')
    yield from ('classifier.classify(["picture.jpg"])', "```", "")
    yield from (
        "It needs torch, timm, safetensors and Pillow. Predictions are those of `dpladder predict`, to rounding.",
        "",
    )
    yield from ("## Privacy", "", *_privacy(model), "")
    yield from ("## How it was tuned", "", *_tuning(model), "")
    yield from ("## How good it is", "", *_measured(model), "")
    yield from (
        "## Limits",
        "",
        "It knows no other classes than these. Noise costs accuracy most where a class is rare.",
        TO_WRITE,
    )


def _privacy(model: Model) -> Iterator[str]:
    config, stated = model.facts["config"], model.privacy
    unit, relation = config["dataset.unit"]["by"], config["privacy.relation"]
    yield f"Protected: each {unit} of the training data. Neighbouring data sets: {relation}."
    if stated is None:
        yield (
            f"It was trained towards epsilon = {model.facts['target_epsilon']:g} at delta = {config['privacy.delta']:g}. No "
            "statement lay beside it when it was exported: the guarantee is what the run's results/privacy.md says."
        )
        return
    yield stated["statement"]
    if stated["mode"] == "release":
        yield _figure(stated)


def _figure(stated: Mapping[str, Any]) -> str:
    """A config that came after other releases may follow from them: then the figure with them is the model's."""
    alone, earlier, joint = (up(stated["epsilon"]), stated["with_earlier"], up(stated["joint_epsilon"]))
    own = f"its own training and search compose to epsilon = {alone}"
    if earlier:
        own = (
            f"with the releases before it, from which its config may follow, epsilon = {up(earlier['epsilon'])} ({alone} only "
            "if it owes nothing to them)"
        )
    return (
        f"Of this model: {own}, at delta = {stated['delta']:g}, for someone who sees nothing else. Everything that was "
        f"published with it: epsilon = {joint}. The run's results/privacy.md says what this rests on."
    )


def _tuning(model: Model) -> Iterator[str]:
    facts, stated = model.facts, model.privacy
    steps = f", {facts['steps']} steps" if "steps" in facts else ""
    yield f"Learner {facts['config']['learner']['name']}{steps}. What its search spent is part of the figure above."
    if stated is not None and stated["search_share"] is not None:
        yield f"The search took {stated['search_share']:.0%} of the budget, in mu squared."


def _measured(model: Model) -> Iterator[str]:
    found = _metrics(model)
    if found is None:
        yield TO_WRITE
        return
    how = (
        f"noised, standard deviation {found['accuracy_sd']:.2%}"
        if found["noised"]
        else "on data declared public"
    )
    if found.get("perplexity") is not None:
        one = found["perplexity"]
        yield f"Perplexity on held-out data: {one['value']:.2f}, between {one['low']:.2f} and {one['high']:.2f} by its noise."
        return
    yield f"Accuracy on held-out data: {found['accuracy']:.1%} ({how})."
    for name, words in (("balanced", "Balanced accuracy"), ("auc", "AUC")):
        if found.get(name) is not None:
            value, sd = found[name]["value"], found[name]["sd"]
            yield f"{words}: {value:.3f}" + (f", standard deviation of its noise {sd:.3f}." if sd else ".")
    if found.get("classes") is not None:
        yield from ("", "| class | accuracy | standard deviation of its noise |", "|---|---|---|")
        yield from (
            f"| {one['name']} | {_told(one['accuracy'])} | {_told(one['accuracy_sd'])} |"
            for one in found["classes"]
        )


def _told(share: float | None) -> str:
    return "hidden by noise" if share is None else f"{share:.1%}"


def _metrics(model: Model) -> Mapping[str, Any] | None:
    """What evaluate released beside the weights."""
    path = model.path.with_name("metrics.json")
    return json.loads(path.read_text("utf-8")) if path.is_file() else None
