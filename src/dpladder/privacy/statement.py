"""The statement: what a finished DAG guarantees, composed from every rule's record and held against the ledger.

It carries its own evidence: each spend, a digest of each record, and where each ledger stood. `check` recomputes all of
it from the files alone, so a privacy officer needs neither the data nor the machine.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dpladder.errors import BadInput, DpladderError, Refused
from dpladder.privacy import gdp
from dpladder.privacy.compose import compose
from dpladder.privacy.ledger import Anchor, Held, State, ever, name
from dpladder.privacy.spend import Job, Spend, changed, counts_for, from_json, mu, to_json

Document = dict[str, Any]
_UNREADABLE = (
    DpladderError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
)  # whatever an edited file may cause
ROUNDING = 1e-9  # relative: what two machines' arithmetic may differ by when a statement is recomputed


def build(
    plan: Mapping[str, Any],
    records: Mapping[str, Document],
    digests: Mapping[str, str],
    states: Mapping[str, State],
    anchors: Iterable[Anchor],
    versions: Mapping[str, str],
) -> Document:
    """The statement of a finished DAG. Refused when a record, the ledger and the plan do not tell one story."""
    experiments = {artifact["experiment"] for artifact in plan["artifacts"]}
    recorded = {job_of(record): spends_of(record) for record in records.values() if "spends" in record}
    datasets = {
        lineage: _dataset(plan, lineage, states[lineage], experiments, recorded)
        for lineage in plan["datasets"]
    }
    for anchor in anchors:
        datasets[anchor.lineage]["ledger"] = asdict(anchor)
    return {
        "mode": plan["mode"],
        "relation": plan["relation"],
        "delta": plan["delta"],
        "target_epsilon": plan["target_epsilon"],
        "datasets": datasets,
        "records": dict(sorted(digests.items())),
        "versions": dict(versions),
    }


def seal(statement: Document, key: bytes) -> Document:
    """The statement with its digest, which shows any slip, and a MAC, which shows any forgery to who has the key."""
    text = _canonical(statement)
    return statement | {
        "id": hashlib.sha256(text).hexdigest(),
        "seal": hmac.digest(key, text, "sha256").hex(),
    }


def _canonical(statement: Mapping[str, Any]) -> bytes:
    content = {key: value for key, value in statement.items() if key not in ("id", "seal")}
    return json.dumps(content, sort_keys=True, allow_nan=False).encode()


def _dataset(
    plan: Mapping[str, Any],
    lineage: str,
    state: State,
    experiments: set[str],
    recorded: Mapping[Job, tuple[Spend, ...]],
) -> Document:
    terms = state.terms
    assert terms is not None, "a lineage with finished jobs has an opened ledger"
    charged = [held for held in state.items.values() if held.status != "REFUNDED"]
    inside = [held for held in charged if held.job.experiment in experiments]
    current = {held.job: held for held in inside if held.status == "DONE" and held.job in recorded}
    _agree(recorded, current, lineage)
    outside = [held for held in charged if held.job.experiment not in experiments]
    spends = [_line(spend, held, current) for held in inside for spend in held.spends]
    figures = _figures(spends, terms.delta)
    artifacts = _artifacts(plan, lineage, spends, terms.delta)
    beside = ever(terms, [s for held in outside for s in held.spends])
    return {
        **figures,
        "unit": terms.unit,
        "cap": terms.cap,
        "lifetime_epsilon": terms.lifetime_epsilon,
        "lifetime_spent": ever(terms, state.charged()).epsilon,
        "artifacts": artifacts,
        "outside_this_dag": {"epsilon": beside.epsilon, "mu": beside.mu, "jobs": len(outside)},
        "spends": spends,
    }


def _agree(recorded: Mapping[Job, tuple[Spend, ...]], current: Mapping[Job, Held], lineage: str) -> None:
    for job, spends in recorded.items():
        if spends and spends[0].lineage != lineage:
            continue
        held = current.get(job)
        if held is None or [replace(spend, query=None) for spend in held.spends] != list(spends):
            raise Refused(
                f"the privacy record of {name(job)} disagrees with the ledger of lineage {lineage}. Delete its outputs "
                "and run again: what was released is restored, free."
            )


def _line(spend: Spend, held: Held, current: Mapping[Job, Held]) -> Document:
    return {
        "rule": held.job.rule,
        "experiment": held.job.experiment,
        "wildcards": dict(held.job.wildcards),
        "label": spend.label,
        "partition": ",".join(spend.partition.parts) or "all",
        "mu": mu(spend.event, spend.count),
        "epsilon": None,
        "count": spend.count,
        "superseded": current.get(held.job) is not held,
        "spend": to_json(replace(spend, query=None)),
    }


def _figures(lines: Sequence[Document], delta: float) -> Document:
    """The DAG's composed figures from its spends; each spend's own epsilon is filled in on the way."""
    spends = [from_json(line["spend"]) for line in lines]
    for line, spend in zip(lines, spends, strict=True):
        line["epsilon"] = compose([spend], delta).epsilon
    whole = compose(spends, delta, adaptive=_changed(lines))
    return {
        "epsilon": whole.epsilon,
        "mu": whole.mu,
        "accountant": whole.accountant,
        "partitions": {part: {"epsilon": f.epsilon, "mu": f.mu} for (_, part), f in whole.parts.items()},
    }


def _artifacts(plan: Mapping[str, Any], lineage: str, lines: Sequence[Document], delta: float) -> Document:
    found = {}
    for artifact in plan["artifacts"]:
        if artifact["lineage"] != lineage:
            continue
        borne = borne_by(artifact, lines)
        of_artifact = [from_json(line["spend"]) for line in borne]
        cost = compose(of_artifact, delta, adaptive=_changed(borne))
        target = artifact["target_epsilon"]
        if cost.epsilon > target:
            raise Refused(
                f"{artifact['path']} composes to epsilon = {cost.epsilon:.6f}, above its total of {target:g}. "
                "The statement is not written; `dpladder ledger show` lists what was spent."
            )
        search = [s for s in of_artifact if s.job.rule not in ("train_final", "evaluate")]
        found[artifact["path"]] = {
            "experiment": artifact["experiment"],
            "target_epsilon": target,
            "epsilon": cost.epsilon,
            "mu": cost.mu,
            "search_share": _share(search, of_artifact),
            "jobs": artifact["jobs"],
        }
    return found


def _changed(lines: Iterable[Document]) -> bool:
    return changed(from_json(line["spend"]) for line in lines if line["superseded"])


def borne_by(artifact: Document, lines: Iterable[Document]) -> list[Document]:
    """The lines of a statement that an artifact's figure composes."""
    jobs = {_job_of(job) for job in artifact["jobs"]}
    counts = counts_for(artifact["experiment"], jobs)
    return [line for line in lines if _job_of(line) in jobs or (line["superseded"] and counts(_job_of(line)))]


def _job_of(line: Document) -> Job:
    return Job(line["experiment"], line["rule"], tuple(sorted(line["wildcards"].items())))


def _share(some: Iterable[Spend], of: Sequence[Spend]) -> float | None:
    """Share of mu squared among the spends that read the training part; none of a private search, whose training and
    search are one."""
    if any(spend.job.rule == "private_search" for spend in of):
        return None

    def squares(spends: Iterable[Spend]) -> float:
        return math.fsum((mu(s.event, s.count) or 0.0) ** 2 for s in spends if s.partition.parts != ("test",))

    total = squares(of)
    return squares(some) / total if total else 0.0


# --- checking ------------------------------------------------------------------------------------------------------


def check(statement: Document, results: Path, key: bytes | None = None) -> list[str]:
    """Every disagreement between a statement and the records beside it, each naming its file."""
    problems = _check_records(statement, results)
    fresh = seal(statement, key or b"")
    if fresh["id"] != statement["id"] or (key is not None and fresh["seal"] != statement["seal"]):
        problems.append("privacy.json: changed since it was written")
    recorded, unread = _recorded(statement, results)
    problems += unread
    for lineage, dataset in statement["datasets"].items():
        try:
            problems += _check_dataset(statement, lineage, dataset, recorded)
        except _UNREADABLE as error:
            problems.append(f"privacy.json: dataset {lineage} cannot be recomputed ({error})")
    return problems


def _check_records(statement: Mapping[str, Any], results: Path) -> list[str]:
    problems = []
    for path, digest in statement["records"].items():
        file = results.parent / path
        if not file.is_file():
            problems.append(f"{path}: missing, the statement counts on it")
        elif file_digest(file) != digest:
            problems.append(f"{path}: changed since the statement was written")
    known = {results.parent / path for path in statement["records"]}
    for file in sorted(results.rglob("*privacy.json")):
        if (
            file not in known
            and file != results / "privacy.json"
            and "free" not in json.loads(file.read_text("utf-8"))
        ):
            problems.append(
                f"{file.relative_to(results.parent)}: a cost that the statement does not count. If a run under another "
                "config left it, move or delete what lies beside it; the ledger keeps its charge"
            )
    return problems


def _recorded(statement: Mapping[str, Any], results: Path) -> tuple[list[Spend], list[str]]:
    """The spends of all records, and the records that cannot be read."""
    spends: list[Spend] = []
    problems = []
    for path in statement["records"]:
        file = results.parent / path
        if file.is_file():
            try:
                record = json.loads(file.read_text("utf-8"))
                spends += spends_of(record) if "spends" in record else ()
            except _UNREADABLE as error:
                problems.append(f"{path}: cannot be read as a privacy record ({error})")
    return spends, problems


def _check_dataset(
    statement: Mapping[str, Any], lineage: str, dataset: Mapping[str, Any], recorded: Sequence[Spend]
) -> list[str]:
    delta, where = statement["delta"], f"privacy.json: dataset {lineage}"
    lines = dataset["spends"]
    own = [spend for spend in recorded if spend.lineage == lineage]
    counted = [from_json(line["spend"]) for line in lines if not line["superseded"]]
    problems = []
    if sorted(map(repr, own)) != sorted(map(repr, counted)):
        problems.append(f"{where}: its spends are not those of the records")
    fresh: Document = _figures([dict(line) for line in lines], delta)
    problems += [
        f"{where}: {key} is {dataset[key]}, but its spends compose to {fresh[key]}"
        for key in fresh
        if not _same(fresh[key], dataset[key])
    ]
    for line in lines:
        spend = from_json(line["spend"])
        if not _same(line["mu"], mu(spend.event, spend.count)) or not _same(
            line["epsilon"], compose([spend], delta).epsilon
        ):
            problems.append(f"{where}: the figures of {name(spend.job)} are not those of its event")
    plan = {
        "artifacts": [
            dict(a) | {"lineage": lineage, "path": path} for path, a in dataset["artifacts"].items()
        ],
    }
    try:
        artifacts = _artifacts(plan, lineage, lines, delta)
    except Refused as refused:
        return [*problems, f"{where}: {refused}"]
    problems += [
        f"{where}: {path} is stated at {dataset['artifacts'][path]['epsilon']}, but composes to {artifact['epsilon']}"
        for path, artifact in artifacts.items()
        if not _same(artifact, dataset["artifacts"][path])
    ]
    return problems


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, float) and isinstance(b, float | int):
        return math.isclose(a, b, rel_tol=ROUNDING)
    return bool(a == b)


# --- records -------------------------------------------------------------------------------------------------------


def record_of(rule: str, wildcards: Mapping[str, str], spends: Sequence[Spend]) -> Document:
    """The record of a job that spent. Nothing in it depends on the data."""
    lines = [to_json(replace(spend, query=None)) for spend in spends]
    return {"rule": rule, "wildcards": dict(wildcards), "spends": lines}


def job_of(record: Mapping[str, Any]) -> Job:
    return spends_of(record)[0].job


def spends_of(record: Mapping[str, Any]) -> tuple[Spend, ...]:
    return tuple(from_json(spend) for spend in record["spends"])


def read_statement(results: Path) -> Document:
    """The statement of a results folder."""
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
        or not {"datasets", "records", "delta", "id", "seal"} <= statement.keys()
    ):
        raise BadInput(f"{path}: not a privacy statement; give the results folder of a finished run")
    return statement


def anchors_of(statement: Mapping[str, Any]) -> list[Anchor]:
    return [Anchor(**dataset["ledger"]) for dataset in statement["datasets"].values()]


def file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# --- the page ------------------------------------------------------------------------------------------------------


def page(statement: Mapping[str, Any]) -> str:
    """One page that a privacy officer can sign."""
    lines = ["# Privacy statement", ""]
    if statement["mode"] == "research":
        lines += [
            "**This is not a release.** Research mode: the data is declared public and the noise may be seeded.",
            "",
        ]
    for lineage, dataset in statement["datasets"].items():
        lines += _page_of(statement, lineage, dataset)
    lines += ["## What this rests on", "", *(f"- {line}" for line in _assumptions(statement)), ""]
    lines += ["Signed: ______________________   Date: ______________", ""]
    return "\n".join(lines)


def first_line(statement: Mapping[str, Any], lineage: str) -> str:
    """The lineage's lifetime comes first (contract line 17)."""
    dataset, delta = statement["datasets"][lineage], statement["delta"]
    spent, limit = up(dataset["lifetime_spent"]), dataset["lifetime_epsilon"]
    if statement["mode"] == "research":
        return (
            f"Lineage {lineage}: research mode, NOT A RELEASE. Its data is declared public and its noise may be seeded, so "
            f"nothing is guaranteed; a release would have cost epsilon = {up(dataset['epsilon'])} at delta = {delta:g}."
        )
    if limit is not None:
        return (
            f"Lineage {lineage}: all that was or will ever be released about it is ({limit:g}, {delta:g})-differentially "
            f"private for each {dataset['unit']}, a limit declared beforehand and enforced. So far epsilon = {spent} of it "
            "is spent; that figure is not a guarantee by itself."
        )
    if dataset["outside_this_dag"]["jobs"]:
        return (
            f"Lineage {lineage}: no lifetime limit was declared, so no lifetime guarantee can be given. Everything so far "
            f"composes to epsilon = {spent} at delta = {delta:g}."
        )
    return (
        f"Lineage {lineage}: this DAG is all that was ever spent on it, epsilon = {spent} at delta = {delta:g}. No lifetime "
        "limit was declared, so nothing is promised about later runs."
    )


def _page_of(statement: Mapping[str, Any], lineage: str, dataset: Mapping[str, Any]) -> list[str]:
    delta, beside = statement["delta"], dataset["outside_this_dag"]
    lines = [f"**{first_line(statement, lineage)}**", ""]
    lines += [
        f"This DAG's releases together: epsilon = {up(dataset['epsilon'])}{_mu_of(dataset)}. Outside this DAG: "
        + (
            f"epsilon = {up(beside['epsilon'])} over {beside['jobs']} jobs." if beside["jobs"] else "nothing."
        ),
        "",
        "| final model | its total | epsilon, search included | share of the search in mu^2 |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{path}` | {a['target_epsilon']:g} | {up(a['epsilon'])} | {_percent(a['search_share'])} |"
        for path, a in dataset["artifacts"].items()
    ]
    lines += [
        "",
        "A final model's epsilon holds for someone who sees that model, its scores and its sweep, and nothing else; for "
        "someone who sees everything published here, the joint figure above holds.",
        "",
        "| part of the data | epsilon of all that reads it |",
        "|---|---|",
        *(f"| {part} | {up(figure['epsilon'])} |" for part, figure in dataset["partitions"].items()),
        "",
        "| rule | experiment | buys | reads | times | epsilon alone |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {line['rule']} {_where(line)} | {line['experiment']} | {line['label']}{' (superseded)' if line['superseded'] else ''} "
        f"| {line['partition']} | {line['count']} | {up(line['epsilon'])} |"
        for line in dataset["spends"]
    ]
    if dataset["mu"]:
        groups = ", ".join(f"{k}: {up(gdp.epsilon(k * dataset['mu'], delta), 2)}" for k in (2, 3, 4))
        lines += [
            "",
            f"Several {dataset['unit']}s of one group together bear k mu; epsilon of this DAG for groups of {groups}.",
        ]
    return [*lines, ""]


def _mu_of(dataset: Mapping[str, Any]) -> str:
    return f" (mu = {up(dataset['mu'], 6)})" if dataset["mu"] is not None else ""


def _percent(share: float | None) -> str:
    return "in one with it" if share is None else f"{share:.1%}"


def _where(line: Mapping[str, Any]) -> str:
    return " ".join(f"{key} {value}" for key, value in line["wildcards"].items())


def _assumptions(statement: Mapping[str, Any]) -> list[str]:
    relation = {
        "add_remove": "neighbouring datasets differ by one unit more or less",
        "replace_one": "neighbouring datasets differ by one unit replaced; its old and new version may lie in two parts",
    }[statement["relation"]]
    selected = {
        line["label"]
        for dataset in statement["datasets"].values()
        for line in dataset["spends"]
        if line["spend"]["event"]["type"] in ("RepeatAndSelect", "SubsetSelect")
    }
    secret = (
        "Of a private selection nothing is known but the model that it put out: not how often it trained, nor what lost. "
        + (
            "One that is not padded tells whoever times its job."
            if selected - {"search"}
            else "It was padded."
        )
    )
    return [
        f"Relation {statement['relation']}: {relation}. Delta = {statement['delta']:g}, one for the life of the lineage.",
        "Public by declaration: class list, nominal sizes, clip bounds, grids, split rule, caps, and every other key of the "
        "config; sources named public_test or public_validation.",
        "The secret key and the operator are trusted. Noise comes from a keyed generator, so the guarantee is "
        "computational; it is meant as ideal Gaussian noise, sampled in float64 with hardened sums.",
        "Sums are computed in float32 chunks and float64 totals; clipping leaves a declared slack for that.",
        "Outside the guarantee: run time, memory, scheduler accounting, and validation that stops before anything is spent.",
        *([secret] if selected else []),
        "A person whose records are in two lineages bears both.",
        "Versions: "
        + ", ".join(f"{name} {version}" for name, version in statement["versions"].items())
        + ".",
    ]


def up(value: float, places: int = 4) -> str:
    """A cost as shown: rounded up. The allowance is for decimal digits of binary numbers, far below the last place."""
    return f"{math.ceil(value * 10**places - 1e-9) / 10**places:.{places}f}"
