"""`dpladder register`: what a privacy officer files beside the statement, from the statement
alone.

Nothing is looked up and nobody is contacted: files are written for people to complete and to send.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dpladder.commands.output import checked_statement
from dpladder.errors import BadInput, Refused
from dpladder.privacy.statement.check import (
    parse_statement,
    place_in,
    root_of,
    vouched_by_report,
)
from dpladder.privacy.statement.deployment import Deployment
from dpladder.privacy.statement.documents import SealedStatement
from dpladder.privacy.statement.facts import LineageFacts, lineage_facts
from dpladder.privacy.statement.registry import (
    document,
    entry,
    entry_as_yaml,
    facts_of,
    file_name,
    required_keys,
)
from dpladder.section import from_document

HAZARDS = "nist-sp-800-226.md"


def register(results: Path, folder: Path) -> None:
    """Write what a privacy officer files: an entry of a registry, a checklist of hazards, and an
    impact assessment that people fill in.

    All of it follows from the statement, which is checked first. Entry and checklist are written
    anew each time; an assessment that is there already holds people's answers, and stays.

    Args:
        results: results folder of a finished run in release mode.
        folder: where the files go; made where it is not there.

    Raises:
        BadInput: the run is research, its config has no `deployment`, or it is of several lineages.
        Refused: no figure of the lineage is a guarantee.
    """
    statement = parse_statement(checked_statement(results, "Nothing was written."))
    deployment = _load_deployment(statement)
    lineage = _lineage(statement)
    facts = facts_of(lineage, deployment, dict(_scores(lineage, results)))
    files = {
        file_name(deployment, facts["published"]): entry_as_yaml(entry(facts)),
        HAZARDS: document("hazards.md.jinja", facts),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    filled_in = {folder / f"dpia-{statement.id[:8]}.{form}": form for form in ("md", "html")}
    existing = tuple(path for path in filled_in if path.exists())
    for path, form in filled_in.items():
        if path not in existing:
            path.write_text(document(f"impact.{form}.jinja", facts), "utf-8")
    for path in (*(folder / name for name in files), *filled_in):
        if path in existing:
            print(f"kept {path}, which may hold your answers; move it away to have it anew")
        else:
            print(f"wrote {path}")


def _scores(lineage: LineageFacts, results: Path) -> Iterator[tuple[str, str]]:
    """How good each final model is, by its path: of summaries that the report's record vouches
    for, which was checked with the statement."""
    from dpladder.report.summary import read_summary

    vouched = vouched_by_report(results)
    for path, model in lineage.stated.artifacts.items():
        summary = f"{root_of(lineage.statement)}/{model.experiment}/summary.json"
        targets = read_summary(place_in(results, summary)).targets if summary in vouched else ()
        yield from (
            (path, str(one.test.headline))
            for one in targets
            if one.target_epsilon == model.target_epsilon
        )


def _load_deployment(statement: SealedStatement) -> Deployment:
    """What the config's `deployment` said when the run was made, which the statement has sealed."""
    if statement.mode == "research":
        raise BadInput(
            "these results are of mode: research, which is no release: there is nothing to "
            "register."
        )
    if statement.deployment is None:
        raise BadInput(
            "the statement says nothing of who publishes what. Add deployment: with "
            f"{', '.join(required_keys(Deployment))} to the config and run again, which costs "
            "nothing; config/README.md explains each key."
        )
    deployment: Deployment = from_document(Deployment, statement.deployment)
    return deployment


def _lineage(statement: SealedStatement) -> LineageFacts:
    """The one that the models are of."""
    trained = lineage_facts(statement)
    # An entry's epsilon is of one lineage; two would each need an entry of their own.
    if len(trained) != 1:
        raise BadInput(
            f"these results are models of {len(trained)} lineages, "
            f"{', '.join(one.name for one in trained)}, and an entry is about one. Run each in a "
            "project of its own: what was released is restored, free."
        )
    [lineage] = trained
    if lineage.bound is None:
        raise Refused(
            f"lineage {lineage.name} has no limit for life, and some of its releases followed from "
            "earlier ones, so no figure is a guarantee: there is nothing to register."
        )
    return lineage
