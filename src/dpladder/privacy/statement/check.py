"""Holding a statement against the records beside it: from the files alone, without the data, the
ledger or the machine.

Every figure is composed anew from the spends that the statement lists, and those are compared with
the records. Whether spends are missing altogether, the ledger alone can say (`dpladder ledger
verify`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dpladder import formats
from dpladder.config.section import from_document
from dpladder.errors import BadInput, DpladderError, Refused
from dpladder.privacy.accounting.composition import compose
from dpladder.privacy.accounting.events import Spend, from_json
from dpladder.privacy.ledger.anchors import read as read_anchors
from dpladder.privacy.ledger.book import lineages
from dpladder.privacy.ledger.home import open_home, subkey
from dpladder.privacy.ledger.state import Anchor, job_label
from dpladder.privacy.statement.build import (
    common_value,
    cost_of_choice,
    earlier_releases,
    figure_of,
    figures_of,
    models_of,
    mu_of_spend,
    seal,
)
from dpladder.privacy.statement.documents import FINALS, Cost, Promise, SealedStatement, Stated
from dpladder.privacy.statement.page import page
from dpladder.privacy.statement.records import Document, file_digest, spends_of

# Whatever an edited file may cause when it is read as a statement or a record. `check` turns it
# into
# a sentence: a reader wants to know which file it is, and no traceback.
_UNREADABLE = (
    DpladderError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
)
# relative: what two machines' arithmetic may differ by when a statement is recomputed
ROUNDING = 1e-9


def check(statement: Document, results: Path, key: bytes | None = None) -> list[str]:
    """Every disagreement between a statement and the files beside it.

    Args:
        statement: as read from privacy.json.
        results: its folder, an absolute path.
        key: home's, to see a forgery; without it a slip alone is seen.

    Returns:
        A sentence for each, which begins with the file; none where all agrees.
    """
    problems = _check_records(statement, results)
    if not is_sealed(statement, key):
        problems.append("privacy.json: changed since it was written")
    recorded, unread = _recorded_spends(statement, results)
    problems += unread
    try:
        stated = parse_statement(statement)
    except BadInput as error:
        return [*problems, str(error)]
    try:
        problems += _check_files(stated, results, key)
    except _UNREADABLE as error:
        problems.append(f"privacy.json: what it is about cannot be checked ({error})")
    for term in ("relation", "delta"):
        if getattr(stated, term) != common_value(
            getattr(dataset, term) for dataset in stated.datasets.values()
        ):
            problems.append(f"privacy.json: {term} is not that of its lineages")
    for lineage, dataset in stated.datasets.items():
        try:
            problems += _check_dataset(
                lineage, dataset, recorded, limited=stated.mode != "research"
            )
            problems += _check_totals(lineage, dataset)
        except _UNREADABLE as error:
            problems.append(f"privacy.json: dataset {lineage} cannot be recomputed ({error})")
    return problems


def is_sealed(document: Mapping[str, Any], key: bytes | None = None) -> bool:
    """Whether a statement, or the last record, is as it was written: by its digest, and by its MAC
    too for who has the key.

    Args:
        document: as read, with its `id` and `seal`.
        key: home's, for this purpose; without it anybody could have made the digest anew.
    """
    fresh = seal(document, key or b"")
    return fresh["id"] == document.get("id") and (
        key is None or fresh["seal"] == document.get("seal")
    )


REPORT = "report.privacy.json"  # the record of the last job, which vouches for what is made last
AGAIN = "dpladder run makes it again, free"


def _check_files(stated: SealedStatement, results: Path, key: bytes | None) -> Iterator[str]:
    """Everything that the statement is about, byte for byte, and all that was made from it. What is
    made last, the report and the summaries, came after the statement. So the last job's own sealed
    record vouches for it."""
    yield from _changed_files(stated.files, results, "the statement was written")
    models = [
        _path_under_owner(path, asdict(model))
        for dataset in stated.datasets.values()
        for path, model in dataset.artifacts.items()
    ]
    yield from (
        f"privacy.json: names no digest of {path}" for path in models if path not in stated.files
    )
    record = results / REPORT
    vouched: Mapping[str, str] = {}
    if record.is_file():
        try:
            document = json.loads(record.read_text("utf-8"))
            vouched = dict(document["files"])
            if not is_sealed(document, key):
                yield f"{record.relative_to(results.parent)}: changed since it was written"
            elif document["statement"] != stated.id:
                yield (
                    f"{results.name}/report.html: made from another statement than privacy.json; "
                    f"{AGAIN}"
                )
            else:
                yield from _changed_files(vouched, results, "the report was written")
        except _UNREADABLE as error:
            yield f"{record.relative_to(results.parent)}: cannot be read ({error})"
    of_models = {
        model.experiment for one in stated.datasets.values() for model in one.artifacts.values()
    }
    made_last = [
        results / "report.html",
        *(results / name / "summary.json" for name in sorted(of_models)),
    ]
    if lacks_report(stated.files, results):
        folders = [file.parent for file in made_last]
        pictures = ("summary.csv", "figures/*", "tables/*")
        made_last += [file for folder in folders for one in pictures for file in folder.glob(one)]
    for file in sorted(made_last):
        path = str(file.relative_to(results.parent))
        if file.is_file() and path not in vouched:
            yield f"{path}: nothing vouches for it; {AGAIN}"
    yield from _check_page(stated, results, vouched)


def lacks_report(files: Mapping[str, str], results: Path) -> bool:
    """Whether a run's last record is not there, which alone vouches for its report, summaries,
    tables and figures.

    Args:
        files: that the statement is about; own code's names none, and has no report.
        results: its folder.
    """
    return bool(files) and not (results / REPORT).is_file()


def _changed_files(files: Mapping[str, str], results: Path, since: str) -> Iterator[str]:
    """A sentence for each file that is missing, or whose bytes are not those of its digest."""
    for path, digest in files.items():
        file = results.parent / path
        if not file.is_file():
            yield f"{path}: missing, the statement is about it; dpladder run restores it, free"
        elif file_digest(file) != digest:
            yield f"{path}: changed since {since}; delete it, and {AGAIN}"


def _check_page(
    stated: SealedStatement, results: Path, vouched: Mapping[str, str]
) -> Iterator[str]:
    """The page that is signed follows from the statement. Another version may word it otherwise.
    Then its digest in the last record has to do."""
    file = results / "privacy.md"
    path = str(file.relative_to(results.parent))
    if not file.is_file():
        yield f"{path}: missing; delete privacy.json, and {AGAIN}"
    elif file.read_bytes() != page(stated).encode():
        if stated.origin.versions.get("dpladder") == metadata.version("dpladder"):
            yield f"{path}: does not say what privacy.json says; delete both, and {AGAIN}"
        elif path not in vouched:
            yield (
                f"{path}: written by dpladder {stated.origin.versions.get('dpladder')}, and this "
                "one words it otherwise. Verify it with that version"
            )


def _check_records(statement: Mapping[str, Any], results: Path) -> list[str]:
    """The records that the statement counts are there, as they were. And no record lies here of a
    cost that it does not count: nobody may leave out what was spent."""
    problems = []
    for path, digest in statement["records"].items():
        file = results.parent / path
        if not file.is_file():
            problems.append(
                f"{path}: missing, the statement counts on it; dpladder run makes it again, or "
                "where the config asks for it no longer, dpladder run --forcerun compose_privacy "
                "states what is there"
            )
        elif file_digest(file) != digest:
            problems.append(f"{path}: changed since the statement was written")
    known = {results.parent / path for path in statement["records"]} | {results / "privacy.json"}
    for file in sorted(set(results.rglob("*privacy.json")) - known):
        record = json.loads(file.read_text("utf-8"))
        if "free" not in record and not _is_counted(record, statement):
            problems.append(
                f"{file.relative_to(results.parent)}: a cost that the statement does not count. If "
                "a run under another config left it, move or delete what lies beside it; the "
                "ledger keeps its charge"
            )
    return problems


def _is_counted(record: Mapping[str, Any], statement: Mapping[str, Any]) -> bool:
    """Whether a record is of a release that the statement counts, though the config asks for it no
    longer, or its experiment was renamed."""
    try:
        counted = {
            line["question"]
            for dataset in statement["datasets"].values()
            for line in (*dataset["spends"], *dataset["outside_this_dag"]["spends"])
            if line["superseded"]
            or line not in dataset["spends"]
            or line["experiment"] != record["wildcards"].get("experiment", line["experiment"])
        }
        return record["question"] in counted
    except _UNREADABLE:
        return False


def _path_under_owner(path: str, model: Mapping[str, Any]) -> str:
    """Where a model lies: with the experiment that trained it, of those that share it."""
    (owner,) = (job["experiment"] for job in model["jobs"] if job["rule"] in FINALS)
    return path.replace(f"results/{model['experiment']}/", f"results/{owner}/", 1)


def _recorded_spends(
    statement: Mapping[str, Any], results: Path
) -> tuple[list[tuple[str, Spend]], list[str]]:
    """The spends of all records with their questions, and the records that cannot be read."""
    spends: list[tuple[str, Spend]] = []
    problems = []
    for path in statement["records"]:
        file = results.parent / path
        if file.is_file():
            try:
                record = json.loads(file.read_text("utf-8"))
                if "spends" in record:
                    spends += ((record["question"], spend) for spend in spends_of(record))
            except _UNREADABLE as error:
                problems.append(f"{path}: cannot be read as a privacy record ({error})")
    return spends, problems


def _check_dataset(
    lineage: str, dataset: Stated, recorded: Sequence[tuple[str, Spend]], limited: bool
) -> list[str]:
    """Compute each figure of one lineage again from the spends under it, and compare these with the
    records. A reader who trusts neither needs the ledger (`dpladder ledger verify`)."""
    delta = dataset.delta
    where = f"privacy.json: dataset {lineage}"
    lines = dataset.spends
    outside = dataset.outside_this_dag
    spends_here = [one for one in recorded if one[1].lineage == lineage]
    stated = [(line.question, from_json(line.spend)) for line in lines if not line.superseded]
    problems = []
    if sorted(map(repr, spends_here)) != sorted(map(repr, stated)):
        problems.append(f"{where}: its spends are not those of the records")
    problems += [
        f"{where}: {key} is {getattr(dataset, key)}, but its spends compose to {fresh}"
        for key, fresh in vars(figures_of(lines, delta)).items()
        if not _is_same(fresh, getattr(dataset, key))
    ]
    if not _is_same(figure_of(outside.spends, delta), Cost(outside.epsilon, outside.mu)):
        problems.append(f"{where}: what is outside this workflow does not compose to its figure")
    if dataset.planned != (not earlier_releases([*lines, *outside.spends])):
        problems.append(
            f"{where}: whether all was planned beforehand does not follow from its spends"
        )
    problems += [
        f"{where}: the figures of {job_label(line.job)} are not those of its event"
        for line in (*lines, *outside.spends)
        for spend in [from_json(line.spend)]
        if not _is_same(line.mu, mu_of_spend(spend))
        or not _is_same(line.epsilon, compose([spend], delta).epsilon)
    ]
    return problems + _check_models(where, lineage, dataset, limited)


def _check_totals(lineage: str, dataset: Stated) -> Iterator[str]:
    """Of the whole lineage, and of whichever model is chosen."""
    where = f"privacy.json: dataset {lineage}"
    lines = dataset.spends
    outside = dataset.outside_this_dag.spends
    if not _is_same(cost_of_choice([*lines, *outside], dataset.delta), dataset.chosen):
        yield f"{where}: the figure of a model chosen among several does not follow from its spends"
    spends = [from_json(line.spend) for line in (*lines, *outside)]
    if not _is_same(dataset.lifetime_spent, compose(spends, dataset.delta).epsilon):
        yield f"{where}: what was ever spent on it does not follow from its spends"


def _check_models(where: str, lineage: str, dataset: Stated, limited: bool) -> list[str]:
    """Compose each model's price again from the lines of its own jobs and its ancestors'."""
    promises = [
        Promise(path, model.experiment, lineage, model.target_epsilon, model.jobs)
        for path, model in dataset.artifacts.items()
    ]
    try:
        beside = dataset.outside_this_dag.spends
        fresh = models_of(promises, dataset.spends, beside, dataset.delta, limited)
    except Refused as refused:
        return [f"{where}: {refused}"]
    return [
        f"{where}: {path} is stated at {stated.epsilon}, but composes to {fresh[path].epsilon}"
        for path, stated in dataset.artifacts.items()
        if not _is_same(fresh[path], stated)
    ]


def _is_same(a: Any, b: Any) -> bool:
    """Whether two figures, or trees of them, agree but for `ROUNDING`: another machine's arithmetic
    may end in other last bits."""
    if is_dataclass(a) and is_dataclass(b):
        return _is_same(vars(a), vars(b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_is_same(a[key], b[key]) for key in a)
    if isinstance(a, float) and isinstance(b, float | int):
        return math.isclose(a, b, rel_tol=ROUNDING)
    return bool(a == b)


def key_of_seal(results: Path) -> bytes | None:
    """Home's key, where home has a ledger of one of the lineages that these results are about. One
    is enough: a forger may add others, which no home knows.

    Args:
        results: a folder with a statement.

    Returns:
        None where no home of this user knows the lineages, as on another machine. There a slip is
        found, and a forgery is not.

    Raises:
        BadInput: home knows them, and its key cannot be read.
    """
    try:
        home = open_home(create=False)
    except DpladderError:  # others' models may be used beside a home that nobody can open
        return None
    known = lineages(home)
    ours = any(anchor.lineage in known for anchor in anchors_in(results))
    return subkey(home, "ledger") if ours else None


def read_statement(results: Path) -> Document:
    """The statement of a results folder, as it is written: nothing of it is checked but its form
    (`check`).

    Raises:
        BadInput: there is none, it is no JSON or no statement, or another version's format.
    """
    path = results / "privacy.json"
    try:
        statement = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise BadInput(f"{path}: not found; give the results folder of a finished run") from None
    except (OSError, ValueError):
        raise BadInput(
            f"{path}: cannot be read as JSON; restore it, or delete it and run the workflow again"
        ) from None
    if (
        not isinstance(statement, dict)
        or not {"datasets", "records", "id", "seal"} <= statement.keys()
    ):
        raise BadInput(
            f"{path}: not a privacy statement; give the results folder of a finished run"
        )
    formats.check("statement", path, statement.get(formats.KEY))
    read_anchors(results)  # whose number is that of the whole folder
    return statement


def parse_statement(statement: Document) -> SealedStatement:
    """A statement as a value, from what `read_statement` read.

    Args:
        statement: the document.

    Raises:
        BadInput: a key is unknown, missing or of another type.
    """
    try:
        stated: SealedStatement = from_document(SealedStatement, statement)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise BadInput(
            f"privacy.json: cannot be recomputed, for {'.'.join(map(str, wrong['loc'][1:]))} is "
            f"wrong ({wrong['msg']}). Restore it, or delete it and run the workflow again"
        ) from None
    return stated


def anchors_of(statement: Mapping[str, Any]) -> list[Anchor]:
    """Where each lineage's ledger stood when the statement was written."""
    try:
        return [Anchor(**dataset["ledger"]) for dataset in statement["datasets"].values()]
    except _UNREADABLE:
        raise BadInput(
            "privacy.json does not say where its ledgers stood: it was edited; restore it, or "
            "delete it and run the workflow again"
        ) from None


def stated_anchors(results: Path) -> list[Anchor]:
    """Where the ledgers stood when the statement of a results folder was composed, if there is
    one."""
    return anchors_of(read_statement(results)) if (results / "privacy.json").exists() else []


def anchors_in(results: Path) -> list[Anchor]:
    """Every anchor of a results folder: its statement's, and those of the runs since."""
    return [*stated_anchors(results), *read_anchors(results)]
