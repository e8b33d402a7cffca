"""A private classifier, or a regressor, in three lines of Python, shaped like scikit-learn's.

    from dpladder import PrivateClassifier
    model = PrivateClassifier(epsilon=1.0, lineage="patients", nominal_size=4000,
                              classes=["well", "ill"], columns={"age": (0, 100), "sex": ["f", "m"]})
    model.fit(X, y).predict(X)

`fit` writes a project folder and runs the workflow on it, with the same ledger as `dpladder run`.
So `dpladder verify`, `dpladder ledger show`, restored answers and the lifetime hold, and fitting
the same data twice is free.

Nothing here trains, charges or draws noise: that is the workflow's alone. Messages about records
say exact figures, for the caller's eyes: whoever calls `fit` holds the data.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from io import BytesIO
from numbers import Real
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import FeatureUnion, Pipeline

from dpladder.commands.follow import WORDS, follow, reasons_in
from dpladder.commands.project import CONFIG, command_of
from dpladder.config.level_texts import level_as_text, number_as_text
from dpladder.config.model import DELTA
from dpladder.data.cells import text_of
from dpladder.data.columns import is_missing, matrix_of, name_of, number_of, restored_columns
from dpladder.data.equal_rows import too_many_equal
from dpladder.data.layout import ROLES
from dpladder.data.tables import frame_as_bytes, frame_in
from dpladder.errors import BadInput, Refused
from dpladder.plan.follows import target_name
from dpladder.plan.startup import open_resolved
from dpladder.privacy.accounting.rounding import round_up
from dpladder.privacy.statement.check import parse_statement, read_statement
from dpladder.privacy.statement.page import page
from dpladder.section import NAME_PATTERN
from dpladder.use.card import test_beside
from dpladder.use.model import Model, Predictions, load

Cell = str | None  # what stands in a cell; nothing where it is missing
RESULTS = Path("results")
MIDNIGHT = " 00:00:00"
FEWEST_DIRECTIONS = 16  # columns of a matrix whose rows' directions may tell something
CLASSES = "classes.json"  # as they were given, where the config has their names: 0 is no "0"
_WORKING_FOLDER = Lock()  # of the process, so that threads take turns
# keys of the config that `fit` writes from parameters and from the shape of X
PARAMETERS = {
    *(f"dataset.{name}" for name in ("lineage", "source", "nominal_size", "classes", "columns")),
    "dataset.target.range",
    *("privacy.epsilon", "privacy.delta", "privacy.lifetime.epsilon"),
    *("features", "features.model"),
}
# of scikit-learn, what fits copies of a classifier: on parts of the records or of their columns, or
# on other labels
FITS_MANY = tuple(
    f"sklearn.{name}"
    for name in (
        *("model_selection", "calibration", "ensemble", "feature_selection", "linear_model"),
        *("multiclass", "multioutput", "semi_supervised"),
    )
)
TUNING = (
    "{name} cannot be fitted by scikit-learn's cross-validation, search, calibration, "
    "ensembles or models of one class each: each fit asks the private data anew, or takes the "
    "answers about other records or labels, and choosing by scores that nobody paid for leaks. The "
    "ladder tunes inside epsilon: leave the step size empty, or see sweep in config/README.md."
)
LEARNT = (
    "step {steps} learns from all records before {name} sees them, and epsilon counts nothing of "
    "it: one record could move every prediction. columns does the scaling of a DataFrame, and "
    "bounds of a matrix, by public figures. Or fit the step on public records, and give "
    "FrozenEstimator(step). Nothing was spent."
)
# of scikit-learn, steps that have to be fitted, and learn no more than how many columns there are
LEARN_NOTHING = {"FrozenEstimator", "PolynomialFeatures"}

SAME_VERSION = (
    "these rows are not those of the last fit, and dataset.version is the same: what was released "
    "of that version is kept, and who came later counts as nothing. Without ids the same people in "
    "another type, as float32 or with days as text, are other rows too. To train on the new rows, "
    'give the version a number: {name}(..., **{{"dataset.version": {next}}}). It asks '
    "all anew."
)
OTHER_LABELS = (
    "rows of the last fit have other labels now, and dataset.version is the same: the model would "
    "be the old labels'. Nothing was spent. Give the labels a version of their own: "
    '{name}(..., **{{"dataset.version": {next}}}). It asks all anew: {price}'
)
OWN_CONFIG = b"# fit of a notebook writes this file. Change the parameters in Python.\n"


class MarkdownPage(str):
    """What a run guarantees, as Markdown; a notebook renders it.

    It is a str in all else, so `print` and comparisons work as on the page's text.
    """

    def _repr_markdown_(self) -> str:
        return str(self)


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """What a private classifier and a private regressor have in common: a project, and its runs.

    Attributes:
        epsilon_: What the fitted model is stated at, with all releases before it. It counts
            nothing of what was done to X and y before `fit`, and `fit` cannot see that: scaling,
            imputing, choosing columns or dropping rows by what all records hold leaks.
        model_: What `dpladder.load` gives of it.
        score_: What the noised test says of it, with a 95 % interval over noise and sampling, and
            what is reached without a model. `print` shows it; `score` asks your own records.
        statement_: The page that `dpladder verify` checks, as the statement says it.
    """

    epsilon: float
    delta: float
    lineage: str | None
    lifetime: float | None
    nominal_size: int | None
    columns: Mapping[str, Any] | None
    bounds: tuple[Any, Any] | None
    project: str | Path | None
    keys: dict[str, Any]
    _learned: str  # the parameter that says what is learnt
    _of_sizes = False  # whether directions of rows alone tell nothing

    def _of_dataset(self) -> dict[str, Any]:
        """What is learnt, as keys of the config's section about the data."""
        raise NotImplementedError

    def _labels(self, y: Any) -> list[str]:
        """What each record is to be told by, as text; empty where it has none.

        Raises:
            BadInput: y is of another shape, or none of it can be used.
        """
        raise NotImplementedError

    @classmethod
    def _learned_in(cls, folder: Path, dataset: Mapping[str, Any]) -> Any:
        """What is learnt, as it was given to the last fit in a project."""
        raise NotImplementedError

    def _keep_learned(self) -> None:
        """Keep in the project what a config does not tell of what is learnt."""

    def _take_model(self, model: Model) -> None:
        """Take what the released model says of what it learnt.

        Raises:
            BadInput: it learnt something else.
        """
        raise NotImplementedError

    @property
    def _name(self) -> str:
        return type(self).__name__

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, config keys among them.

        Args:
            deep: passed over, for no parameter is an estimator. scikit-learn's `clone` asks with
                it.
        """
        params = {name: getattr(self, name) for name in self._get_param_names()}
        return params | self.keys

    def set_params(self, **params: Any) -> Self:
        """Set parameters, or config keys by their dotted names. Nothing is checked before `fit` or
        `plan`, as scikit-learn wants it.

        Args:
            **params: by name. Another name than a parameter's is taken for a key of the config.

        Returns:
            The estimator itself.
        """
        for name, value in params.items():
            if name in self._get_param_names():
                setattr(self, name, value)
            else:
                self.keys = {**self.keys, name: value}
        return self

    @property
    def project_(self) -> Path:
        """The folder of the run, as an absolute path. It need not exist yet.

        Raises:
            BadInput: no lineage is given, its name has other letters than a config allows, or a
                file lies there.
        """
        if self.lineage is None:
            raise BadInput(f"{self._name} needs lineage: a name for the data, for its life.")
        if not (isinstance(self.lineage, str) and re.fullmatch(NAME_PATTERN, self.lineage)):
            raise BadInput(
                f"lineage is {self.lineage!r}. Allowed: lower-case letters, digits, _ and -."
            )
        chosen = self.project or Path("dpladder-projects") / self.lineage
        with _WORKING_FOLDER:
            folder = Path(chosen).expanduser().absolute()
        if folder.exists() and not folder.is_dir():
            raise BadInput(f"project is {folder}, which is a file. Name a folder.")
        return folder

    def plan(self, X: Any) -> str:
        """The price of a fit, as `dpladder plan` prints it. Reads no record.

        Args:
            X: the records of which columns or shape alone are read.

        Returns:
            Text for people. Nothing is reserved, so a later plan may tell another price.

        Raises:
            BadInput: X or a parameter cannot be used.
            Refused: the plan does not fit the ledger, or another run goes on in the project.
        """
        X = self._records(X)
        config, note = self._config(X), self._check_scale(X)
        with _alone_in(self._data_folder()) as folder:
            _write(self.project_ / CONFIG, config)
            records = folder / _records_file(X)
            if not records.exists():
                _write(records, b"")  # a plan asks whether there is a source, and reads none
            return _plan_of(self.project_ / CONFIG) + note

    def fit(self, X: Any, y: Any, ids: Sequence[Any] | None = None) -> Self:
        """Tune and train on the records X with their labels, or numbers, y.

        It is free where the same parameters were fitted before, and the model is then the old one,
        whatever X holds (contract: write-ahead). A warning says so where the records are others.

        Args:
            X: A matrix, a DataFrame of pandas or polars, a sparse matrix, or 8-bit images. Images
                have the shape (records, height, width) or (records, height, width, 3).
            y: A label, or a number, for each record, of shape (records,). A missing one, or one
                that is no class or not finite, makes its record count as nothing.
            ids: Each record's own id. Without ids, equal rows with equal labels are one record.

        Returns:
            The estimator itself, fitted.

        Raises:
            BadInput: X, y or a parameter cannot be used. Nothing was spent.
            Refused: The ledger, or the data, allows no such run. What a run had charged before it
                stopped stays charged, and is not paid twice.
        """
        _refuse_callers(self._name)
        project, X = self.project_, self._records(X)
        config, note = self._config(X), self._check_scale(X)
        records = self._source(X, y, ids)
        if note:
            warnings.warn(note.strip(), stacklevel=2)
        with _alone_in(self._data_folder()) as data:
            source = data / _records_file(X)
            other_rows = self._are_other_rows(source, records, config)
            _write(project / CONFIG, config)
            self._keep_learned()
            _write(source, records)
            folder, command = command_of([str(project / CONFIG)])
            with _WORKING_FOLDER, contextlib.chdir(folder):
                open_resolved([project / CONFIG])  # what is wrong with a parameter is said here
            if follow(command, folder):
                why = reasons_in(project).rstrip(".") or f"{project / WORDS} has all that was said"
                raise Refused(
                    f"the run in {project} stopped: {why}. What is done is kept, and never paid "
                    "twice."
                )
            self._load_release()
            if other_rows:
                after = _version_after(config)
                warnings.warn(SAME_VERSION.format(name=self._name, next=after), stacklevel=2)
        return self

    @classmethod
    def load(cls, project: str | Path) -> Self:
        """The estimator that was fitted in a project folder. It asks the data nothing.

        Args:
            project: the folder that `fit` wrote, by default dpladder-projects/<lineage>.

        Returns:
            An estimator with the parameters of the last fit, and its released model.

        Raises:
            BadInput: nothing was fitted there, or the last fit there learnt something else than the
                model.
        """
        folder = Path(project).expanduser().absolute()
        try:
            written = yaml.safe_load((folder / CONFIG).read_text("utf-8"))
        except OSError:
            raise BadInput(f"{folder} holds no {CONFIG}. Name the folder of a fit.") from None
        privacy, data = written["privacy"], written["dataset"]
        learned: dict[str, Any] = {cls._learned: cls._learned_in(folder, data)}
        estimator = cls(
            privacy["epsilon"],
            delta=privacy["delta"],
            lineage=data["lineage"],
            lifetime=privacy.get("lifetime", {}).get("epsilon"),
            nominal_size=data["nominal_size"],
            **_columns_of(data.get("columns", ())),
            project=folder,
            **learned,
            **dict(_other_keys(written)),
        )
        estimator._load_release()
        return estimator

    def _predictions(self, X: Any) -> Predictions:
        """What the released model says of records."""
        if not hasattr(self, "model_"):
            raise NotFittedError(f"This {self._name} is not fitted yet. Call fit, or load.")
        X = self._records(X)
        if _is_frame(X):  # its cells say the same as they did to `fit`
            columns = restored_columns(self.model_.facts["inference"].get("columns", ()))
            names = [name for name in map(name_of, columns) if name in [*X.columns]]
            X = pd.DataFrame(_cells_of(X, names), dtype=object)
        return self.model_.predict(X)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a model; scikit-learn asks it before it shows or uses an estimator."""
        return hasattr(self, "model_")

    def _load_release(self) -> None:
        """Take the released model of this total and its statement from the project."""
        self.model_: Model = load(self._weights_file())
        self._take_model(self.model_)
        tested = test_beside(self.model_)
        if tested is not None:
            self.score_ = tested.headline
        # from the statement that was just found to be as it was written, and not from its page
        stated = parse_statement(read_statement(self.project_ / RESULTS))
        self.statement_ = MarkdownPage(page(stated))
        privacy = self.model_.privacy
        assert privacy is not None, "fit writes the statement"
        # with all that may have steered the model, not its own price alone (contract:
        # all-that-steered)
        self.epsilon_ = float(round_up(privacy.price.stated.epsilon))

    def _weights_file(self) -> Path:
        """Where the workflow puts the model of the total that the project's config names."""
        written = yaml.safe_load((self.project_ / CONFIG).read_text("utf-8"))
        total = target_name(float(written["privacy"]["epsilon"]))
        file = self.project_ / RESULTS / "main" / "final" / total / "weights.safetensors"
        if not file.exists():
            raise BadInput(
                f"{self.project_} holds no model of total {total}, which the last fit or plan "
                f"there asked for. Fit with the total of a model in {file.parent.parent}, which is "
                "free."
            )
        return file

    def _are_other_rows(self, source: Path, records: bytes, config: bytes) -> bool:
        """Whether a model was released of other rows under this version of the data.

        Raises:
            Refused: rows of the last fit have other labels now. The model would be the old labels',
                whatever the new ones mean.
        """
        before = source.read_bytes() if source.exists() else b""
        released = any((self.project_ / RESULTS).glob("main/final/*/weights.safetensors"))
        if before in (b"", records) or not released:
            return False
        if _version_after((self.project_ / CONFIG).read_bytes()) != _version_after(config):
            return False
        labels, now = _labels_by_row(before), _labels_by_row(records)
        if any(labels[row] != now[row] for row in labels.keys() & now.keys()):
            after = _version_after(config)
            price = self._price_of(config, after)
            raise Refused(OTHER_LABELS.format(name=self._name, next=after, price=price))
        return True

    def _price_of(self, config: bytes, version: int) -> str:
        """What a fit under another version of the data would cost, in a line of the plan."""
        document = yaml.safe_load(config)
        document["dataset"]["version"] = version
        path = self.project_ / f".anew.{CONFIG}"
        try:
            _write(path, yaml.safe_dump(document).encode())
            lines = _plan_of(path).splitlines()
        except (BadInput, Refused) as refusal:
            return str(refusal)
        finally:
            path.unlink(missing_ok=True)
        return next(line for line in reversed(lines) if line.startswith("lineage "))

    def _records(self, X: Any) -> Any:
        """Records as `_records` has them; a matrix of which bounds are known as a DataFrame, whose
        columns have ranges."""
        X = _records(X)
        if self.bounds is None:
            return X
        if _is_frame(X) or X.ndim != 2:
            raise BadInput(
                "bounds are those of a matrix of numbers. Give the columns of a DataFrame their "
                "ranges by columns, and images neither."
            )
        return pd.DataFrame(X, columns=[f"x{place}" for place in range(X.shape[1])])

    def _declared(self, X: Any) -> Any:
        """What is public about the columns of a DataFrame, by their names."""
        if self.bounds is None:
            return self.columns
        count = X.shape[1]
        try:
            low, high = (np.broadcast_to(np.asarray(end, float), count) for end in self.bounds)
            right = bool(np.isfinite([*low, *high]).all() and (low < high).all())
        except (TypeError, ValueError):
            right = False
        if not right:
            raise BadInput(
                f"bounds are {self.bounds!r}. Give the public smallest and largest value of the "
                f"{count} columns of X, as (0, 100), or an array of {count} for each."
            )
        ends = zip(low.tolist(), high.tolist(), strict=True)
        return dict(zip(X.columns, ends, strict=True))

    def _check_scale(self, X: Any) -> str:
        """What to know of a matrix without bounds, whose rows are scaled to one length: empty where
        there is nothing to know.

        Raises:
            BadInput: nothing could be learnt so.
        """
        if _is_frame(X) or X.ndim != 2 or "features.length" in self.keys:
            return ""
        count = X.shape[1]
        if self._of_sizes or count < FEWEST_DIRECTIONS:
            raise BadInput(
                f"X is a matrix of {count} columns without bounds. Its rows would be scaled to one "
                "length, and what their sizes say be lost. Give bounds=(low, high), public figures "
                "or an array of them for each; or a DataFrame with columns; or, for embeddings, "
                '**{"features.length": 32}. Nothing was spent.'
            )
        return (
            "\nX is a matrix without bounds, so its rows are scaled to one length and their "
            "directions alone count. That is right for embeddings. Where sizes matter, give "
            "bounds=(low, high), public figures or arrays of them."
        )

    def _config(self, X: Any) -> bytes:
        """The project's config as YAML, of parameters and of what X is, never of what it holds."""
        # scikit-learn would read both off y, and so reveal them (contract: public-sizes)
        public = ("nominal_size", self._learned)
        missing = [name for name in public if getattr(self, name) is None]
        if missing:
            raise BadInput(
                f"{self._name} needs {' and '.join(missing)}: public figures, which reading "
                "the data would reveal. Say them when you make it."
            )
        written: dict[str, Any] = {
            "dataset": {
                "lineage": self.lineage,
                "source": _source_of(X),
                "nominal_size": self.nominal_size,
                **self._of_dataset(),
            },
            "privacy": {"epsilon": self.epsilon, "delta": self.delta},
            "features": {},
        }
        if self.lifetime is not None:
            written["privacy"]["lifetime"] = {"epsilon": self.lifetime}
        if _is_frame(X):
            written["dataset"]["columns"] = self._checked_columns(X)
        elif self.columns:
            raise BadInput(
                "columns are those of a DataFrame, and X is none: pd.DataFrame(X, columns=[...]). "
                "Or give bounds=(low, high) of a matrix."
            )
        # a matrix or a table holds features already, and no network goes before it
        if np.ndim(X) == 2:
            written["features"]["model"] = "none"
        for key, value in self.keys.items():
            *sections, name = key.split(".")
            place = written
            for section in sections:
                place = place.setdefault(section, {})
                if not isinstance(place, dict):
                    raise BadInput(
                        f"{key}: the config has no section {section}. Name a key of "
                        "config/README.md."
                    )
            place[name] = value
        targets = written.get("final", {}).get("targets")
        several = isinstance(targets, list | tuple) and targets  # what else it may be is told later
        if several and written["privacy"]["epsilon"] not in targets:
            raise BadInput(
                f"epsilon is {written['privacy']['epsilon']}, and final.targets has other totals. "
                "Give one of them: the estimator is that model."
            )
        try:
            return OWN_CONFIG + yaml.safe_dump(_plain(written), sort_keys=False).encode()
        except yaml.YAMLError as error:
            raise BadInput(
                f"a parameter is of a kind that no config has: {error.args[-1]!r}. Give words, "
                "numbers, lists or mappings of these."
            ) from None

    def _checked_columns(self, X: Any) -> list[Any]:
        """The columns as the config has them, once each is known to be in the DataFrame and to be
        described."""
        # ranges and levels taken from private data would be a leak, so none are guessed
        columns = self._declared(X)
        if not columns:
            raise BadInput(
                "columns: a DataFrame's features need their public ranges or levels, for what the "
                'data hold would reveal them. Name each, as columns={"age": (0, 100), "sex": ["f", '
                '"m"]}.'
            )
        if not isinstance(columns, Mapping):
            raise BadInput(
                f"columns is a {type(columns).__name__}. Give a mapping of names to public "
                'ranges or levels, as {"age": (0, 100), "sex": ["f", "m"]}.'
            )
        if strange := [name for name in (*X.columns, *columns) if not isinstance(name, str)]:
            raise BadInput(f"columns: {strange[0]!r} is no text. Rename the DataFrame's columns.")
        if taken := [name for name in columns if name in ROLES]:
            raise BadInput(
                f"columns: {', '.join(taken)} has a meaning of its own in a source. Rename it."
            )
        names = [*X.columns]
        twice = sorted({name for name in names if names.count(name) > 1})
        absent = [name for name in columns if name not in names]
        if absent or twice:
            raise BadInput(
                f"columns: the DataFrame has no column {', '.join(absent)}. Name those that it has."
                if absent
                else f"columns: the DataFrame has {', '.join(twice)} more than once."
            )
        return [_column(name, said) for name, said in columns.items()]

    def _source(self, X: Any, y: Any, ids: Sequence[Any] | None) -> bytes:
        """The records as a source of the project."""
        labels, count = self._labels(y), X.shape[0]
        if ids is not None:
            ids = [_text(one) or "" for one in _values(ids)]
        for what, values in (("y", labels), ("ids", ids)):
            if values is not None and len(values) != count:
                raise BadInput(
                    f"{what} has {len(values)} entries for {count} records: give one each."
                )
        if ids is not None and too_many_equal(count, count - len({*ids})):
            raise BadInput(
                f"{count - len({*ids}):,} of {count:,} ids stand more than once, and a run counts "
                "records of one id as one. Give each record an id of its own. Nothing was spent."
            )
        # columns that were not named are not even written to the private folder
        columns = self._declared(X) if _is_frame(X) else {}
        cells = _cells_of(X, columns) if _is_frame(X) else None
        if cells is not None:
            _check_cells(X, cells, columns)
        # of images nobody asks: two people hardly have the same one
        if ids is None and "dataset.equal_rows" not in self.keys and np.ndim(X) == 2:
            rows = X.tolist() if cells is None else zip(*cells.values(), strict=True)
            _refuse_equal_rows(rows, labels, self._name)
        beside: dict[str, Sequence[Cell]] = {"label": labels}
        if ids is not None:
            beside["id"] = ids
        return _arrays_as_bytes(X, beside) if cells is None else frame_as_bytes({**cells, **beside})

    def _data_folder(self) -> Path:
        """The folder of the records, mode 0700: nobody else reads what lies there (docs/design.md:
        private folder)."""
        config = self.project_ / CONFIG
        if config.exists() and not config.read_bytes().startswith(OWN_CONFIG):
            raise BadInput(
                f"project is {self.project_}, whose {CONFIG} somebody else wrote, and fit would "
                "write its own over it. Name another folder."
            )
        folder = self.project_ / "data"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder


class PrivateClassifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """A linear classifier, tuned and trained with differential privacy.

    Guarantee: the statement's, which `statement_` holds. It is `lifetime` where that is declared.
    Else it is what all releases of this lineage cost together, if they were planned before the
    first of them. Predictions on the caller's own records are post-processing, and free. What is
    not protected: the parameters, `classes` and `columns` among them, and whatever the caller looks
    at in X.

    Args:
        epsilon: The final model's total, the search for its step size included.
        delta: Fixed for the lineage's life, and well below 1 / nominal_size. As a new project has
            it, unless given.
        lineage: The data's name for life. Later versions of the same data keep it.
        lifetime: The most that may ever be spent on the lineage; None: no limit is declared.
        nominal_size: About how many units train: a round figure that everybody may know, for sums
            are divided by it.
        classes: All that a label may be. A label that is none of them, or missing, counts as
            nothing.
        columns: For a DataFrame, its features in order. Each has its public smallest and largest
            value as a pair, (0, 100), its public levels as a list, ["f", "m"], or None for numbers
            as they are. Booleans are 0 and 1.
            The config's form does too, {"range": (0, 100), "missing": 40}. None for a matrix, or
            for images.
        bounds: For a matrix of numbers, the public smallest and largest value of its columns: two
            numbers, or two arrays with one for each column. Values beyond are cut to them. None for
            embeddings, whose rows are scaled to one length.
        project: The folder of the run; None: `dpladder-projects/<lineage>` here.
        **keys: Any other key of the config by its dotted name, as {"learner.name": "dp_ls"}.

    Attributes:
        classes_: As given, in the model's own order.
        epsilon_: What the fitted model is stated at, with all releases before it. It counts
            nothing of what was done to X and y before `fit`, and `fit` cannot see that: scaling,
            imputing, choosing columns or dropping rows by what all records hold leaks.
        model_: What `dpladder.load` gives of it.
        statement_: The page that `dpladder verify` checks, as the statement says it.
    """

    _learned = "classes"

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = DELTA,
        lineage: str | None = None,
        lifetime: float | None = None,
        nominal_size: int | None = None,
        classes: Sequence[Any] | None = None,
        columns: Mapping[str, Any] | None = None,
        bounds: tuple[Any, Any] | None = None,
        project: str | Path | None = None,
        **keys: Any,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.lineage = lineage
        self.lifetime = lifetime
        self.nominal_size = nominal_size
        self.classes = classes
        self.columns = columns
        self.bounds = bounds
        self.project = project
        self.keys = keys

    @property
    def _class_list(self) -> list[Any]:
        """The classes as given, be they an array."""
        return [] if self.classes is None else [*self.classes]

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each record. Free, for it is post-processing.

        Args:
            X: records as `fit` takes them.

        Returns:
            A class for each record as `classes` has it, of shape (records,).

        Raises:
            NotFittedError: neither `fit` nor `load` came before.
            BadInput: a record cannot be read, so that nobody takes a guess for an answer.
        """
        probabilities = self.predict_proba(X)
        _refuse_unread(
            np.asarray(np.isnan(probabilities).any(axis=1)),
            "predict_proba gives NaN for them.",
        )
        return np.asarray(self.classes_)[probabilities.argmax(axis=1)]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of each class. Free, for it is post-processing.

        Args:
            X: records as `fit` takes them.

        Returns:
            Of shape (records, classes), in the order of `classes_`. A record that cannot be read
            has NaN.

        Raises:
            NotFittedError: neither `fit` nor `load` came before.
        """
        return self._predictions(X).probabilities

    def _of_dataset(self) -> dict[str, Any]:
        return {"classes": [_text(one) for one in self._class_list]}

    def _labels(self, y: Any) -> list[str]:
        """Each record's class by name; empty where it is missing, or none of the classes."""
        known = {*map(_text, self._class_list)} - {None}
        names = map(_text, _values_of_records(y, "label"))
        labels = [name if name is not None and name in known else "" for name in names]
        if labels and not any(labels):
            raise BadInput(
                f"y: none of its {len(labels):,} labels is one of the classes, {self._class_list}. "
                "Give labels as the classes are written. Nothing was spent."
            )
        return labels

    @classmethod
    def _learned_in(cls, folder: Path, dataset: Mapping[str, Any]) -> Any:
        if dataset.get("target") is not None:
            raise BadInput(f"the fit in {folder} predicts a number: use PrivateRegressor.")
        try:
            return json.loads((folder / CLASSES).read_bytes())
        except OSError:
            raise BadInput(
                f"{folder} holds no {CONFIG} and {CLASSES}. Name the folder of a fit."
            ) from None

    def _keep_learned(self) -> None:
        classes = json.dumps(_plain(self._class_list), default=str).encode()
        _write(self.project_ / CLASSES, classes)

    def _take_model(self, model: Model) -> None:
        # in the model's own order: a later fit that was refused may have named them in another
        by_name = {_text(one): one for one in self._class_list}
        if by_name.keys() != {*model.classes}:
            raise BadInput(
                f"the model in {self.project_} knows classes {', '.join(model.classes)}, and "
                "the last fit there named others. Fit with the model's classes, which is free."
            )
        self.classes_ = np.asarray([by_name[name] for name in model.classes])


class PrivateRegressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """A linear regression of a number, trained with differential privacy. `score` is R².

    Guarantee: the statement's, which `statement_` holds, as of `PrivateClassifier`.

    Args:
        epsilon: The final model's total.
        delta: Fixed for the lineage's life, and well below 1 / nominal_size. As a new project has
            it, unless given.
        lineage: The data's name for life. Later versions of the same data keep it.
        lifetime: The most that may ever be spent on the lineage; None: no limit is declared.
        nominal_size: About how many units train: a round figure that everybody may know, for sums
            are divided by it.
        target_range: The number's smallest and largest value, publicly known and never read off y.
            Values beyond are cut to it. A number that is missing, or not finite, counts as nothing.
        columns: For a DataFrame, its features in order, as `PrivateClassifier` has them.
        bounds: For a matrix of numbers, as `PrivateClassifier` has them.
        project: The folder of the run; None: `dpladder-projects/<lineage>` here.
        **keys: Any other key of the config by its dotted name, as {"dataset.target.error": 20}.

    Attributes:
        epsilon_: What the fitted model is stated at, with all releases before it. It counts
            nothing of what was done to X and y before `fit`, and `fit` cannot see that: scaling,
            imputing, choosing columns or dropping rows by what all records hold leaks.
        model_: What `dpladder.load` gives of it.
        statement_: The page that `dpladder verify` checks, as the statement says it.
    """

    _learned = "target_range"
    _of_sizes = True

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = DELTA,
        lineage: str | None = None,
        lifetime: float | None = None,
        nominal_size: int | None = None,
        target_range: tuple[float, float] | None = None,
        columns: Mapping[str, Any] | None = None,
        bounds: tuple[Any, Any] | None = None,
        project: str | Path | None = None,
        **keys: Any,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.lineage = lineage
        self.lifetime = lifetime
        self.nominal_size = nominal_size
        self.target_range = target_range
        self.columns = columns
        self.bounds = bounds
        self.project = project
        self.keys = keys

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The number of each record, in its own units. Free, for it is post-processing.

        Args:
            X: records as `fit` takes them.

        Returns:
            Of shape (records,).

        Raises:
            NotFittedError: neither `fit` nor `load` came before.
            BadInput: a record cannot be read, so that nobody takes a guess for an answer.
        """
        numbers = self._predictions(X).numbers
        assert numbers is not None, "the model was trained on numbers"
        _refuse_unread(np.isnan(numbers), "model_.predict gives NaN for them.")
        return numbers

    def _of_dataset(self) -> dict[str, Any]:
        if "dataset.target.column" in self.keys:
            raise BadInput("dataset.target.column: fit is given y itself. Leave it out.")
        ends = self.target_range
        if np.ndim(ends) != 1 or np.size(ends) != 2:  # type: ignore[arg-type]
            raise BadInput(
                f"target_range is {ends!r}. Give the number's public smallest and largest value, "
                "as (0, 100)."
            )
        return {"target": {"range": [float(one) for one in ends]}}  # type: ignore[union-attr]

    def _labels(self, y: Any) -> list[str]:
        values = map(_text, _values_of_records(y, "number"))
        numbers = [
            text if text is not None and math.isfinite(number_of(text)) else "" for text in values
        ]
        if numbers and not any(numbers):
            raise BadInput(
                f"y: none of its {len(numbers):,} entries is a finite number. Nothing was spent."
            )
        return numbers

    @classmethod
    def _learned_in(cls, folder: Path, dataset: Mapping[str, Any]) -> Any:
        if dataset.get("target") is None:
            raise BadInput(f"the fit in {folder} tells classes apart: use PrivateClassifier.")
        return tuple(dataset["target"]["range"])

    def _take_model(self, model: Model) -> None:
        if model.range is None:
            raise BadInput(
                f"the model in {self.project_} tells classes apart: use PrivateClassifier."
            )


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[Path]:
    """A project's data, while no other fit or plan lays records or a config under a run."""
    # the file stays: to remove it would let a third process lock another file of that name
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder
    except BlockingIOError:
        raise Refused(
            f"another run goes on in {folder.parent}. Nothing was changed: wait for it, or give "
            "this one a project of its own."
        ) from None
    finally:
        os.close(descriptor)


def _plan_of(config: Path) -> str:
    """What `dpladder plan` says of a config."""
    command = [sys.executable, "-m", "dpladder", "plan", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        kind = BadInput if done.returncode == BadInput.exit_code else Refused
        said = done.stderr.strip().removeprefix("dpladder: ")
        raise kind(said or "dpladder plan failed and said nothing.")
    return done.stdout


def _version_after(config: bytes) -> int:
    """The number of the version that would follow the one of this config; without a number it is
    the first."""
    return int(yaml.safe_load(config)["dataset"].get("version") or 1) + 1


def _refuse_unread(unread: NDArray[np.bool_], otherwise: str) -> None:
    """Refuse predictions where records cannot be read, for nobody should take a guess for an
    answer."""
    if unread.any():
        raise BadInput(
            f"{int(unread.sum()):,} of {len(unread):,} records cannot be read: a number is "
            f"missing, or is none. Leave them out: {otherwise}"
        )


def _refuse_equal_rows(
    rows: Iterable[Sequence[Any]], labels: Sequence[str], estimator: str
) -> None:
    """Without ids equal rows are one record, so different people who answer alike would be lost."""
    count = len(labels)
    # as text, for NaN equals nothing and two rows with one must still be equal
    said = {(repr(row), label) for row, label in zip(rows, labels, strict=True)}
    if too_many_equal(count, count - len(said)):
        raise BadInput(
            f"{count - len(said):,} of {count:,} rows equal another one, and a run counts equal "
            "rows as one record. If they are different people, give ids=, one each; if they are "
            f'one record, {estimator}(..., **{{"dataset.equal_rows": "one_record"}}). Nothing was '
            "spent."
        )


def _check_cells(X: Any, cells: Mapping[str, Sequence[Cell]], columns: Mapping[str, Any]) -> None:
    """Refuse a declaration that reads nothing of a column, mostly for the column's type: it would
    lose every record, or tell nothing of it. Warn of one that loses some records."""
    for name, said in columns.items():
        declared = _column(name, said)
        levels = declared.get("levels") if isinstance(declared, dict) else None
        if levels:
            known = {*map(level_as_text, levels)}
            read = [not is_missing(cell) and level_as_text(cell) in known for cell in cells[name]]
        else:
            read = np.isfinite(matrix_of([name], cells.__getitem__)[:, 0]).tolist()
        lost = not all(read)
        if lost and not any(read):
            what = f"none of the levels {levels}" if levels else "no number"
            way_out = (
                "Give those that it may hold, as they are written there"
                if levels
                else "If its values are words or days, give its levels"
            )
            raise BadInput(
                f"columns: {name} holds {what}; its type is {X[name].dtype}. {way_out}. Nothing "
                "was spent."
            )
        if lost and not levels and not (isinstance(declared, dict) and "missing" in declared):
            warnings.warn(
                f"records without a number in {name} count as nothing, and there are some. Give a "
                f'public figure for them: columns={{"{name}": {{..., "missing": 40}}}}.',
                stacklevel=4,
            )


def _arrays_as_bytes(X: NDArray[Any], beside: Mapping[str, Sequence[Cell]]) -> bytes:
    """The records of a matrix, or images, as a source."""
    written = BytesIO()
    arrays: dict[str, Any] = {"features" if X.ndim == 2 else "images": X}
    np.savez(written, **arrays | {f"{role}s": np.array(values) for role, values in beside.items()})
    return written.getvalue()


def _labels_by_row(source: bytes) -> dict[tuple[Any, ...], set[str]]:
    """The labels of each row that `fit` handed over. A row is known by all that stands beside its
    label."""
    if source.startswith(b"PK"):  # an archive of NumPy
        with np.load(BytesIO(source)) as arrays:
            columns = {name: [*arrays[name]] for name in arrays.files}
        labels = [*map(str, columns.pop("labels"))]
        values: list[Any] = [
            [one.tobytes() if one.ndim else str(one) for one in column]
            for column in columns.values()
        ]
    else:
        names, batches = frame_in(source)
        cells = {
            name: [cell for batch in batches for cell in batch.column(place).to_pylist()]
            for place, name in enumerate(names)
        }
        labels = ["" if label is None else text_of(label) for label in cells.pop("label")]
        values = [*cells.values()]
    labels_by_row: dict[tuple[Any, ...], set[str]] = {}
    for row, label in zip(zip(*values, strict=True), labels, strict=True):
        labels_by_row.setdefault(row, set()).add(label)
    return labels_by_row


def _is_frame(X: Any) -> bool:
    """Whether X has named columns. What can make an array of itself, as sparse matrices do, is a
    matrix."""
    return hasattr(X, "columns") and not hasattr(X, "toarray")


def _records_file(X: Any) -> str:
    """What the records' file is called in the project: its suffix is the kind of source."""
    return "records.frame" if _is_frame(X) else "records.npz"


def _source_of(X: Any) -> str:
    """The source as the config names it, relative to the project."""
    file = _records_file(X)
    return f"{file.partition('.')[2]}:data/{file}"


def _records(X: Any) -> Any:
    """A DataFrame as it is; whatever else there is as a matrix of numbers, or as 8-bit images."""
    if _is_frame(X):
        return X
    if hasattr(X, "toarray"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if 8 * math.prod(X.shape) > memory:
            raise BadInput(
                f"X is sparse, and its {X.shape[1]:,} columns written out need more memory than "
                "this machine has. Give fewer columns: choose them, hash them, or project them by "
                "a map that was fitted on public records."
            )
        X = X.toarray()
    # NumPy would fail here with a message that names no argument
    if getattr(getattr(X, "device", None), "type", "cpu") != "cpu":
        raise BadInput("X lies on a GPU. Give X.cpu().")
    if isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "fiub":
        X = np.ma.filled(X.astype(np.float64), np.nan)
    try:
        result = np.asarray(X)
    except ValueError:
        raise BadInput("X must be a matrix: its rows are not of one length.") from None
    if result.dtype == np.uint8 and (
        result.ndim == 3 or (result.ndim == 4 and result.shape[3] == 3)
    ):
        return result
    if result.ndim != 2 or result.dtype.kind not in "fiub" or not result.shape[1]:
        raise BadInput(
            f"X must be a matrix of numbers, a DataFrame, or 8-bit images of shape (records, "
            f"height, width) or (records, height, width, 3); given was {result.dtype} of shape "
            f"{result.shape}."
        )
    return result.astype(np.float64)


def _cells_of(X: Any, names: Iterable[str]) -> dict[str, list[Cell]]:
    """What these columns of a DataFrame say, each cell by itself: how pandas writes a column hangs
    on all that stands in it."""
    return {name: [*map(_text, _values(X[name]))] for name in names}


def _values(column: Any) -> list[Any]:
    """A column's values, with nothing where a mask says that one is missing."""
    if hasattr(column, "to_list"):
        return [*column.to_list()]
    # of a list each by itself: one word among numbers would make an array of words
    if not isinstance(column, list | tuple):
        masked = isinstance(column, np.ma.MaskedArray)
        column = (column if masked else np.asarray(column)).tolist()
    return [
        None if one is np.ma.masked else getattr(one, "item", lambda one=one: one)()
        for one in column
    ]


def _text(value: Any) -> Cell:
    """What a cell, a label, an id or a level says, by its value alone; nothing of what is missing.
    A day has no hour, and truth is 0 or 1."""
    if isinstance(value, bytes):
        value = text_of(value)
    if isinstance(value, str):
        return value
    if is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    name = number_as_text(value)
    return name.removesuffix(MIDNIGHT) if isinstance(value, datetime) else name


def _values_of_records(y: Any, what: str) -> list[Any]:
    """What y holds for each record, one value each."""
    if getattr(getattr(y, "device", None), "type", "cpu") != "cpu":
        raise BadInput("y lies on a GPU. Give y.cpu().")
    shape = np.shape(y)
    if len(shape) == 2 and shape[1] == 1:
        y = (y if isinstance(y, np.ma.MaskedArray) else np.asarray(y))[:, 0]
    elif len(shape) != 1:
        raise BadInput(f"y must hold one {what} for each record; given was shape {shape}.")
    return _values(y)


def _column(name: str, said: Any) -> Any:
    """A column as the config has it."""
    if said is None:
        return name
    if isinstance(said, tuple) and len(said) == 2 and all(isinstance(one, Real) for one in said):
        return {"name": name, "range": [float(value) for value in said]}
    if isinstance(said, list):
        return {"name": name, "levels": [*map(_text, said)]}
    if isinstance(said, Mapping):
        listed = {key: [*said[key]] for key in ("range", "levels") if key in said}
        if "levels" in listed:
            listed["levels"] = [*map(_text, listed["levels"])]
        return {"name": name, **said, **listed}
    raise BadInput(
        f"columns: {name} is given as {said!r}. Give its public range as a pair, (0, 100), its "
        'levels as a list, ["f", "m"], or None.'
    )


def _plain(value: Any) -> Any:
    """What NumPy holds, as YAML writes it."""
    if isinstance(value, Mapping):
        return {name: _plain(inside) for name, inside in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(inside) for inside in value]
    return value.item() if isinstance(value, np.generic) else value


def _columns_of(written: Sequence[Any]) -> dict[str, Any]:
    """What `_column` wrote, as it was given: columns, or bounds."""
    columns = {
        one if isinstance(one, str) else one["name"]: None
        if isinstance(one, str)
        else tuple(one["range"])
        if one.keys() == {"name", "range"}
        else one["levels"]
        if one.keys() == {"name", "levels"}
        else {key: value for key, value in one.items() if key != "name"}
        for one in written
    }
    if columns and [*columns] == [f"x{place}" for place in range(len(columns))]:
        return {"bounds": tuple([*ends] for ends in zip(*columns.values(), strict=True))}
    return {"columns": columns or None}


def _other_keys(written: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Keys of a config beside those that are parameters, by their dotted names."""
    for name, value in written.items():
        key = f"{above}{name}"
        if isinstance(value, Mapping) and value:
            yield from _other_keys(value, f"{key}.")
        elif key not in PARAMETERS:
            yield key, value


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all, and only where it is new: Snakemake goes by when a file was written."""
    if path.exists() and path.read_bytes() == data:
        return
    partial = path.with_name(f".{path.name}.partial")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    partial.replace(path)


def _refuse_callers(name: str) -> None:
    """Refuse what scikit-learn does around this fit that epsilon does not count: fits on parts of
    the records, and steps of a pipeline that learn from all of them.

    It looks up the stack: an estimator is told nothing of who fits it, and its copies are equal to
    the original.
    """
    steps: list[str] = []
    frame = sys._getframe()
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(FITS_MANY):
            raise Refused(TUNING.format(name=name))
        match frame.f_locals.get("self"):
            case Pipeline() as caller:
                steps += (one for step in caller.steps[:-1] for one in _learning_steps(*step))
            case TransformedTargetRegressor() as caller:
                steps += _learning_steps("transformer", caller.transformer)
        frame = frame.f_back  # type: ignore[assignment]
    if steps:
        raise Refused(LEARNT.format(steps=" and ".join(dict.fromkeys(steps)), name=name))


def _learning_steps(name: str, step: Any) -> list[str]:
    """A step of a pipeline, or those inside it, that learn from records; none where each record is
    looked at by itself.

    Known are scikit-learn's own, by what they say of themselves. Anybody else's may learn.
    """
    kind = type(step)
    if step is None or isinstance(step, str):  # "passthrough", or "drop"
        return []
    inside: list[tuple[str, Any]] = []
    if kind is Pipeline:
        inside = step.steps
    elif kind is FeatureUnion:
        inside = step.transformer_list
    elif kind is ColumnTransformer:
        inside = [("remainder", step.remainder)]
        for part, transformer, columns in step.transformers:
            # a function of all records may choose by their values, make_column_selector does not
            chosen = callable(columns) and not type(columns).__module__.startswith("sklearn.")
            inside.append(
                (f"{part} (a function chooses its columns)", columns)
                if chosen
                else (part, transformer)
            )
    elif kind.__module__.startswith("sklearn.") and (
        kind.__name__ in LEARN_NOTHING or not step.__sklearn_tags__().requires_fit
    ):
        return []
    else:
        return [f"{name} ({kind.__name__})"]
    return [one for part, here in inside for one in _learning_steps(f"{name}.{part}", here)]
