"""A released classifier as MLflow serves it: the exported folder, which needs no dpladder.

MLflow keeps this file beside the folder and runs it where the model is loaded.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import mlflow
import pandas as pd


class ExportedModel(mlflow.pyfunc.PythonModel):  # type: ignore[misc]  # untyped
    """The classifier of a folder that `dpladder export` wrote."""

    def load_context(self, context: Any) -> None:
        """Load the exported folder, MLflow's artifact `exported`."""
        folder = context.artifacts["exported"]
        sys.path.insert(0, folder)
        try:
            self._classifier = import_module("model").load(folder)
        finally:
            sys.path.remove(folder)

    def predict(self, context: Any, model_input: pd.DataFrame, params: Any = None) -> Any:
        """A probability for each class, a row for each row of the input.

        Args:
            context, params: MLflow's; nothing is read of them.
            model_input: of a table it has the table's columns; of features a column for
                each; of images their paths and of texts the texts, in its only column.
        """
        records: list[Any]
        if self._classifier.config["columns"]:
            records = model_input.to_dict("records")
        elif model_input.shape[1] == 1:
            records = model_input.iloc[:, 0].tolist()
        else:
            records = model_input.to_numpy().tolist()
        return pd.DataFrame(self._classifier.classify(records))


mlflow.models.set_model(ExportedModel())
