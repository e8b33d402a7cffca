"""`dpladder predict`: a table of classes and probabilities, or of numbers, for images or features.

All of it is post-processing of a release, so it costs nothing. Inputs are the user's own: they are
neither kept nor sent anywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpladder.commands.output import check_output
from dpladder.data.reading import place_of
from dpladder.errors import BadInput
from dpladder.use.model import Model, load
from dpladder.wording import cell, printable

if TYPE_CHECKING:
    import pandas as pd

    from dpladder.use.export import Form

TABLES = (".csv", ".parquet")  # that are read, and written
BY_PLACE = (
    "note: dataset.columns named none when this model was trained, so it knows columns by their "
    "place alone: give them in the order of then"
)
NOT_CALIBRATED = (
    "This model's probabilities were not calibrated when it was trained, and are too sure: they "
    "rank records, and are no shares (docs/models.md)."
)
# a private model knows none of them better
DIGITS = 4  # of a probability
DIGITS_OF_NUMBER = 6


def predict(
    path: Path,
    inputs: Sequence[Path],
    output: Path | None,
    threshold: float | None,
    network: Path | None,
    explain: bool = False,
) -> None:
    """Write a table of classes and probabilities for records of the user's own, which stay here.
    Prediction is free, and says nothing of the data that the model was trained on beyond its price.

    Args:
        path: weights, or a folder with one final model.
        inputs: images, folders or tables, as `Model.predict_file` reads them.
        output: a .csv or .parquet file; None prints CSV.
        threshold: the probability from which the second of two classes is named, or a finding;
            None names what is most probable.
        network: the public network's checkpoint, where the model rests on one of the user's own.
        explain: whether each record's prediction is told as a sum over a table's columns.

    Raises:
        BadInput: the folder holds no model or several, the output has another suffix, the model
            takes no threshold, or a prediction that is to be explained is no sum.

    Columns are the input, the record or user, its class, and `p(class)` for each class; or the
    number that the model predicts. A record that cannot be read keeps its row, and `problem` says
    why.
    """
    check_output(output, TABLES)
    import pandas as pd

    model = load(model_file(path), network)
    if model.by_place and any(name.suffix in TABLES for name in inputs):
        print(BY_PLACE, file=sys.stderr)
    if model.calibrated is False:
        print(NOT_CALIBRATED, file=sys.stderr)
    table = pd.concat([_table(model, name, threshold, explain) for name in inputs])
    if output is None:
        table.to_csv(sys.stdout, index=False)
    elif output.suffix == ".csv":
        table.to_csv(output, index=False)
    else:
        table.to_parquet(output, index=False)


def generate(
    path: Path, prompt: str, tokens: int, samples: int, temperature: float, seed: int
) -> None:
    """Print texts that a language model writes after a prompt, and that they are free.

    Args:
        path: weights of a language model, or a folder with one final model.
        prompt: that each text begins with, of one token at least.
        tokens: that are written after it, at most.
        samples: number of texts.
        temperature: 0 always takes the likeliest token; above it, tokens are drawn.
        seed: of these draws, which are no noise of privacy.

    Raises:
        BadInput: a number is below its least, the prompt holds no token, or the model writes no
            texts.
    """
    from dpladder.use import generate as writer

    for name, value, least in (
        ("tokens", tokens, 1),
        ("samples", samples, 1),
        ("temperature", temperature, 0),
    ):
        if not value >= least:
            raise BadInput(f"--{name} {value}: it must be {least} or more.")
    writing = writer.Writing(tokens, samples, temperature, seed)
    print("\n\n".join(writer.samples(load(model_file(path)), prompt, writing)))
    print(writer.FREE_TO_PUBLISH, file=sys.stderr)


def export_model(path: Path, folder: Path, to: Form, network: Path | None) -> None:
    """Write a model as a folder that needs no dpladder.

    Args:
        path: weights, or a folder with one final model.
        folder: a new one.
        to: the form that it is written in.
        network: the public network's checkpoint, where the model rests on one of the user's own.
    """
    from dpladder.use.export import export

    export(load(model_file(path), network), folder, to)
    names = ", ".join(sorted(file.name for file in folder.iterdir()))
    print(f"{folder} holds {names}: complete the card, README.md")


def model_file(path: Path) -> Path:
    """The file itself, or the only final model in a folder of results.

    Args:
        path: a file is taken as it is. A folder must hold one model only: to guess would be to
            predict with another privacy.

    Raises:
        BadInput: the folder holds no model or several, whose paths the message lists.
    """
    if not path.is_dir():
        return path
    files = sorted(
        {*path.glob("weights.safetensors"), *path.glob("**/final/*/weights.safetensors")}
    )
    if not files:
        raise BadInput(f"{path} holds no final model. Start dpladder run first, which makes one.")
    if len(files) > 1:
        names = ", ".join(map(str, files))
        raise BadInput(f"{path} holds {names}. Name one file: final/<epsilon>/weights.safetensors.")
    return files[0]


def _table(model: Model, path: Path, threshold: float | None, explain: bool) -> pd.DataFrame:
    """One input's rows. Whatever the user's files put into a cell is made harmless (`cell`), for
    tables are opened in spreadsheets."""
    import pandas as pd

    source, predictions = model.predict_file(path)
    places = [place_of(source, index) for index in range(len(source.labels))]
    records = places if predictions.users is None else predictions.users
    labels = [
        cell(label) if isinstance(label, str) else label and float(f"{label:.{DIGITS_OF_NUMBER}g}")
        for label in (predictions.labels if threshold is None else predictions.labels_at(threshold))
    ]
    what = "record" if predictions.users is None else "user"
    said = "class" if predictions.numbers is None else printable(predictions.classes[0])
    facts = pd.DataFrame({"input": cell(path), what: [*map(cell, records)], said: labels})
    if predictions.ids is not None:
        facts.insert(2, "id", [*map(cell, predictions.ids)])
    probabilities = pd.DataFrame(
        np.round(predictions.probabilities, DIGITS),
        columns=[f"p({printable(name)})" for name in predictions.classes]
        if predictions.numbers is None
        else [],
    )
    problems = [cell(problem or "") for problem in predictions.problems]
    table = facts.assign(problem=problems).join(probabilities)
    return table.join(model.explain(source).round(DIGITS)) if explain else table
