"""A final model with all that its predictions take: three lines in a notebook.

    import dpladder
    model = dpladder.load("results/main/final/1/weights.safetensors")
    model.predict(["cat.jpg", "dog.jpg"]).labels

Records go the way that they went in the workflow, through the same functions. So predictions are
those that `evaluate` counts, to the last bit on the same kind of processor.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.config.features_sections import FOLDER, Features
from dpladder.config.label_sets import MANY
from dpladder.config.learner_sections import Tuning
from dpladder.config.learners import learner_of
from dpladder.config.level_texts import number_as_text
from dpladder.data.backbones import encoder
from dpladder.data.cache import public_network_of
from dpladder.data.centre import Map
from dpladder.data.columns import matrix_of, name_of, restored_columns
from dpladder.data.depths import depths_by_name, stored_depths
from dpladder.data.encoders import Encoder
from dpladder.data.extract import WORDS, Check, encode, load_content
from dpladder.data.inputs import open_inputs
from dpladder.data.layout import Layout
from dpladder.data.parallel import cores
from dpladder.data.reading import place_of
from dpladder.data.sources import Files, Source, bytes_of, text, text_bytes
from dpladder.errors import BadInput, Refused
from dpladder.learn import score
from dpladder.learn import weights as files
from dpladder.learn.effects import Additive, effects_of
from dpladder.learn.interface import Constants, Weights, sigmoid_bias
from dpladder.learn.trainings import weights_of
from dpladder.network.facts import INPUT
from dpladder.network.public import digest
from dpladder.privacy.statement.check import (
    is_sealed,
    key_of_seal,
    parse_statement,
    place_in,
    read_statement,
)
from dpladder.privacy.statement.documents import Statement
from dpladder.privacy.statement.facts import ModelFacts, lineage_facts
from dpladder.progress import progress
from dpladder.public_files import file_digest
from dpladder.wording import printable

Inputs = Any  # a path, paths, images as arrays or of Pillow, texts, or a matrix of features


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model says of records, a row each; of pooled users, a row for each user.

    Attributes:
        classes: in the order of the columns; of a model that predicts a number, its name.
        probabilities: (rows, classes); nan where a record cannot be read.
        problems: what is wrong with a record, or nothing.
        findings: whether each class is told by itself.
        ids: the records' own ids; None where they have none.
        users: whom each row is about; None where rows are records.
        numbers: (rows,), what is predicted where that is a number, nan where a record cannot be
            read; None of classes, and `probabilities` has no column then.
    """

    classes: tuple[str, ...]
    probabilities: NDArray[np.float64]
    problems: tuple[str | None, ...]
    findings: bool = False
    ids: tuple[str, ...] | None = None
    users: tuple[str, ...] | None = None
    numbers: NDArray[np.float64] | None = None

    @property
    def labels(self) -> list[str | float | None]:
        """The most probable class; of findings the names, between bars, of all that are more
        probable than not; of a number, that. None where a record cannot be read, so that nobody
        takes a guess for an answer."""
        if self.numbers is not None:
            pairs = zip(self.numbers.tolist(), self.problems, strict=True)
            return [None if problem else number for number, problem in pairs]
        if self.findings:
            said = zip(np.nan_to_num(self.probabilities) > 0.5, self.problems, strict=True)
            return [None if wrong else self._class_names(present) for present, wrong in said]
        best = np.nan_to_num(self.probabilities).argmax(axis=1)
        pairs = zip(best, self.problems, strict=True)
        return [None if problem else self.classes[place] for place, problem in pairs]

    def labels_at(self, threshold: float) -> list[str | float | None]:
        """The second of two classes where its probability is `threshold` at least, or all findings
        that are so probable.

        Args:
            threshold: above 0 and below 1, where somebody acts.

        Raises:
            BadInput: the model tells other than two classes apart, or the threshold is none.
        """
        if not 0.0 < threshold < 1.0:
            raise BadInput(f"threshold {threshold}: give a probability above 0 and below 1.")
        if self.numbers is not None or (not self.findings and len(self.classes) != 2):
            raise BadInput(
                f"a threshold is for two classes or for findings, and this model says "
                f"{', '.join(self.classes)}. Leave it out."
            )
        acts = np.nan_to_num(self.probabilities) >= threshold
        said = zip(acts, self.problems, strict=True)
        if self.findings:
            return [None if wrong else self._class_names(present) for present, wrong in said]
        return [None if wrong else self.classes[int(second)] for (_, second), wrong in said]

    def _class_names(self, present: NDArray[np.bool_]) -> str:
        return "|".join(self.classes[place] for place in np.flatnonzero(present))


@dataclass(frozen=True, eq=False)
class Model:
    """A released model. Whatever it is asked is post-processing, and free.

    Attributes:
        path: of its file.
        weights: as they were released.
        map: from stored features to what the weights meet.
        features: how records become stored features.
        classes: in the order of predictions' columns.
        facts: all that the file says of itself.
        privacy: what the statement beside it says of it; None where there is no statement.
        threads: CPU threads.
    """

    path: Path
    weights: Weights
    map: Map
    features: Features
    classes: tuple[str, ...]
    facts: Mapping[str, Any]
    privacy: ModelFacts | None
    threads: int

    @property
    def network(self) -> Mapping[str, Any]:
        """The public network, by the facts that its outputs follow from."""
        public_network: Mapping[str, Any] = self.facts["inference"]["network"]
        return public_network

    @property
    def speaks(self) -> bool:
        """Whether it is a language model, which writes texts and names no classes."""
        return self.features.pooling == "none"

    @property
    def findings(self) -> bool:
        """Whether it tells each class by itself."""
        return bool(self.facts.get("config", {}).get("dataset.labels") == MANY)

    @property
    def calibrated(self) -> bool | None:
        """Whether its probabilities were put right when it was trained
        (learn/measures/calibrate.py); None where it has none."""
        if self.speaks or self.range is not None:
            return None
        known = self.facts.get("calibration", {})
        return known.get("share") is not None or known.get("law", 1.0) != 1.0

    @property
    def range(self) -> tuple[float, float] | None:
        """Of the number that it predicts; None where it tells classes apart."""
        ends = self.facts["inference"].get("range")
        return None if ends is None else (float(ends[0]), float(ends[1]))

    @property
    def pooled(self) -> bool:
        """Whether all records of a user are one to it, the mean of theirs."""
        unit = self.facts.get("config", {}).get("dataset.unit", {})
        return bool(unit.get("pool", "none") != "none")

    @property
    def bias(self) -> float:
        """What its training added to every logit of a finding."""
        return sigmoid_bias(len(self.classes)) if self.findings else 0.0

    def public_language_model(self) -> tuple[Any, Any]:
        """The public network that it was trained from, as it was, and its tokenizer.

        Raises:
            BadInput: the network or the tokenizer at hand is another one.
        """
        from dpladder.network.language import language_model_of, tokenizer_digest

        network, tokenizer = language_model_of(self.features)
        digests = {
            "weights": digest(network.state_dict()),
            "tokenizer": tokenizer_digest(tokenizer),
        }
        for what, sha256 in digests.items():
            if sha256 != self.network[f"{what}_sha256"]:
                raise BadInput(
                    f"the {what} of {self.features.model} at hand are not those that this model "
                    "was trained from. Give the model's own version."
                )
        return network, tokenizer

    def predict(self, inputs: Inputs, users: Sequence[str | None] | None = None) -> Predictions:
        """The probability of each class for each record, or each user where records are pooled; or
        the number that the model predicts.

        It is post-processing: free, however often.

        Args:
            inputs: paths, images, texts, a table or an array of features.
            users: whose the records are, unless the inputs say so; for models of pooled records.

        Returns:
            Probabilities of shape (records or users, classes), or numbers, with ids and problems.

        Raises:
            BadInput: the model names no classes, or takes other inputs than these.
        """
        if self.speaks:
            raise BadInput(
                f"{self.path} is a language model, which names no classes. Use dpladder generate."
            )
        source = self._source(inputs)
        rows, problems = self._rows(source)
        ids = None if source.ids is None else tuple(map(text, source.ids))
        names: tuple[str, ...] | None = None
        if self.pooled and (users or source.users) is not None:
            owners = _owners(source, users or source.users or ())
            # the mean of a user's records that can be read, at the precision they are kept at
            readable = [
                [one for one in places if problems[one] is None] or places[:1]
                for places in owners.values()
            ]
            means = [rows[places].mean(axis=0, dtype=np.float64) for places in readable]
            rows = np.array(means).reshape(len(owners), *rows.shape[1:]).astype(rows.dtype)
            problems, ids = [problems[places[0]] for places in readable], None
            names = tuple(
                one if isinstance(one, str) else _placeholder_user(source, one) for one in owners
            )
        logits = self.logits(rows)
        unread = [place for place, problem in enumerate(problems) if problem]
        if self.range is not None:
            least, largest = self.range
            numbers = least + score.place_of_logit(logits[:, 0]) * (largest - least)
            numbers[unread] = np.nan
            none = np.empty((len(numbers), 0))
            return Predictions(self.classes, none, tuple(problems), False, ids, names, numbers)
        probabilities = score.sigmoid(logits) if self.findings else score.softmax(logits)
        probabilities[unread] = np.nan
        return Predictions(self.classes, probabilities, tuple(problems), self.findings, ids, names)

    def predict_proba(self, inputs: Inputs) -> NDArray[np.float64]:
        """Probabilities as scikit-learn has them: (records, classes). A record that cannot be read
        has NaN in its row, and `predict` says why.

        Raises:
            BadInput: the model predicts a number.
        """
        if self.range is not None:
            raise BadInput(f"{self.path} predicts a number, and no probabilities. Use predict.")
        return self.predict(inputs).probabilities

    def logits(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Logits of stored features.

        Args:
            rows: features as they are stored, (records, width), before the mean is taken away.

        Returns:
            float64 of shape (records, classes), what training added to each logit of a finding
            included.
        """
        logits_of = None if self.tuned is None else weights_of(self.tuned[0]).logits(*self.tuned)
        return (logits_of or score.logits)(self.weights, self.map(rows)) + self.bias

    @cached_property
    def tuned(self) -> tuple[Tuning, Constants] | None:
        """How a part of the network itself was trained, if one was: its section in the config, and
        public sizes. Its weights are told as differences then."""
        cut = public_network_of(self.network, self.features.weights)
        if cut is None:
            return None
        learner = learner_of(self.facts["config"]["learner"])
        assert isinstance(learner, Tuning), "nothing else is trained above a cut (config/check.py)"
        return learner, Constants(1, len(self.classes), self.network["width"], network=cut)

    @cached_property
    def effects(self) -> Additive | None:
        """The sum over a table's columns that it is; None where it is none."""
        return effects_of(self.weights, self.facts)

    def curves(self) -> Any:
        """How each column of a table moves predictions, as a DataFrame: free, for it follows from
        the release.

        Returns:
            Rows by column and place, with the effect, and `sd`, the deviation of the training's
            noise in it. `of` is the class, or the number. Columns come first that move predictions
            most. Effects are less their mean over the declared range, in log-odds or the number's
            own unit.

        Raises:
            BadInput: predictions are no sum over columns.
        """
        import pandas as pd

        effects = self._additive().effects()
        return pd.DataFrame(
            [
                {
                    "column": " x ".join(one.columns),
                    "at": " x ".join(number_as_text(cell) for cell in cells),
                    "of": name,
                    "effect": values[place],
                    "sd": one.sd[place] if one.sd else None,
                }
                for one in effects.each
                for name, values in zip(effects.of, one.values, strict=True)
                for place, cells in enumerate(product(*one.at))
            ]
        )

    def explain(self, inputs: Inputs) -> Any:
        """What each column adds to each prediction, beside what it adds on average over its range.

        Args:
            inputs: as `predict` takes them.

        Returns:
            A DataFrame with a row for each record: `base`, then a column for each one of the table
            or cross of two, and for each class where there are several. They add up to the
            log-odds of what is predicted; or to the number, before it is cut to its range. NaN
            where a record cannot be read.

        Raises:
            BadInput: predictions are no sum over columns, or of people and not of records.
        """
        import pandas as pd

        sums = self._additive()
        if self.pooled:
            raise BadInput(f"{self.path} predicts for people, and explain is of records.")
        rows, problems = self._rows(self._source(inputs))
        terms = sums.terms(rows, self.map.mean)
        total = self.logits(rows) @ sums.sums.T
        if self.range is not None:
            total += sum(self.range) / 2
        columns = {"base": total - sum(terms.values()), **terms}
        table = pd.DataFrame(
            {
                printable(name if len(sums.outputs) == 1 else f"{name} ({what})"): values[:, place]
                for name, values in columns.items()
                for place, what in enumerate(sums.outputs)
            }
        )
        table[[problem is not None for problem in problems]] = np.nan
        return table

    def _additive(self) -> Additive:
        if self.effects is None:
            raise BadInput(
                f"{self.path} is no sum over the columns of a table. Train one with ranges or "
                "levels in dataset.columns, and features.curves."
            )
        return self.effects

    def preprocess(self, inputs: Inputs) -> NDArray[np.float32]:
        """Records as the head sees them: features, less the mean, at the public length.

        Args:
            inputs: as `predict` takes them.

        Returns:
            float32 of shape (records, width). A record that cannot be read has features of zero;
            `predict` says which it is.
        """
        return self.map(self._rows(self._source(inputs))[0])

    def predict_file(self, path: Path) -> tuple[Source, Predictions]:
        """What the model says of a file or folder.

        Args:
            path: of an image, a text or a bag, of a folder with them, or of a table. It needs no
                labels.

        Returns:
            The source, which names its records, and the predictions, a row for each or, where
            records are pooled, for each user.

        Raises:
            BadInput: nothing is there, or it holds other records than the model takes.
        """
        source = self._source(path)
        return source, self.predict(source)

    @property
    def by_place(self) -> bool:
        """Whether it knows the columns of a table by their place: names that the config did not
        tell may be private."""
        return self.features.model == "none" and not self.facts["inference"].get("columns")

    def _rows(self, source: Source) -> tuple[NDArray[Any], list[str | None]]:
        """Stored rows, and what is wrong with each; None where nothing is. Records go through the
        functions that training took, at the batch size of training."""
        network = self._encoder(source)
        count, size = len(source.labels), network.batch
        batches = [np.arange(start, min(start + size, count)) for start in range(0, count, size)]
        rows, checks = [np.empty((0, network.width), self.features.stored)], [np.empty(0, np.uint8)]

        def load(index: int) -> tuple[NDArray[Any], Check]:
            return load_content(source.read(index), network)

        encoded = encode(network, self.features, load, batches, self.threads)
        with progress("predicting", count) as advance:
            for batch, (encoded_rows, check) in zip(batches, encoded, strict=True):
                rows.append(encoded_rows[: len(batch)])
                checks.append(check[: len(batch)])
                advance(len(batch))
        return np.concatenate(rows), [WORDS.get(Check(check)) for check in np.concatenate(checks)]

    def _encoder(self, source: Source) -> Encoder:
        """What makes features of these records, or an error where the model takes other ones."""
        if self.features.model != "none":
            source_kind = source.kind if source.kind in ("features", "texts") else "images"
            if source_kind != self.features.takes:
                raise BadInput(
                    f"this model takes {self.features.takes}, which {self.features.model} reads; "
                    f"given were {source_kind}."
                )
            return self._network
        what, width = self.network["transform"], self.network["width"]
        wanted = "features" if what == "bags" else what, width
        if (source.kind, source.width) != wanted:
            loose = {"files": "image files", "texts": "texts"}
            offered = loose.get(source.kind, f"{source.kind} of {source.width}")
            raise BadInput(
                f"this model takes {wanted[0]} of {wanted[1]} numbers for each record; given were "
                f"{offered}."
            )
        return encoder(self.features, source, self.threads)

    @cached_property
    def _network(self) -> Encoder:
        """The public network, which must be the one that the model was trained with."""
        kind: Files = "texts" if self.features.takes == "texts" else "files"
        network = encoder(self.features, Source(kind, bytes, ()), self.threads)
        for what in ("weights", "tokenizer"):
            if network.facts.get(f"{what}_sha256") != self.network.get(f"{what}_sha256"):
                raise BadInput(
                    f"the {what} of {self.features.model} at hand are not those that this model "
                    "was trained with. Give the checkpoint that the config named as "
                    "features.weights, or the model's own version."
                )
        if stored_depths(network.facts) != stored_depths(self.network):
            raise BadInput(
                f"this version of dpladder or timm keeps other depths of {self.features.model} "
                "than the one that this model was trained with. Use that version."
            )
        return network

    def _matrix(self, frame: Any) -> NDArray[np.float64]:
        """A DataFrame's rows as features, by the columns that training read."""
        columns = restored_columns(self.facts["inference"].get("columns", ()))
        if not columns:
            raise BadInput(
                "this model was not trained on named columns. Give a matrix in training's order."
            )
        names = [*map(str, frame.columns)]
        missing = [name for name in map(name_of, columns) if name not in names]
        if missing:
            raise BadInput(
                f"the DataFrame has no column {', '.join(missing)}, which training read."
            )
        return matrix_of(columns, lambda name: frame[name].to_list())

    def _source(self, inputs: Inputs) -> Source:
        """Whatever is given as a source of records without labels."""
        if isinstance(inputs, Source):
            return inputs
        if isinstance(inputs, str | Path):
            facts = self.facts["inference"]
            layout = Layout(
                columns=restored_columns(facts.get("columns", ())),
                named=tuple(facts.get("named", {}).items()),
                labelled=False,
            )
            bag = self.network["width"] if self.network["transform"] == "bags" else 0
            return open_inputs(Path(inputs), layout, self.features.takes == "texts", bag)
        if hasattr(inputs, "columns"):
            inputs = self._matrix(inputs)
        if isinstance(inputs, np.ndarray) and inputs.ndim == 2 and self.features.model == "none":
            return Source(
                "features", lambda index: inputs[index], [None] * len(inputs), width=inputs.shape[1]
            )
        if isinstance(inputs, Sequence | np.ndarray):
            if self.features.takes == "texts":
                return Source("texts", lambda index: _text(inputs[index]), [None] * len(inputs))
            return Source("files", lambda index: _content(inputs[index]), [None] * len(inputs))
        raise BadInput(
            "give paths, a sequence of images or texts, or for a model without a network a matrix "
            "of features."
        )


def _owners(source: Source, users: Sequence[Any]) -> dict[str | int, list[int]]:
    """The records of each user; one without a user is by itself, by its number."""
    if len(users) != len(source.labels):
        raise BadInput(
            f"{len(users)} users were given for {len(source.labels)} records: give one for each."
        )
    owners: dict[str | int, list[int]] = {}
    for index, user in enumerate(users):
        name = "" if user is None or user != user else text(user)
        owners.setdefault(name or index, []).append(index)
    return owners


def _placeholder_user(source: Source, index: int) -> str:
    """What a record without a user is called among users; no name that one of them may bear."""
    place = place_of(source, index)
    return place if isinstance(place, str) else f"record {place}"


def _content(image: Any) -> Any:
    """A path's bytes; bytes, arrays of pixels and what Pillow opened as they are."""
    return bytes_of(Path(image)) if isinstance(image, str | Path) else image


def _text(value: Any) -> Any:
    """A text itself, or a file's by its `Path`."""
    return bytes_of(value) if isinstance(value, Path) else text_bytes(value)


def _network_at(facts: Mapping[str, Any], network: str | Path | None) -> tuple[str, str]:
    """The public network and its weights, as a config would name them here."""
    name, weights = str(facts["model"]), str(facts["weights"])
    if not name.startswith(FOLDER):
        return name, weights if network is None else str(network)
    folder = Path(name.removeprefix(FOLDER) if network is None else network).expanduser()
    if not folder.is_dir():
        raise BadInput(f"the network's folder {folder} is not here: give its path as the network.")
    return f"{FOLDER}{folder}", weights


def load(path: str | Path, network: str | Path | None = None, threads: int | None = None) -> Model:
    """A final model by its file, with what the statement beside it says of it.

    The public network itself is loaded at the first prediction. There it is refused if it is
    another one than the model was trained with.

    Args:
        path: the file of weights, such as results/main/final/1/weights.safetensors.
        network: the public network's checkpoint or folder, where the config named one.
        threads: CPU threads; by default one for each core.

    Raises:
        BadInput: the file holds no final model, or weights that are no numbers, or says of itself
            what no run writes; or the network's folder or checkpoint is not named.
        Refused: a statement beside it is about other bytes (contract: signed-bytes).
    """
    file = Path(path)
    weights, mean, facts = files.load_with_mean(file)
    if "inference" not in facts:
        raise BadInput(
            f"{file} is no final model: give "
            "results/<experiment>/final/<epsilon>/weights.safetensors."
        )
    if not all(np.isfinite(layer).all() for layer in weights):
        raise BadInput(
            f"{file} holds weights that are no numbers, so it predicts nothing: its training ran "
            "away. Train again, at a smaller step size."
        )
    try:
        return _model_of(file, weights, mean, facts, network, threads or cores())
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(
            f"{file} says of itself what no run of dpladder writes. Give a file that train_final "
            "wrote."
        ) from error


def _model_of(
    file: Path,
    weights: Weights,
    mean: NDArray[np.float64] | None,
    facts: Mapping[str, Any],
    network: str | Path | None,
    threads: int,
) -> Model:
    """The model that a file describes; its facts may be anything that somebody wrote."""
    network_facts, mapped = facts["inference"]["network"], facts["inference"]["map"]
    name, network_tensors = _network_at(network_facts, network)
    if network_facts["weights"] == "local" and network is None:
        raise BadInput(
            f"{file} was trained on {name} with a checkpoint of your own: give its path as the "
            "network."
        )
    known = {
        "batch_size": network_facts["batch_size"],
        "model": name,
        "weights": network_tensors,
        "until": network_facts.get("until") or None,
        "normalize": bool(network_facts["normalize"]),
        "image_size": network_facts["image_size"] or None,
        **{
            key: network_facts[key]
            for key in ("largest_image", "tokens", "pooling")
            if key in network_facts
        },
    }
    seen = mapped["depths"]
    depths = seen and depths_by_name(seen["layers"], stored_depths(network_facts), seen["length"])
    if seen:
        known["layers"] = seen["layers"]
    if known["until"] != INPUT:  # pixels and tokens are kept as they are, whatever the config says
        known["dtype"] = network_facts["dtype"]
    features = Features.model_validate_json(json.dumps(known))
    return Model(
        file,
        weights,
        Map(mean, **{**mapped, "depths": depths}),
        features,
        tuple(facts["inference"]["classes"]),
        facts,
        _stated(file),
        threads,
    )


def _stated(file: Path) -> ModelFacts | None:
    """What the statement of the run says of this very file, where the file still lies in the run's
    results. What was put in its place is refused: the statement says nothing of it."""
    for results in file.resolve().parents:
        # beside each release lies a record of that name, and no page
        if (results / "privacy.json").exists() and (results / "privacy.md").exists():
            document = read_statement(results)
            if not is_sealed(document, key_of_seal(results)):
                raise Refused(
                    f"{results / 'privacy.json'} changed since it was written, or another home "
                    "wrote it, so nothing can be said of the models beside it. `dpladder verify` "
                    "names what is wrong; delete it, and dpladder run makes it again, free. Or set "
                    "DPLADDER_HOME to the home that wrote it."
                )
            statement = parse_statement(document)
            for lineage in lineage_facts(statement):
                for place in lineage.stated.artifacts:
                    if place_in(results, place).resolve() == file.resolve():
                        _refuse_changed_files(statement, results, place)
                        return ModelFacts(lineage, place)
            return None
    return None


def _refuse_changed_files(statement: Statement, results: Path, place: str) -> None:
    """Refuse a model whose bytes are not those that the statement is about, or whose scores beside
    it are not: a model card shows both. Other files may be of a run that goes on."""
    for path in (place, str(Path(place).with_name("metrics.json"))):
        file = place_in(results, path)
        if file.exists() and statement.files.get(path) != file_digest(file):
            raise Refused(
                f"{file} changed since the statement of its run was written. Delete it, and "
                "dpladder run restores what was released, free; or move it out of results/, where "
                "no statement speaks for it."
            )
