"""The model card: what the model is for, what is guaranteed about its training data, how it was
tuned and measured.

Its figures are those of the statement and the summary, which were paid for; what only people know
is left for them to write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dpladder.config.features_sections import FOLDER, HUGGING_FACE, LAST
from dpladder.learn.measures.figures import FIGURES, OF_FINDINGS
from dpladder.learn.measures.tested import Tested
from dpladder.network.facts import INPUT
from dpladder.privacy.accounting.shown import Shown, in_cell, nearest, up, up_short
from dpladder.report.model_chapter import better_without, largest
from dpladder.report.reading import percent
from dpladder.report.summary import read_test
from dpladder.use.generate import FREE
from dpladder.use.model import Model

TASKS = {
    "features": "tabular-classification",
    "images": "image-classification",
    "texts": "text-classification",
}
SPEAKING = "text-generation"
NEEDS = {
    "features": ("[[0.5, 1.25]]", "torch and safetensors"),
    "images": ('["picture.jpg"]', "torch, timm, safetensors and Pillow"),
    "texts": ('["a text"]', "torch, transformers and safetensors"),
}
TO_WRITE = "*To be written by those who publish this model.*"


def card(model: Model, with_header: bool) -> str:
    lines = [*(_header(model) if with_header else ()), *_body(model)]
    return "\n".join(lines) + "\n"


def _header(model: Model) -> Iterator[str]:
    base = _hub_name(model)
    yield from (
        "---",
        f"pipeline_tag: {SPEAKING if model.speaks else TASKS[model.features.takes]}",
        *(["library_name: transformers"] if model.speaks else []),
        *([] if base is None else [f"base_model: {base}"]),
        "tags: [differential-privacy, dpladder]",
        "---",
        "",
    )


def _hub_name(model: Model) -> str | None:
    """What Hugging Face's site calls the public network, where it has it: not a folder, nor a
    bundled one."""
    name = model.features.model.removeprefix(HUGGING_FACE)
    known = (
        name != model.features.model
        and name.count("/") == 1
        and not name.startswith((".", "~", "/"))
    )
    return name if known and not Path(name).is_dir() else None


def _public_network(model: Model) -> str:
    """By its name; where it was a folder, by the folder's own, for where that lay is nobody's
    business."""
    name = model.features.model
    if name.startswith(HUGGING_FACE) and _hub_name(model) is None:
        return Path(name.removeprefix(HUGGING_FACE)).name
    return Path(name.removeprefix(FOLDER)).name if name.startswith(FOLDER) else name


def _body(model: Model) -> Iterator[str]:
    lineage = model.facts["config"]["dataset.lineage"]
    yield from (_speaks if model.speaks else _classifies)(model, lineage)
    yield from ("", "## Intended use", "", TO_WRITE, "")
    yield from ("## Use", "", "```python", *_use(model), "")
    yield from ("## Privacy", "", *_privacy(model), "")
    yield from ("## How it was tuned", "", *_tuning(model), "")
    yield from ("## How good it is", "", *_measured(model), "")
    limits = (
        "It knows no other classes than these. Noise costs accuracy most where a class is rare."
    )
    yield from ("## Limits", "", FREE if model.speaks else limits, TO_WRITE)


def _speaks(model: Model, lineage: str) -> Iterator[str]:
    yield from (f"# A differentially private language model: {lineage}", "")
    yield (
        "It writes texts like those that it was trained on, from the public weights of "
        f"{in_cell(_public_network(model))}, a network that is taken to have seen none of the "
        "private data."
    )


def _classifies(model: Model, lineage: str) -> Iterator[str]:
    yield from (f"# A differentially private classifier: {lineage}", "")
    names = ", ".join(map(in_cell, model.classes))
    if model.findings:
        yield f"It tells {len(model.classes)} findings, each by itself: {names}."
    else:
        yield f"It tells {len(model.classes)} classes apart: {names}."
    if model.features.model != "none":
        what = "a head on the features of"
        if model.features.until == INPUT:
            what = "trained, from its first layer on, from the public weights of"
        elif model.features.until:
            what = f"trained, above its layer {model.features.until}, from the public weights of"
        yield (
            f"It is {what} {in_cell(_public_network(model))}, a network that is taken to have seen "
            "none of the private data."
        )
        depths = model.map.depths
        if depths is not None and depths.names != (LAST,):
            also = ", each scaled to one length" if depths.each is not None else ""
            yield f"Features are of these depths of it: {', '.join(depths.names)}{also}."


def _use(model: Model) -> Iterator[str]:
    if model.speaks:
        yield from (
            "from transformers import AutoModelForCausalLM, AutoTokenizer",
            "",
            'model, tokenizer = AutoModelForCausalLM.from_pretrained("."), '
            'AutoTokenizer.from_pretrained(".")',
            'found = model.generate(**tokenizer("To be,", return_tensors="pt"), max_new_tokens=40)',
            "print(tokenizer.decode(found[0]))",
            "```",
            "",
            "It needs torch and transformers. Its tensors are those that `dpladder generate` "
            "writes with.",
        )
        return
    given, needs = NEEDS[model.features.takes]
    yield from (
        "import model",
        'classifier = model.load(".")',
        f"classifier.classify({given})",
        "```",
        "",
    )
    yield f"It needs {needs}. Predictions are those of `dpladder predict`, to rounding."
    if model.pooled:
        yield (
            "It was trained on people, each with the mean of the features of their records: "
            f"`classifier.together({given})` tells of one person by all of theirs, and so do "
            f'`graph.together(".", {given})` and the graph itself, where model.onnx lies here.'
        )
    if model.features.takes == "texts":
        yield (
            "The folder `network` is the network alone, as transformers' `AutoModel` and "
            "`AutoTokenizer` load it."
        )


def _privacy(model: Model) -> Iterator[str]:
    config, stated = model.facts["config"], model.privacy
    unit = config["dataset.unit"].get("called") or config["dataset.unit"]["by"]
    relation = config["privacy.relation"]
    yield f"Protected: each {unit} of the training data. Neighbouring data sets: {relation}."
    if stated is None:
        yield (
            f"It was trained towards epsilon = {up_short(model.facts['target_epsilon'])} at delta "
            f"= {up_short(config['privacy.delta'])}. No statement lay beside it when it was "
            "exported: the guarantee is what the run's results/privacy.md says."
        )
        return
    yield stated["statement"]
    if stated["mode"] == "release":
        yield _figure(stated)
    yield from stated["told"]


def _figure(stated: Mapping[str, Any]) -> str:
    """A config that came after other releases may follow from them: then the figure with them is
    the model's."""
    alone = up(stated["epsilon"])
    earlier = stated["with_earlier"]
    joint = up(stated["joint_epsilon"])
    own = f"its own training and search compose to epsilon = {alone}"
    if earlier:
        own = (
            "with the releases before it, from which its config may follow, epsilon = "
            f"{up(earlier['epsilon'])} ({alone} only if it was chosen without looking at them)"
        )
    chosen = stated["chosen"]
    among = (
        ""
        if chosen is None
        else f" If it was chosen among several of its lineage: epsilon = {up(chosen)}."
    )
    return (
        f"Of this model: {own}, at delta = {up_short(stated['delta'])}, for someone who sees "
        f"nothing else.{among} Everything ever published of its lineage: epsilon = {joint}. The "
        "run's results/privacy.md says what this rests on."
    )


def _tuning(model: Model) -> Iterator[str]:
    facts, stated = model.facts, model.privacy
    steps = f", {facts['steps']} steps" if "steps" in facts else ""
    yield (
        f"Learner {facts['config']['learner']['name']}{steps}. What its search spent is part of "
        "the figure above."
    )
    if stated is not None and stated["search_share"] is not None:
        yield (
            f"The search took {nearest(100 * stated['search_share'], 0)}% of the budget, in mu "
            "squared."
        )


def _measured(model: Model) -> Iterator[str]:
    found = _metrics(model)
    if found is None:
        yield TO_WRITE
        return
    if (one := found.perplexity) is not None:
        yield (
            f"Perplexity on held-out data: {nearest(one.value, 2)}, between {nearest(one.low, 2)} "
            f"and {nearest(one.high, 2)} by its noise."
        )
        return
    whose = "held-out data" if found.noised else "data declared public"
    what = "One less the Brier score" if found.brier else "Accuracy"
    yield (
        f"{what} on {whose}: {percent(found.accuracy)} ± {percent(found.spread)}, one standard "
        "deviation over noise and sampling."
    )
    config = model.facts["config"]
    most = config.get("dataset.labels", 1)
    rival = better_without(
        found,
        None if model.findings or most != 1 else len(model.classes),
        largest(config.get("dataset.majority"), config.get("dataset.rare"), len(model.classes)),
    )
    if rival is not None:
        yield (
            f"**Warning.** That is not clearly better than {rival[0]}, which is right for "
            f"{percent(rival[1])}."
        )
    if model.findings:
        yield (
            "The Brier score is the mean over records and their known findings of the squared "
            "difference between probability and truth."
            if found.brier
            else "It is the share of known findings that are told right, at a probability of 1/2."
        )
    elif most > 1:
        yield (
            f"A record may be of {most} classes at most, and a prediction is right that names one "
            "of them."
        )
    for figure in FIGURES:
        if (shown := found.figures.get(figure.name)) is not None:
            noise = f", standard deviation of its noise {nearest(shown.sd)}" if shown.sd else ""
            heading = figure.heading[0].upper() + figure.heading[1:]
            yield f"{heading}: {nearest(shown.value)}{noise}."
    if found.classes is not None:
        yield from ("", "| class | accuracy | ± 1 sd, noise and sampling |", "|---|---|---|")
        yield from (
            f"| {in_cell(one.name)} | {_told(one.accuracy)} | {_told(one.spread)} |"
            for one in found.classes
        )
    if found.findings is not None:
        yield from _by_finding(found)
    if found.groups is not None:
        yield from _by_group(found)


def _by_finding(found: Tested) -> Iterator[str]:
    """Each figure with the deviation of its noise."""
    bought = {name for one in found.findings or () for name in one.figures}
    shown = [figure for figure in OF_FINDINGS if figure.name in bought]
    yield ""
    yield f"| finding | {' | '.join(figure.heading for figure in shown)} |"
    yield "|---" * (len(shown) + 1) + "|"
    for one in found.findings or ():
        figures = (_with_noise(one.figures[figure.name]) for figure in shown)
        yield f"| {in_cell(one.name)} | {' | '.join(figures)} |"


def _with_noise(found: Shown | None) -> str:
    noise = f" ± {nearest(found.sd)}" if found and found.sd else ""
    return "hidden by noise" if found is None else f"{nearest(found.value)}{noise}"


def _by_group(found: Tested) -> Iterator[str]:
    """Of the groups that were trained on, and of others, where they were counted apart."""
    if found.worst is not None:
        yield (
            f"Worst group, as noise shows it: {in_cell(found.worst.name)}, "
            f"{percent(found.worst.value)}."
        )
    yield from (
        "",
        "| group | trained on | accuracy | ± 1 sd, noise and sampling |",
        "|---|---|---|---|",
    )
    yield from (
        f"| {in_cell(one.name)} | {'yes' if one.trained else 'no'} | {_told(one.accuracy)} | "
        f"{_told(one.spread)} |"
        for one in found.groups or ()
    )


def _told(share: float | None) -> str:
    return "hidden by noise" if share is None else percent(share)


def _metrics(model: Model) -> Tested | None:
    """What evaluate released beside the weights."""
    path = model.path.with_name("metrics.json")
    return read_test(path) if path.is_file() else None
