"""A differentially private classifier by itself: torch, numpy and safetensors are all that it
needs, with timm and Pillow for images, or transformers for texts.

    import model
    classifier = model.load(".")
    classifier.classify(["cat.jpg", "dog.jpg"])  # a probability for each class

It was trained and exported by dpladder; README.md says what is guaranteed about the people in its
training data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dpladder.data.rgb import FORMATS, to_rgb
from dpladder.privacy.arrays import curves_width, map_rows, to_length, with_curves
from dpladder.use.raw_rows import rows_of, table_in


class Classifier(nn.Module):
    """A classifier of rows of features: the map that they went through, and the head that was
    trained with noise.

    Attributes:
        config: of config.json.
        network: the public one; nothing where records are features.
        transform: from an image to what the network takes; None elsewhere.
        mean: that features lose.
        head: matrices, with ReLU between them. A column more than a matrix's inputs is a bias.
    """

    mean: Tensor

    def __init__(
        self, config: dict[str, Any], shapes: Sequence[tuple[int, ...]], folder: Path
    ) -> None:
        super().__init__()
        self.config = config
        self.network: nn.Module = nn.Identity()
        self.transform: Any = None
        self.seen: dict[str, Tensor] = {}  # what depths of the network put out in a pass
        self._build(folder)
        if config["until"] not in (None, "input"):
            self.network.get_submodule(config["until"]).register_forward_hook(self._round_as_stored)
        width = config["width"] + curves_width(config.get("curves", ()))
        self.register_buffer("mean", torch.zeros(width, dtype=torch.float64))
        self.head = nn.ParameterList([nn.Parameter(torch.zeros(shape)) for shape in shapes])

    def _build(self, folder: Path) -> None:
        """The public network, where there is one."""

    def forward(self, *inputs: Tensor) -> Tensor:
        """Logits of what `read` makes of records: float64 (records, classes)."""
        x = self.features(*inputs).double()
        return self._add_bias(x if self.config["until"] else self._mapped(self._round_features(x)))

    def _add_bias(self, x: Tensor) -> Tensor:
        """Logits by the head, layer upon layer, and what training added to each."""
        for depth, layer in enumerate(self.head):
            x = x.relu() if depth else x
            width = x.shape[-1]
            product = x @ layer[:, :width].double().T
            x = product + layer[:, width].double() if layer.shape[1] > width else product
        return x + self.config["bias"]

    def features(self, *inputs: Tensor) -> Tensor:
        """What the network makes of records: (records, width)."""
        values: Tensor = self.network(*inputs)
        return values

    def _round_as_stored(self, layer: nn.Module, inputs: Any, output: Any) -> Any:
        """What lies above this layer was trained on its outputs at this precision."""
        if isinstance(output, tuple):
            return (self._round_as_stored(layer, inputs, output[0]), *output[1:])
        return output.to(getattr(torch, self.config["dtype"])).to(output.dtype)

    def _round_features(self, x: Tensor) -> Tensor:
        """Features were kept at this precision when the head was trained."""
        if self.config["normalize"]:
            x = self._scale_depths(x, 1.0)
        return x.to(getattr(torch, self.config["dtype"])).double()

    def _scale_depths(self, x: Tensor, length: float) -> Tensor:
        """Each depth of the network at one length."""
        parts = torch.split(x, self.config["widths"], dim=-1)
        return torch.cat([to_length(part, length, torch) for part in parts], dim=-1)

    def _mapped(self, x: Tensor) -> Tensor:
        """Features as the head met them in training: at one length, less the mean, with a constant
        feature in its place."""
        config = self.config
        if config["each"] is not None:
            x = self._scale_depths(x, config["each"])
        x = with_curves(x, config.get("curves", ()), torch)
        mean = self.mean if config["centred"] else None
        keys = ("radius", "exact", "length", "constant")
        x = map_rows(x, mean, **{key: config[key] for key in keys}, xp=torch)
        return x.float().double()

    @torch.inference_mode()
    def classify(self, records: Sequence[Any] | str) -> list[dict[str, float]]:
        """The probability of each class, by its name, for each record; or the number that the model
        predicts, by its name.

        Args:
            records: images, by their paths or opened by Pillow; texts; or rows of numbers, of a
                table raw rows, or the path of its CSV.

        Returns:
            A mapping for each record. Findings are told each by itself, so theirs need not add up
            to 1.
        """
        return self._odds(self.logits(records))

    @torch.inference_mode()
    def together(self, records: Sequence[Any]) -> dict[str, float]:
        """The probability of each class for one person, by all of their records, where people are
        what it was trained on.

        Args:
            records: as `classify` takes them. Leave out what cannot be read.
        """
        return self._odds(self.person(*self.read(records)))[0]

    def person(self, *inputs: Tensor) -> Tensor:
        """Logits of the mean of the features of all that is given, as a row."""
        features = self._round_features(self.features(*inputs).double())
        mean = features.mean(dim=0, keepdim=True).to(getattr(torch, self.config["dtype"]))
        return self._add_bias(self._mapped(mean.double()))

    def _odds(self, logits: Tensor) -> list[dict[str, float]]:
        if self.config["range"] is not None:
            least, largest = self.config["range"]
            places = ((1.0 + logits[:, 0]) / 2.0).clamp(0.0, 1.0)
            numbers = (least + places * (largest - least)).tolist()
            return [{self.config["classes"][0]: number} for number in numbers]
        probabilities = logits.sigmoid() if self.config["findings"] else logits.softmax(dim=-1)
        return [
            dict(zip(self.config["classes"], map(float, row), strict=True)) for row in probabilities
        ]

    def logits(self, records: Sequence[Any] | str) -> Tensor:
        """Logits of records as `classify` takes them: float64 (records, classes)."""
        return self(*self.read(records))

    def read(self, records: Sequence[Any] | str) -> tuple[Tensor, ...]:
        """Records as `forward` takes them: of a table, raw rows, or the path of its CSV."""
        of_file = isinstance(records, str | Path)
        if of_file:
            records = table_in(records)  # type: ignore[arg-type]
        if of_file or self.config["columns"]:
            return (torch.tensor(rows_of(self.config["columns"], records), dtype=torch.float64),)
        return (torch.stack([torch.as_tensor(record) for record in records]),)


class Images(Classifier):
    """On the features of a network of timm's."""

    def _build(self, folder: Path) -> None:
        import timm
        import timm.data

        size: int | None = self.config["image_size"]
        name = self.config["architecture"].replace("local-dir:", f"local-dir:{folder}/")
        self.network = timm.create_model(name, num_classes=0)
        resize: Any = getattr(self.network, "set_input_size", None)
        if size and resize is not None:
            resize(img_size=size)
        options = {"input_size": (3, size, size)} if size else {}
        settings = timm.data.resolve_data_config(options, model=self.network)
        self.transform = timm.data.create_transform(**settings, is_training=False)
        for name in self.config["layers"]:
            if name != "last":
                self.network.get_submodule(name).register_forward_hook(self._keep_stage(name))

    def _keep_stage(self, name: str) -> Callable[..., None]:
        """Keeps what a stage puts out: its mean over places, or over the tokens that stand for
        one."""
        places = (1, 2) if getattr(self.network, "output_fmt", "NCHW") == "NHWC" else (2, 3)
        first = int(getattr(self.network, "num_prefix_tokens", 0) or 0)

        def see(layer: nn.Module, inputs: Any, output: Tensor) -> None:
            self.seen[name] = output.mean(places) if output.ndim == 4 else output[:, first:].mean(1)

        return see

    def features(self, *inputs: Tensor) -> Tensor:
        """What the network makes of images: each depth, side by side, or what lies above the
        cut."""
        if self.config["until"]:
            return super().features(*inputs)
        last = self.network(*inputs).flatten(1)
        stages = {**self.seen, "last": last}
        self.seen.clear()
        return torch.cat([stages[name] for name in self.config["layers"]], dim=1)

    def read(self, records: Sequence[Any]) -> tuple[Tensor, ...]:
        """Images as the network takes them: (records, 3, height, width)."""
        return (torch.stack([self._pixels(image) for image in records]),)

    def _pixels(self, image: Any) -> Tensor:
        from PIL import Image

        opened = Image.open(image, formats=FORMATS) if isinstance(image, str | Path) else image
        pixels: Tensor = self.transform(to_rgb(opened))
        return pixels


class Texts(Classifier):
    """On the features of a network of transformers', which lies in the folder `network` as
    transformers keeps it."""

    def _build(self, folder: Path) -> None:
        from tokenizers import Tokenizer
        from transformers import AutoModel

        place = folder / "network"
        self.network = AutoModel.from_pretrained(
            place, attn_implementation="eager", dtype=torch.float32
        )
        vars(self.network.config)["use_cache"] = False
        # cuts and fills up by itself
        self.tokenizer = Tokenizer.from_file(str(place / "tokenizer.json"))

    def features(self, *inputs: Tensor) -> Tensor:
        """What the network makes of tokens: each depth, side by side, or what lies above the
        cut."""
        tokens, mask = inputs
        arguments = {"input_ids": tokens, "attention_mask": mask}
        if self.config["until"]:
            return POOLS[self.config["pooling"]](self.network(**arguments).last_hidden_state, mask)
        output = self.network(**arguments, output_hidden_states=True)
        parts = [
            POOLS[self.config["pooling"]](output.last_hidden_state, mask)
            if name == "last"
            else _mean(output.hidden_states[_place_of(name)], mask)
            for name in self.config["layers"]
        ]
        return torch.cat(parts, dim=1)

    def read(self, records: Sequence[str]) -> tuple[Tensor, ...]:
        """Tokens of texts, and which of them are no padding: (records, tokens) both."""
        encodings = self.tokenizer.encode_batch([*records])
        for place, text in enumerate(encodings):
            each = zip(text.special_tokens_mask, text.attention_mask, strict=True)
            if all(special or not seen for special, seen in each):
                raise ValueError(f"text {place} holds no token that this model knows")
        return torch.tensor([text.ids for text in encodings]), torch.tensor(
            [text.attention_mask for text in encodings]
        )

    def logits(self, records: Sequence[str]) -> Tensor:
        """In batches of one shape, as the features were made that the head was trained on: rounding
        may depend on it."""
        size = self.config["batch"]
        batches = [torch.zeros(0, len(self.config["classes"]), dtype=torch.float64)]
        for start in range(0, len(records), size):
            batch = [*records[start : start + size]]
            filled = batch + batch[:1] * (size - len(batch))
            batches.append(self(*self.read(filled))[: len(batch)])
        return torch.cat(batches)


def _place_of(depth: str) -> int:
    """The place of a depth among hidden states, which begin with the embeddings."""
    return 0 if depth == "embeddings" else int(depth.removeprefix("layer."))


def _mean(last: Tensor, mask: Tensor) -> Tensor:
    counted = mask[..., None].to(last.dtype)
    return (last * counted).sum(dim=1) / counted.sum(dim=1)


def _first_token(last: Tensor, mask: Tensor) -> Tensor:
    return last[:, 0]


def _last(last: Tensor, mask: Tensor) -> Tensor:
    ends = mask.sum(dim=1)[:, None, None] - 1
    return last.gather(1, ends.expand(-1, -1, last.shape[-1])).squeeze(dim=1)


POOLS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mean": _mean,
    "cls": _first_token,
    "last": _last,
}
KINDS: Mapping[str, type[Classifier]] = {"features": Classifier, "images": Images, "texts": Texts}


def load(folder: str | Path) -> Classifier:
    """The classifier of a folder with config.json and model.safetensors, ready to classify."""
    from safetensors.torch import load_file

    place = Path(folder)
    config = json.loads((place / "config.json").read_text("utf-8"))
    state = load_file(place / "model.safetensors")
    depth = sum(name.startswith("head.") for name in state)
    shapes = [tuple(state[f"head.{layer}"].shape) for layer in range(depth)]
    classifier = KINDS[config["takes"]](config, shapes, place)
    if config["takes"] == "texts":  # transformers has loaded its network already
        state = {
            **{
                f"network.{name}": tensor
                for name, tensor in classifier.network.state_dict().items()
            },
            **state,
        }
    classifier.load_state_dict(state)
    return classifier.eval()
