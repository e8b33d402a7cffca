"""A model as a folder that needs no dpladder: tensors, a plain torch module, and a model card.

A network for texts lies in it as transformers keeps networks, with what was trained in its tensors
and its tokenizer beside them. A classifier's lies in the folder `network`, where `model.py` finds
it. A language model is such a folder itself.
"""

from __future__ import annotations

import inspect
import json
import logging
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dpladder.config.extras import require_package
from dpladder.config.features_sections import FOLDER, HUB, LAST
from dpladder.data import rgb
from dpladder.errors import BadInput
from dpladder.network.language import pad_tokens, transformers_tokenizer
from dpladder.network.public import BUNDLED, model_of, remote_config
from dpladder.privacy import arrays
from dpladder.report.curves_figure import draw_effects
from dpladder.use import graph, raw_rows, standalone
from dpladder.use.card import card, score_files
from dpladder.use.generate import load_language_model
from dpladder.use.model import Model

if TYPE_CHECKING:
    from torch import Tensor, nn

SHARED = (arrays, raw_rows, rgb)  # modules whose source stands in what is exported
Form = Literal["torch", "huggingface", "onnx"]
ONE_FILE = (
    2**30
    # bytes of tensors that one graph's file holds; of a larger one they lie beside it, in
    # model.onnx.data
)


def export(model: Model, folder: Path, form: Form) -> None:
    """Write a model into a folder that runs without dpladder.

    Args:
        model: the released model.
        folder: a new one.
        form: the plain folder; for Hugging Face the same, whose card begins with what its site
            reads; for ONNX, with the whole as one graph.

    Raises:
        BadInput: the folder is not empty. For ONNX, a package is missing, or torch cannot write the
            network as one graph.
    """
    if form == "onnx":
        require_package("onnxscript", "onnx", "export --to onnx")  # what torch writes graphs with
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} is there already. Name a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(card(model, form == "huggingface"), "utf-8")
    if form == "huggingface" and (scores := score_files(model)):
        (folder / ".eval_results").mkdir()
        for name, text in scores.items():
            (folder / ".eval_results" / f"{name}.yaml").write_text(text, "utf-8")
    (_write_language_model if model.speaks else _write_classifier)(model, folder, form)
    for written in folder.rglob("*.safetensors"):  # which safetensors closes to others
        shutil.copymode(folder / "README.md", written)


def _write_classifier(model: Model, folder: Path, form: Form) -> None:
    """Write tensors, config.json and model.py; for ONNX the graph beside them."""
    from safetensors.torch import save_file

    state = _head(model)
    if model.features.takes == "texts":
        network, _ = model.public_language_model()
        network.load_state_dict({**network.state_dict(), **_merged_weights(model)})
        tokenizer = transformers_tokenizer(model.features.model)
        pad_tokens(tokenizer, model.features.tokens)
        _save(network, tokenizer, folder / "network")
    else:
        tensors = _network(model)
        state |= {f"network.{name}": tensor.contiguous() for name, tensor in tensors.items()}
        if (config_of_network := remote_config(model.features.model)) is not None:
            (folder / "network").mkdir()
            (folder / "network" / "config.json").write_bytes(config_of_network)
    (folder / "config.json").write_text(json.dumps(_config(model), indent=2) + "\n", "utf-8")
    save_file(state, folder / "model.safetensors")
    _write_module(standalone.__file__, folder / "model.py")
    if model.effects is not None:
        lineage = model.facts["config"]["dataset.lineage"]
        draw_effects(model.effects.effects(), lineage, folder / "curves.svg")
        model.curves().to_csv(folder / "curves.csv", index=False)
    if form == "onnx":
        _write_graph_of_classifier(folder)


def _write_module(source: str, path: Path) -> None:
    """A module that needs no dpladder: what it imports from there is written into it."""
    text = Path(source).read_text("utf-8")
    for module in SHARED:
        _, _, shared = inspect.getsource(module).partition("import annotations\n\n")
        line = rf"^from {re.escape(module.__name__)} import .*\n"
        text = shared.join(re.split(line, text, flags=re.MULTILINE))
    path.write_text(text, "utf-8")


def _write_language_model(model: Model, folder: Path, form: Form) -> None:
    """Write a folder as transformers keeps language models; for ONNX the graph beside it."""
    network, _ = load_language_model(model)
    network.config.use_cache = True  # of what came before, while it writes
    _save(network, transformers_tokenizer(model.features.model), folder)
    if form == "onnx":
        network.config.use_cache = False
        _write_graph_of_language_model(network, folder)


def _save(network: Any, tokenizer: Any, folder: Path) -> None:
    """As transformers keeps them."""
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _write_graph_of_classifier(folder: Path) -> None:
    """Write a classifier as one graph, model.onnx.

    It takes `inputs` of any number, as `read` of model.py makes them, or rows of features. Of texts
    it takes `input_ids` and `attention_mask`. It gives `logits` of each record. Where people are
    what it was trained on, it gives those of the one person whose records they are.

    graph.py beside it prepares records without torch, where it can do what timm does with images.
    """
    import torch
    from PIL import Image

    classifier = standalone.load(folder)
    traced = _person_module(classifier) if classifier.config["pooled"] else classifier
    takes, config = classifier.config["takes"], classifier.config
    if takes == "images":
        config = config | {"pixels": _pixels(classifier.transform)}
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")
    if takes != "images" or config["pixels"] is not None:
        _write_module(graph.__file__, folder / "graph.py")
    if takes == "texts":
        length: int = classifier.config["tokens"]
        ids = torch.zeros(2, length, dtype=torch.long)
        _write_graph(traced, {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, folder)
        return
    blank = torch.zeros(classifier.config["width"])
    if takes == "images":
        blank = classifier.transform(Image.new("RGB", (256, 256)))
    _write_graph(traced, {"inputs": torch.stack([blank, blank])}, folder)


def _person_module(classifier: standalone.Classifier) -> nn.Module:
    """The classifier as a module that takes all that it is given for one person's."""
    from torch import nn

    class Person(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.classifier = classifier

        def forward(self, *inputs: Tensor) -> Tensor:
            return self.classifier.person(*inputs)

    return Person()


def _pixels(transform: Any) -> dict[str, Any] | None:
    """What timm does with an image, as graph.py does it; None where that is anything else."""
    steps = transform.transforms
    names = [type(step).__name__ for step in steps]
    if names != ["Resize", "CenterCrop", "MaybeToTensor", "Normalize"]:
        return None
    resize, crop, _, scale = steps
    if not isinstance(resize.size, int) or min(crop.size) > resize.size:
        return None
    settings = {"resize": resize.size, "filter": resize.interpolation.value, "crop": [*crop.size]}
    return settings | {"mean": scale.mean.tolist(), "std": scale.std.tolist()}


def _write_graph_of_language_model(network: Any, folder: Path) -> None:
    """Write a language model as one graph, model.onnx. It gives `logits` of what follows each token
    of texts, of any number and length, filled up on the right."""
    import torch
    from torch import nn

    class Logits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, *inputs: Tensor) -> Tensor:
            result: Tensor = self.network(input_ids=inputs[0], attention_mask=inputs[1]).logits
            return result

    ids = torch.zeros(2, 8, dtype=torch.long)
    _write_graph(
        Logits(), {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, folder, lengths=True
    )


def _write_graph(
    module: nn.Module, inputs: dict[str, Tensor], folder: Path, lengths: bool = False
) -> None:
    """Write a module as model.onnx.

    Args:
        module: what is traced.
        inputs: two records each, by the names that the graph will have for them.
        folder: of the export.
        lengths: whether the second axis may be of any length too.

    Raises:
        BadInput: torch cannot write it for any number of records.
    """
    import torch

    axes = {0: torch.export.Dim("records"), **({1: torch.export.Dim("tokens")} if lengths else {})}
    size = sum(tensor.nbytes for tensor in module.state_dict().values())
    path = folder / "model.onnx"
    # it warns of each constant that it cannot compute beforehand, such as a mask of any length: the
    # graph then computes it, and is right
    logging.getLogger("onnxscript.optimizer._constant_folding").setLevel(logging.ERROR)
    try:
        written = torch.onnx.export(
            module.eval(),
            tuple(inputs.values()),
            input_names=[*inputs],
            output_names=["logits"],
            dynamo=True,
            dynamic_shapes={"inputs": tuple(axes for _ in inputs)},
            verbose=False,
        )
        assert written is not None, "what was traced is told"
        for node in written.model.graph.all_nodes():
            node.metadata_props.clear()  # where on this machine the code lies that was traced
        written.save(path, external_data=size > ONE_FILE)
        shapes = [[*(graph_input.shape or ())] for graph_input in written.model.graph.inputs]
        whole = not any(isinstance(shape[axis], int) for shape in shapes for axis in axes)
    except torch.onnx.OnnxExporterError:
        whole = False
    if not whole:  # torch may quietly write a graph for as many records as it was shown
        path.unlink(missing_ok=True)
        raise BadInput(
            f"torch cannot write this network as one graph for any number of records. {folder} "
            "holds everything else, as --to torch writes it."
        )


def _architecture(name: str) -> str:
    """As timm knows it, or the folder `network` of the export."""
    return "local-dir:network" if name.startswith((HUB, FOLDER)) else BUNDLED.get(name, name)


def _config(model: Model) -> dict[str, Any]:
    """What model.py has to know beside the tensors: how records become features, and which classes
    there are."""
    features, network = model.features, model.network
    images, depths = features.takes == "images", model.map.depths
    layers = [LAST] if depths is None else [*depths.names]
    widths = [network["width"]] if depths is None else [end - start for start, end in depths.spans]
    return {
        "takes": features.takes,
        "architecture": _architecture(features.model) if images else None,
        "image_size": features.image_size,
        "tokens": features.tokens,
        "pooling": features.pooling,
        "batch": network.get("forward_batch"),
        "until": features.until,
        "classes": list(model.classes),
        "findings": model.findings,
        "range": model.range,
        "pooled": model.pooled,
        "bias": model.bias,
        "width": sum(widths),
        "columns": [*model.facts["inference"].get("columns", ())],
        "layers": layers,
        "widths": widths,
        "each": depths.length_of_each if depths is not None else None,
        "normalize": features.normalize,
        "dtype": features.dtype,
        "centred": model.map.mean is not None,
        **{name: value for name, value in model.map.facts.items() if name != "depths"},
    }


def _head(model: Model) -> dict[str, Tensor]:
    """The mean that is taken away, and the layers of the head."""
    import torch

    mean = torch.zeros(model.map.centred_width(model.network["width"]), dtype=torch.float64)
    if model.map.mean is not None:
        mean = torch.from_numpy(model.map.mean.copy())
    # behind the network's own
    layers = model.weights if model.tuned is None else model.weights[-1:]
    head = {f"head.{place}": torch.from_numpy(layer.copy()) for place, layer in enumerate(layers)}
    return {"mean": mean, **head}


def _network(model: Model) -> dict[str, Tensor]:
    """The network's tensors, those that were trained as they were left."""
    if model.features.model == "none":
        return {}
    network = model_of(model.features)
    if model.features.image_size and hasattr(network, "set_input_size"):
        network.set_input_size(img_size=model.features.image_size)
    state: dict[str, Tensor] = network.state_dict()
    return {**state, **_merged_weights(model)}


def _merged_weights(model: Model) -> dict[str, Tensor]:
    """The tensors that were trained, under the public network's names; none where only a head was.
    Adapters are worked into the network's own matrices, so that no code of ours is needed to use
    them."""
    if model.tuned is None:
        return {}
    from dpladder.learn.finetune.parts import merged_tensors

    return merged_tensors(*model.tuned, model.weights)
