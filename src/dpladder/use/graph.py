"""model.onnx by itself: onnxruntime and numpy are all that it needs, with Pillow for images, or
tokenizers for texts.

    import graph; graph.classify(".", ["cat.jpg", "dog.jpg"])  # a probability for each class

Or `python graph.py cat.jpg dog.jpg`, of a table `python graph.py table.csv`. Records are prepared
as the trained model saw them: images as config.json lists their steps, texts by the tokenizer in
the folder `network`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.data.rgb import FORMATS, to_rgb
from dpladder.use.raw_rows import rows_of, table_in


def classify(folder: str | Path, records: Sequence[Any]) -> list[dict[str, float]]:
    """The probability of each class, by its name, for each record; or the number that the model
    predicts, by its name.

    Args:
        folder: of the export, with config.json and model.onnx.
        records: images, by their paths or opened by Pillow; texts; or rows of numbers, of a table
            raw rows, or the path of its CSV.

    Returns:
        A mapping for each record. Findings are told each by itself, so theirs need not add up to 1.
    """
    config, probabilities = _open_graph(Path(folder))
    records = _as_rows(config, records)
    # a graph of people takes whatever it is given as one person's
    groups = [[record] for record in records] if config["pooled"] else [records]
    return [row for some in groups for row in probabilities(some)]


def together(folder: str | Path, records: Sequence[Any]) -> dict[str, float]:
    """The probability of each class for one person, by all of their records, where people are what
    it was trained on.

    Args:
        folder: of the export.
        records: as `classify` takes them. Leave out what cannot be read.

    Raises:
        ValueError: the model was trained on records, not on people.
    """
    config, probabilities = _open_graph(Path(folder))
    if not config["pooled"]:
        raise ValueError("this model was trained on records, not on people: use classify")
    return probabilities(_as_rows(config, records))[0]


def _open_graph(
    place: Path,
) -> tuple[dict[str, Any], Callable[[Sequence[Any]], list[dict[str, float]]]]:
    """What config.json says, and what the graph says of records."""
    import onnxruntime

    config = json.loads((place / "config.json").read_text("utf-8"))
    session = onnxruntime.InferenceSession(place / "model.onnx")

    def probabilities(records: Sequence[Any]) -> list[dict[str, float]]:
        [logits] = session.run(["logits"], READERS[config["takes"]](place, config, records))
        if config["range"] is not None:
            least, largest = config["range"]
            places = np.clip((1.0 + logits[:, 0]) / 2.0, 0.0, 1.0)
            numbers = (least + places * (largest - least)).tolist()
            return [{config["classes"][0]: number} for number in numbers]
        if config["findings"]:
            probabilities = np.exp(-np.logaddexp(0.0, -logits))
        else:
            probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
            probabilities /= probabilities.sum(axis=1, keepdims=True)
        return [dict(zip(config["classes"], map(float, row), strict=True)) for row in probabilities]

    return config, probabilities


def _as_rows(config: dict[str, Any], records: Any) -> Any:
    """Records one by one, where the path of a table is given."""
    if config["takes"] != "features" or not isinstance(records, str | Path):
        return records
    rows = table_in(records)
    return rows if config["columns"] else rows_of((), rows)


def _rows(_: Path, config: dict[str, Any], records: Sequence[Any]) -> dict[str, NDArray[Any]]:
    """Rows of features, or of a table, as the graph takes them."""
    rows = rows_of(config["columns"], records) if config["columns"] else records
    return {"inputs": np.asarray(rows, np.float32)}


def _images(_: Path, config: dict[str, Any], records: Sequence[Any]) -> dict[str, NDArray[Any]]:
    """Images as the graph takes them: (records, 3, height, width)."""
    return {"inputs": np.stack([pixels(image, **config["pixels"]) for image in records])}


def pixels(
    image: Any, resize: int, filter: str, crop: Sequence[int], mean: Any, std: Any
) -> NDArray[np.float32]:
    """The middle of an image whose shorter side is `resize`, in units of the network's own: float32
    (3, height, width).

    Args:
        image: a path, or an image opened by Pillow.
        resize: the shorter side, in pixels.
        filter: by which Pillow resizes.
        crop: height and width of the middle, in pixels.
        mean, std: of each channel, which is scaled to 0 to 1 before.
    """
    from PIL import Image

    opened = Image.open(image, formats=FORMATS) if isinstance(image, str | Path) else image
    upright = to_rgb(opened)
    short = min(upright.size)
    wide, high = (resize if side == short else int(resize * side / short) for side in upright.size)
    upright = upright.resize((wide, high), Image.Resampling[filter.upper()])
    left, top = round((wide - crop[1]) / 2), round((high - crop[0]) / 2)
    upright = upright.crop((left, top, left + crop[1], top + crop[0]))
    scaled = np.asarray(upright, np.float32) / np.float32(255)
    moved = (scaled - np.asarray(mean, np.float32)) / np.asarray(std, np.float32)
    return np.ascontiguousarray(moved.transpose(2, 0, 1))


def _texts(place: Path, _: dict[str, Any], records: Sequence[Any]) -> dict[str, NDArray[Any]]:
    """Texts as the graph takes them, each at the one length that the tokenizer fills up to."""
    from tokenizers import Tokenizer

    cut = Tokenizer.from_file(str(place / "network" / "tokenizer.json"))
    encodings = cut.encode_batch([*records])
    for at, text in enumerate(encodings):
        each = zip(text.special_tokens_mask, text.attention_mask, strict=True)
        if all(special or not seen for special, seen in each):
            raise ValueError(f"text {at} holds no token that this model knows")
    return {
        "input_ids": np.array([text.ids for text in encodings], np.int64),
        "attention_mask": np.array([text.attention_mask for text in encodings], np.int64),
    }


READERS = {"features": _rows, "images": _images, "texts": _texts}


def _main(folder: Path, arguments: Sequence[str]) -> str | None:
    """Print what the graph says of texts, or of files; what is wrong with these, in a sentence."""
    takes = json.loads((folder / "config.json").read_text("utf-8"))["takes"]
    example = {"features": "table.csv", "images": "cat.jpg", "texts": '"a text"'}[takes]
    if not arguments:
        return f"usage: python graph.py {example} ..."
    for one in arguments if takes != "texts" else ():
        if not Path(one).is_file():
            return f"{one} is no file. Give files, as python graph.py {example}"
    try:
        if takes == "features":
            lines = [
                (f"{path}, row {place}:", shares)
                for path in arguments
                for place, shares in enumerate(classify(folder, path), 1)
            ]
        else:
            lines = [*zip(arguments, classify(folder, arguments), strict=True)]
    except (OSError, ValueError) as error:
        return str(error)
    for name, shares in lines:
        print(name, *(f"{one}={share:.4f}" for one, share in shares.items()))
    return None


if __name__ == "__main__":
    sys.exit(_main(Path(__file__).parent, sys.argv[1:]))
