"""Holding a statement against the records beside it: from the files alone, without the data, the
ledger or the machine.

Every figure is composed anew from the spends that the statement lists, and those are compared with
the records. Whether spends are missing altogether, the ledger alone can say (`dpladder ledger
verify`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dpladder import formats
from dpladder.errors import BadInput, DpladderError, Refused
from dpladder.privacy.accounting.composition import compose
from dpladder.privacy.accounting.events import Spend, from_json
from dpladder.privacy.ledger.anchors import read as read_anchors
from dpladder.privacy.ledger.book import lineages
from dpladder.privacy.ledger.home import open_home, subkey
from dpladder.privacy.ledger.state import Anchor
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
from dpladder.privacy.statement.documents import (
    FINALS,
    Cost,
    SealedStatement,
    Stated,
    Statement,
)
from dpladder.privacy.statement.page import page
from dpladder.privacy.statement.records import Document, spends_of
from dpladder.public_files import file_digest, read_bytes, read_json
from dpladder.section import from_document

# Whatever an edited file may cause when it is read as a statement or a record. `check` turns it
# into a sentence: a reader wants to know which file it is, and no traceback.
_UNREADABLE = (
    DpladderError,
    OSError,
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
        results: its folder, whatever it is called now.
        key: home's, to see a forgery; without it a slip alone is seen.

    Returns:
        A sentence for each, which begins with the file; none where all agrees.
    """
    try:
        stated = parse_statement(statement)
    except BadInput as error:
        return [str(error)]
    known = {**stated.files, **stated.records, **vouched_by_report(results)}
    problems = [*_check_presence(known, results), *_check_records(stated, results)]
    if not is_sealed(statement, key):
        problems.append("privacy.json: changed since it was written")
    recorded, unread = _recorded_spends(stated, results)
    problems += unread
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
RESTORE = "Restore it, or delete it and run the workflow again"
MOVE = "if a run under another config left it, move or delete it: the ledger keeps its charge"
SPOKEN_FOR = ("privacy.json", "privacy.md", "ledger.json", REPORT)  # each has a check of its own
# Suffixes of what jobs publish: weights, sums, records, scores, summaries, tables, figures, pages.
KINDS = frozenset({".csv", ".h5", ".html", ".json", ".md", ".safetensors", ".svg"})
COMPARISONS = Path("comparison")  # asked for by name, no part of the DAG behind a statement


def _check_files(stated: SealedStatement, results: Path, key: bytes | None) -> Iterator[str]:
    """Everything that the statement is about, byte for byte, and all that was made from it. What is
    made last, the report and the summaries, came after the statement. So the last job's own sealed
    record vouches for it. Nothing else of these kinds may lie here."""
    root = root_of(stated)
    yield from _changed_files(stated.files, results, root, f"the statement was written; {DELETE}")
    models = [
        _path_under_owner(path, asdict(model))
        for dataset in stated.datasets.values()
        for path, model in dataset.artifacts.items()
    ]
    yield from (
        f"privacy.json: names no digest of {path}" for path in models if path not in stated.files
    )
    vouched: Mapping[str, str] = {}
    if os.path.lexists(results / REPORT):
        name = _name(results / REPORT, results)
        try:
            document = read_json(results / REPORT)
            vouched = dict(document["files"])
            if not is_sealed(document, key):
                yield f"{name}: changed since it was written"
            elif document["statement"] != stated.id:
                yield (
                    f"{_name(results / 'report.html', results)}: made from another statement than "
                    f"privacy.json; {AGAIN}"
                )
            else:
                since = f"the report was written; {DELETE}"
                yield from _changed_files(vouched, results, root, since)
        except _UNREADABLE as error:
            yield f"{name}: cannot be read ({error})"
    do = MOVE if os.path.lexists(results / REPORT) else f"{REPORT} is missing, and {AGAIN}"
    for path in foreign_files(stated, results, vouched):
        yield f"{path}: nothing vouches for it; {do}"
    yield from _check_page(stated, results, vouched)


def vouched_by_report(results: Path) -> Mapping[str, str]:
    """The digests in a run's last record, by path; none where it cannot be read, which `check`
    tells."""
    try:
        return dict(read_json(results / REPORT)["files"])
    except _UNREADABLE:
        return {}


def foreign_files(stated: SealedStatement, results: Path, vouched: Mapping[str, str]) -> list[str]:
    """The files below a results folder that somebody could take for what the run published, though
    nothing vouches for them. Own code's statement vouches for records alone, so it has none.

    Args:
        stated: the statement.
        results: its folder.
        vouched: what the report's record vouches for.

    Returns:
        Their paths from the results folder on, in alphabetical order.
    """
    return [
        _name(file, results)
        for file in _files_nobody_vouches_for(stated, results, vouched)
        if stated.files and not _is_record(file) and _is_of_published_kind(file, results)
    ]


def unchecked_files(stated: SealedStatement, results: Path) -> list[str]:
    """All other files that nothing vouches for, and that make the statement no less right: notes of
    people, or records of what cost nothing. Arguments and paths are those of `foreign_files`."""
    vouched = vouched_by_report(results)
    foreign = foreign_files(stated, results, vouched)
    there = _files_nobody_vouches_for(stated, results, vouched)
    return [path for file in there if (path := _name(file, results)) not in foreign]


def _files_nobody_vouches_for(
    stated: SealedStatement, results: Path, vouched: Mapping[str, str]
) -> list[Path]:
    """Whatever lies below a results folder beside what is compared with a digest. A link to a
    folder counts as a file: it is not followed, for it may lead anywhere."""
    known = {place_in(results, path) for path in (*stated.files, *stated.records, *vouched)}
    known |= {results / name for name in SPOKEN_FOR}
    there = (
        Path(folder, name)
        for folder, folders, files in os.walk(results)
        for name in (*files, *(one for one in folders if os.path.islink(Path(folder, one))))
    )
    return sorted(file for file in there if file not in known)


def _is_of_published_kind(file: Path, results: Path) -> bool:
    """Whether somebody could take a file for what the run published: by its suffix. A comparison's
    table or figure is none: jobs that are asked for by name leave them."""
    if file.is_dir():
        return True
    compared = file.parent == results / COMPARISONS and file.suffix in (".csv", ".md", ".svg")
    return file.suffix.lower() in KINDS and not compared


def _is_record(file: Path) -> bool:
    return file.name.endswith("privacy.json")


def _name(file: Path, results: Path) -> str:
    """A file below a results folder, from that folder on."""
    return str(Path(results.absolute().name) / file.relative_to(results))


def root_of(stated: Statement) -> str:
    """What the results folder was called when the statement was written: all of its paths begin so.
    The folder may be called otherwise now, be copied, or be a link."""
    return next(iter((*stated.records, *stated.files)), "results").partition("/")[0]


def place_in(results: Path, path: str) -> Path:
    """Where what a statement names lies now.

    Args:
        results: the folder that holds the statement.
        path: as the statement has it, with what the folder was called then as its first name.
    """
    return results / path.partition("/")[2]


def lacks_report(files: Mapping[str, str], results: Path) -> bool:
    """Whether a run's last record is not there, which alone vouches for its report, summaries,
    tables and figures.

    Args:
        files: that the statement is about; own code's names none, and has no report.
        results: its folder.
    """
    return bool(files) and not (results / REPORT).is_file()


DELETE = f"delete it, and {AGAIN}"


def _check_presence(paths: Collection[str], results: Path) -> Iterator[str]:
    """One sentence about all files that are not there: of a folder that was copied in part they are
    most, and the first is enough to tell what happened."""
    gone = [place_in(results, path) for path in paths]
    gone = [file for file in gone if not os.path.lexists(file)]
    if gone:
        more = f" and {len(gone) - 1:,} more of {len(paths):,} files" if gone[1:] else ""
        yield (
            f"{_name(gone[0], results)}{more}: missing. Where the folder is a copy, copy all of "
            "it. Else dpladder run makes them again, free; or where the config asks for them no "
            "longer, dpladder run --forcerun compose_privacy states what is there"
        )


def _changed_files(files: Mapping[str, str], results: Path, root: str, since: str) -> Iterator[str]:
    """A sentence for each file whose bytes are not those of its digest.

    Args:
        files: digests by path. Somebody may have written a path that leads elsewhere.
        results: the folder that all of them lie in.
        root: what it was called when they were written.
        since: when the digests were taken, and what to do.
    """
    for path, digest in files.items():
        if not os.path.normpath(path).startswith(f"{root}{os.sep}"):
            yield f"privacy.json: names {path}, which does not lie in {root}/"
            continue
        file = place_in(results, os.path.normpath(path))
        try:
            if file_digest(file) != digest:
                yield f"{_name(file, results)}: changed since {since}"
        except FileNotFoundError:  # which `_check_presence` tells
            continue
        except BadInput as error:
            yield str(error)


def _check_page(
    stated: SealedStatement, results: Path, vouched: Mapping[str, str]
) -> Iterator[str]:
    """The page that is signed follows from the statement. Another version may word it otherwise.
    Then its digest in the last record has to do."""
    file = results / "privacy.md"
    path = _name(file, results)
    try:
        written = read_bytes(file)
    except FileNotFoundError:
        yield f"{path}: missing; delete privacy.json, and {AGAIN}"
        return
    except BadInput as error:
        yield str(error)
        return
    if written != page(stated).encode():
        if stated.origin.versions.get("dpladder") == metadata.version("dpladder"):
            yield f"{path}: does not say what privacy.json says; delete both, and {AGAIN}"
        elif file not in {place_in(results, one) for one in vouched}:
            yield (
                f"{path}: written by dpladder {stated.origin.versions.get('dpladder')}, and this "
                "one words it otherwise. Verify it with that version"
            )


def _check_records(stated: SealedStatement, results: Path) -> Iterator[str]:
    """The records that the statement counts are there, as they were. And no record lies here of a
    cost that it does not count: nobody may leave out what was spent."""
    since = "the statement was written"
    yield from _changed_files(stated.records, results, root_of(stated), since)
    for file in _files_nobody_vouches_for(stated, results, {}):
        if not _is_record(file):
            continue
        try:
            record = read_json(file)
            fine = "free" in record or _is_counted(record, stated)
        except _UNREADABLE as error:
            yield f"{_name(file, results)}: cannot be read as a privacy record ({error})"
            continue
        if not fine:
            yield f"{_name(file, results)}: a cost that the statement does not count; {MOVE}"


def _is_counted(record: Mapping[str, Any], stated: SealedStatement) -> bool:
    """Whether a record is of a release that the statement counts, though the config asks for it no
    longer, or its experiment was renamed."""
    question, experiment = record["question"], record["wildcards"].get("experiment")
    return any(
        line.question == question
        for dataset in stated.datasets.values()
        for line in (
            *dataset.outside_this_dag.spends,
            *(
                one
                for one in dataset.spends
                if one.superseded or experiment not in (None, one.experiment)
            ),
        )
    )


def _path_under_owner(path: str, model: Mapping[str, Any]) -> str:
    """Where a model lies: with the experiment that trained it, of those that share it."""
    (owner,) = (job["experiment"] for job in model["jobs"] if job["rule"] in FINALS)
    return path.replace(f"results/{model['experiment']}/", f"results/{owner}/", 1)


def _recorded_spends(
    stated: SealedStatement, results: Path
) -> tuple[list[tuple[str, Spend]] | None, list[str]]:
    """The spends of all records with their questions; none where a record is not there, for then
    the others cannot be compared. And the records that cannot be read."""
    spends: list[tuple[str, Spend]] = []
    problems: list[str] = []
    for path in stated.records:
        try:
            record = read_json(place_in(results, path))
            if "spends" in record:
                spends += [(record["question"], spend) for spend in spends_of(record)]
        except FileNotFoundError:  # which `_check_presence` tells
            return None, problems
        except _UNREADABLE as error:
            problems.append(f"{path}: cannot be read as a privacy record ({error})")
    return spends, problems


def _check_dataset(
    lineage: str, dataset: Stated, recorded: Sequence[tuple[str, Spend]] | None, limited: bool
) -> list[str]:
    """Compute each figure of one lineage again from the spends under it, and compare these with the
    records. A reader who trusts neither needs the ledger (`dpladder ledger verify`)."""
    delta = dataset.delta
    where = f"privacy.json: dataset {lineage}"
    lines = dataset.spends
    outside = dataset.outside_this_dag
    spends_here = [one for one in recorded or () if one[1].lineage == lineage]
    stated = [(line.question, from_json(line.spend)) for line in lines if not line.superseded]
    problems = []
    if recorded is not None and sorted(map(repr, spends_here)) != sorted(map(repr, stated)):
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
        f"{where}: the figures of {line.job} are not those of its event"
        for line in (*lines, *outside.spends)
        for spend in [from_json(line.spend)]
        if not _is_same(line.mu, mu_of_spend(spend))
        or not _is_same(line.epsilon, compose([spend], delta).epsilon)
    ]
    return problems + _check_models(where, dataset, limited)


def _check_totals(lineage: str, dataset: Stated) -> Iterator[str]:
    """Problems of what a statement says of the whole lineage, and of whichever model is chosen."""
    where = f"privacy.json: dataset {lineage}"
    lines = dataset.spends
    outside = dataset.outside_this_dag.spends
    if not _is_same(cost_of_choice([*lines, *outside], dataset.delta), dataset.chosen):
        yield f"{where}: the figure of a model chosen among several does not follow from its spends"
    spends = [from_json(line.spend) for line in (*lines, *outside)]
    if not _is_same(dataset.lifetime_spent, compose(spends, dataset.delta).epsilon):
        yield f"{where}: what was ever spent on it does not follow from its spends"


def _check_models(where: str, dataset: Stated, limited: bool) -> list[str]:
    """Compose each model's price again from the lines of its own jobs and its ancestors'."""
    try:
        beside = dataset.outside_this_dag.spends
        fresh = models_of(dataset.artifacts, dataset.spends, beside, dataset.delta, limited)
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
        statement = read_json(path)
    except FileNotFoundError:
        raise BadInput(f"{path}: not found; give the results folder of a finished run") from None
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
            f"wrong ({wrong['msg']}). {RESTORE}"
        ) from None
    return stated


def anchors_of(statement: Mapping[str, Any]) -> list[Anchor]:
    """Where each lineage's ledger stood when the statement was written."""
    try:
        return [Anchor(**dataset["ledger"]) for dataset in statement["datasets"].values()]
    except _UNREADABLE:
        raise BadInput(
            f"privacy.json does not say where its ledgers stood: it was edited. {RESTORE}"
        ) from None


def stated_anchors(results: Path) -> list[Anchor]:
    """Where the ledgers stood when the statement of a results folder was composed, if there is
    one."""
    return anchors_of(read_statement(results)) if (results / "privacy.json").exists() else []


def anchors_in(results: Path) -> list[Anchor]:
    """Every anchor of a results folder: its statement's, and those of the runs since."""
    return [*stated_anchors(results), *read_anchors(results)]
