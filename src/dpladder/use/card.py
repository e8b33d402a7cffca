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
from dpladder.privacy.accounting.rounding import (
    NoisedFigure,
    markdown_cell,
    round_nearest,
    round_up,
    round_up_short,
)
from dpladder.report.model_chapter import baseline_as_good, largest
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
    yield from (_describe_language_model if model.speaks else _classifies)(model, lineage)
    yield from ("", "## Intended use", "", TO_WRITE, "")
    yield from ("## Use", "", "```python", *_describe_use(model), "")
    yield from ("## Privacy", "", *_privacy(model), "")
    yield from ("## How it was tuned", "", *_tuning(model), "")
    yield from ("## How good it is", "", *_measured_lines(model), "")
    limits = (
        "It knows no other classes than these. Noise costs accuracy most where a class is rare."
    )
    yield from ("## Limits", "", FREE if model.speaks else limits, TO_WRITE)


def _describe_language_model(model: Model, lineage: str) -> Iterator[str]:
    yield from (f"# A differentially private language model: {lineage}", "")
    yield (
        "It writes texts like those that it was trained on, from the public weights of "
        f"{markdown_cell(_public_network(model))}, a network that is taken to have seen none of "
        "the private data."
    )


def _classifies(model: Model, lineage: str) -> Iterator[str]:
    yield from (f"# A differentially private classifier: {lineage}", "")
    names = ", ".join(map(markdown_cell, model.classes))
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
            f"It is {what} {markdown_cell(_public_network(model))}, a network that is taken to "
            "have seen none of the private data."
        )
        depths = model.map.depths
        if depths is not None and depths.names != (LAST,):
            also = ", each scaled to one length" if depths.length_of_each is not None else ""
            yield f"Features are of these depths of it: {', '.join(depths.names)}{also}."


def _describe_use(model: Model) -> Iterator[str]:
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
    input_words, needs = NEEDS[model.features.takes]
    yield from (
        "import model",
        'classifier = model.load(".")',
        f"classifier.classify({input_words})",
        "```",
        "",
    )
    yield f"It needs {needs}. Predictions are those of `dpladder predict`, to rounding."
    if model.pooled:
        yield (
            "It was trained on people, each with the mean of the features of their records: "
            f"`classifier.together({input_words})` tells of one person by all of theirs, and so do "
            f'`graph.together(".", {input_words})` and the graph itself, where model.onnx lies '
            f"here."
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
            f"It was trained towards epsilon = {round_up_short(model.facts['target_epsilon'])} at "
            f"delta = {round_up_short(config['privacy.delta'])}. No statement lay beside it when "
            "it was exported: the guarantee is what the run's results/privacy.md says."
        )
        return
    yield stated["statement"]
    if stated["mode"] == "release":
        yield _figure(stated)
    yield from stated["told"]


def _figure(stated: Mapping[str, Any]) -> str:
    """A config that came after other releases may follow from them: then the figure with them is
    the model's."""
    alone = round_up(stated["epsilon"])
    earlier = stated["with_earlier"]
    joint = round_up(stated["joint_epsilon"])
    own_cost = f"its own training and search compose to epsilon = {alone}"
    if earlier:
        own_cost = (
            "with the releases before it, from which its config may follow, epsilon = "
            f"{round_up(earlier['epsilon'])} ({alone} only if it was chosen without looking at "
            f"them)"
        )
    chosen = stated["chosen"]
    among = (
        ""
        if chosen is None
        else f" If it was chosen among several of its lineage: epsilon = {round_up(chosen)}."
    )
    return (
        f"Of this model: {own_cost}, at delta = {round_up_short(stated['delta'])}, for someone who "
        f"sees nothing else.{among} Everything ever published of its lineage: epsilon = {joint}. "
        "The run's results/privacy.md says what this rests on."
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
            f"The search took {round_nearest(100 * stated['search_share'], 0)}% of the budget, in "
            "mu squared."
        )


def _measured_lines(model: Model) -> Iterator[str]:
    tested = _metrics(model)
    if tested is None:
        yield TO_WRITE
        return
    if (one := tested.perplexity) is not None:
        yield (
            f"Perplexity on held-out data: {round_nearest(one.value, 2)}, between "
            f"{round_nearest(one.low, 2)} and {round_nearest(one.high, 2)} by its noise."
        )
        return
    whose = "held-out data" if tested.noised else "data declared public"
    what = "One less the Brier score" if tested.brier else "Accuracy"
    yield (
        f"{what} on {whose}: {percent(tested.accuracy)} ± {percent(tested.spread)}, one standard "
        f"deviation over {tested.spread_is_over}."
    )
    config = model.facts["config"]
    most = config.get("dataset.labels", 1)
    rival = baseline_as_good(
        tested,
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
            if tested.brier
            else "It is the share of known findings that are told right, at a probability of 1/2."
        )
    elif most > 1:
        yield (
            f"A record may be of {most} classes at most, and a prediction is right that names one "
            "of them."
        )
    for figure in FIGURES:
        if (figure_found := tested.figures.get(figure.name)) is not None:
            noise = (
                f", standard deviation of its noise {round_nearest(figure_found.sd)}"
                if figure_found.sd
                else ""
            )
            heading = figure.heading[0].upper() + figure.heading[1:]
            yield f"{heading}: {round_nearest(figure_found.value)}{noise}."
    if tested.classes is not None:
        yield from ("", "| class | accuracy | ± 1 sd, noise and sampling |", "|---|---|---|")
        yield from (
            f"| {markdown_cell(one.name)} | {_percent_or_hidden(one.accuracy)} | "
            f"{_percent_or_hidden(one.spread)} |"
            for one in tested.classes
        )
    if tested.findings is not None:
        yield from _finding_lines(tested)
    if tested.groups is not None:
        yield from _group_lines(tested)


def _finding_lines(tested: Tested) -> Iterator[str]:
    """Each figure with the deviation of its noise."""
    bought = {name for one in tested.findings or () for name in one.figures}
    figures_bought = [figure for figure in OF_FINDINGS if figure.name in bought]
    yield ""
    yield f"| finding | {' | '.join(figure.heading for figure in figures_bought)} |"
    yield "|---" * (len(figures_bought) + 1) + "|"
    for one in tested.findings or ():
        figures = (_value_with_noise(one.figures[figure.name]) for figure in figures_bought)
        yield f"| {markdown_cell(one.name)} | {' | '.join(figures)} |"


def _value_with_noise(figure: NoisedFigure | None) -> str:
    noise = f" ± {round_nearest(figure.sd)}" if figure and figure.sd else ""
    return "hidden by noise" if figure is None else f"{round_nearest(figure.value)}{noise}"


def _group_lines(tested: Tested) -> Iterator[str]:
    """Of the groups that were trained on, and of others, where they were counted apart."""
    if tested.worst is not None:
        yield (
            f"Worst group, as noise shows it: {markdown_cell(tested.worst.name)}, "
            f"{percent(tested.worst.value)}."
        )
    yield from (
        "",
        "| group | trained on | accuracy | ± 1 sd, noise and sampling |",
        "|---|---|---|---|",
    )
    yield from (
        f"| {markdown_cell(one.name)} | {'yes' if one.trained else 'no'} | "
        f"{_percent_or_hidden(one.accuracy)} | {_percent_or_hidden(one.spread)} |"
        for one in tested.groups or ()
    )


def _percent_or_hidden(share: float | None) -> str:
    return "hidden by noise" if share is None else percent(share)


def _metrics(model: Model) -> Tested | None:
    """What evaluate released beside the weights."""
    path = model.path.with_name("metrics.json")
    return read_test(path) if path.is_file() else None
