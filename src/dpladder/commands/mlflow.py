"""`dpladder mlflow`: final models as runs of an MLflow experiment, from public files alone, each
with its statement, and classifiers as logged models that MLflow finds by their figures and serves.

The network may be reached here, where MLflow's settings say so. Only files that the run published
are sent, and what `dpladder export` makes of them.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpladder.commands.compare import table_of
from dpladder.commands.output import checked_statement
from dpladder.config.extras import require_package
from dpladder.errors import BadInput
from dpladder.plan.follows import target_name
from dpladder.privacy.accounting.rounding import round_up_short

SERVED = Path(__file__).parents[1] / "use" / "mlflow_model.py"


def log(results: Sequence[Path], experiment: str) -> None:
    """One run for each final model, to where MLflow's own settings say.

    Every statement is checked before the first run is logged, so a bad folder logs nothing at all.

    Args:
        results: results folders of finished runs.
        experiment: of MLflow's; it is made where it is not there.

    Raises:
        BadInput: MLflow is not installed, or refuses; or a folder holds no finished run.
    """
    require_package("mlflow", "mlflow", "dpladder mlflow")
    statements = {folder: checked_statement(folder, "Nothing was logged.") for folder in results}
    import mlflow
    from mlflow.exceptions import MlflowException

    table = table_of(results)
    models = table[table["total_epsilon"] < math.inf]  # a training without noise puts none out
    rows = [{str(name): value for name, value in row.items()} for row in models.to_dict("records")]
    try:
        mlflow.set_experiment(experiment)
        for row in rows:
            folder = Path(row["results"])
            with mlflow.start_run(
                run_name=f"{row['experiment']} at epsilon {round_up_short(row['total_epsilon'])}"
            ):
                _log_run(folder, row, statements[folder])
    except MlflowException as error:
        raise BadInput(f"MLflow refused: {error}") from None
    print(f"MLflow's experiment {experiment}: one run for each final model, {len(rows)} in all")


def _log_run(folder: Path, row: dict[str, Any], statement: dict[str, Any]) -> None:
    """Log figures as MLflow's metrics, words and delta as its parameters, of the run and of its
    model. Two tags name the statement and the mode."""
    import mlflow
    import pandas as pd

    # MLflow takes no empty value: NaN stands where a row lacks what another one has.
    known = {name: value for name, value in row.items() if not pd.isna(value)}
    words = {name for name, value in known.items() if isinstance(value, str)} | {"delta"}
    metrics = {name: float(value) for name, value in known.items() if name not in words}
    params = {name: str(known[name]) for name in sorted(words & known.keys())}
    tags = {"dpladder.statement": statement["id"], "dpladder.mode": statement["mode"]}
    mlflow.log_params(params)
    mlflow.set_tags(tags)
    for path in _files(folder, row):
        mlflow.log_artifact(str(path))
    model_id = _log_model(_weights(folder, row), params, tags)
    mlflow.log_metrics(metrics, model_id=model_id)  # of the run, and of its model if it has one


def _log_model(weights: Path, params: dict[str, str], tags: dict[str, str]) -> str | None:
    """Log a classifier as what export writes, which MLflow loads without dpladder.

    Args:
        weights: of the model.
        params, tags: by which it is found.

    Returns:
        MLflow's id; None where the model is away, is no classifier, or cannot be exported here,
        which is said.
    """
    from mlflow import pyfunc

    from dpladder.use.card import NEEDS
    from dpladder.use.export import export
    from dpladder.use.model import load

    if not weights.is_file():
        return None
    with tempfile.TemporaryDirectory() as folder:
        exported = Path(folder) / "exported"
        try:
            model = load(weights)
            if model.speaks:
                return None
            export(model, exported, "torch")
        except BadInput as error:  # its network is elsewhere
            print(f"{weights} is logged as a file, and not as a model to serve: {error}")
            return None
        _, packages = NEEDS[model.features.takes]
        logged = pyfunc.log_model(
            name=f"{params['experiment']}-{weights.parent.name}".replace(".", "_"),
            python_model=str(SERVED),
            artifacts={"exported": str(exported)},
            pip_requirements=["mlflow>=3", "pandas", *packages],
            params=params,
            tags=tags,
        )
    return str(logged.model_id)


def _weights(folder: Path, row: dict[str, Any]) -> Path:
    """The file of a final model."""
    final = folder / str(row["experiment"]) / "final" / target_name(row["total_epsilon"])
    return final / "weights.safetensors"


def _files(folder: Path, row: dict[str, Any]) -> list[Path]:
    """What is shown beside the figures: the statement, the page, the summary, and the model."""
    files = (
        folder / "privacy.json",
        folder / "report.html",
        folder / str(row["experiment"]) / "summary.json",
        _weights(folder, row),
    )
    return [path for path in files if path.is_file()]
