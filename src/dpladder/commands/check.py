"""`dpladder check`: what a run would read, for the operator's eyes alone. It writes into the
private folder alone, what it saw in each file and what is asked for; its exit code tells
nothing.

Nothing here is noised or charged. Counts go to the operator's terminal alone, and nobody else may
see what is printed (contract: no-tell). Whether a source can be opened at all stops a run as
well, so that much an exit code may tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dpladder.config import Config, Project
from dpladder.config.dataset_sections import Dataset
from dpladder.config.learner_sections import Tuning
from dpladder.config.records import Matching, Spans
from dpladder.data import census, column_report
from dpladder.data.check_cache import CheckCache
from dpladder.data.files import private_folder, write_private
from dpladder.data.folders import Tangled
from dpladder.data.layout import Layout, layout_of
from dpladder.data.prepare import (
    EMPTY,
    PUBLIC_PARTS,
    Keys,
    Part,
    Survey,
    survey,
    units_digest,
)
from dpladder.data.spans import cutter
from dpladder.data.stops import check_kind, refuse_too_few_different_rows
from dpladder.data.tables import Worded
from dpladder.jobs.prepare_dataset import keys_of
from dpladder.jobs.task import COSTS
from dpladder.network.language import check_packages
from dpladder.network.public import check_name
from dpladder.plan import follows
from dpladder.plan.checked import mark_of
from dpladder.plan.clone import commit
from dpladder.plan.curves import crosses_as_text
from dpladder.plan.startup import open_resolved
from dpladder.privacy.accounting.events import partition_version
from dpladder.privacy.ids import Ids, contains, id_set
from dpladder.privacy.ledger import book as ledgers
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.ledger.units import NO_IDS, Known, same_data, sharing, units_of
from dpladder.privacy.statement.build import MODIFIED
from dpladder.wording import printable

PUBLIC: tuple[Part, ...] = ("validation", "test", "sample", "unlabelled")


@dataclass(frozen=True)
class SourceAsked:
    """A source as a run reads it.

    Attributes:
        dataset: the section; a further test's source stands in it as the public test.
        part: None for the private source; else the part that a source declared public is for.
        matching: how a further test's labels find the model's classes; None elsewhere.
        name: of the part or the further test; empty for the private source.
        spans: how documents are cut; None where records are whole.
    """

    dataset: Dataset
    part: Part | None
    matching: Matching | None
    name: str
    spans: Spans | None = None


def check(configs: Sequence[Path]) -> None:
    """Print what each source of a project holds, one after the other.

    What counts as nothing and why, which classes and columns there are, and what would stop a run.
    The same survey as a run's own is made, with home's keys, so parts and copies are those of the
    run.

    Args:
        configs: config files of the project.

    Raises:
        BadInput: a source cannot be opened as the config says, a network cannot be had, or names of
            what is trained fit none of its tensors.
    """
    project = open_resolved(configs)
    for config in project.experiments.values():
        _check_network(config)
    keys = keys_of(open_home())  # the run's own: a unit lies here in the part where it will lie
    print(
        "For your eyes only: what follows is private. What was seen is kept in the private folder "
        "alone, so that a check that is cut off goes on where it stopped.\n"
    )
    at = commit()
    if at is not None and at.endswith(MODIFIED):
        print(
            f"modified code: this clone's files are not those of commit {at.removesuffix(MODIFIED)}"
        )
    # Sources come with the private one of an experiment first, so public ones are compared with it.
    private: dict[str, Ids] = {}  # contents by lineage
    for config, looked in _sources(project):
        cutting = None if looked.spans is None else cutter(looked.spans)
        largest = config.features.largest_image
        folder = Path(config.paths.private) / config.dataset.lineage / "check"
        look = CheckCache(folder / "looks.jsonl", largest)
        try:
            surveyed = survey(
                looked.dataset,
                keys,
                looked.part,
                looked.matching,
                cutting,
                look.digests,
                private_folder(folder),
            )
        # A link that no reader may follow. The operator sees where it is; the error's message does
        # not say.
        except Tangled as tangled:
            print(printable(tangled.where))
            raise
        except Worded as worded:
            _print_columns(column_report.columns_at(worded.path, worded.layout), worded.layout)
            raise
        protected = looked.part is None and config.mode == "release"
        expected = looked.dataset.nominal_size if protected else None
        counted = census.check_every_record(surveyed, largest, look.seen, expected)
        if looked.part in PUBLIC_PARTS:  # what they hold stops no run
            counted = replace(counted, stops=False)
        # Contents are keyed digests: equal records are equal here, whatever they are called.
        contents = id_set(surveyed.rows.content[surveyed.rows.label >= 0])
        if protected:
            private[looked.dataset.lineage] = contents
        if look.spared:
            print(f"spared   {look.spared:,} files have not changed since they were looked into")
        print(census.report(counted))
        if not surveyed.source.labels:
            print(f"warning  {surveyed.source.name} {EMPTY} A run would spend on nothing.\n")
        if protected:
            for note in _other_data(looked.dataset, surveyed, contents, keys):
                print(f"warning  {note}\n")
        else:
            private_contents = private.get(looked.dataset.lineage, NO_IDS)
            for note in _private_records(looked.dataset.lineage, private_contents, contents):
                print(
                    "warning  this source is declared public, and holds private records: whatever "
                    f"is computed on them would leave without noise. {note}.\n"
                )
        if hint := column_report.hint_at_encoding(surveyed.source):
            print(printable(hint))
        layout = layout_of(looked.dataset, surveyed.grouping)
        _print_columns(column_report.columns_of(surveyed.source, layout), layout)
        for line in crosses_as_text(config):
            print(printable(line))
        if looked.part is None and looked.dataset.equal_rows is None:
            refuse_too_few_different_rows(surveyed, looked.dataset.nominal_size)
        check_kind(config.features, surveyed.source)
        if looked.part is None:
            write_private(mark_of(config), b"")
    folders = {
        config.dataset.lineage: Path(config.paths.private) / config.dataset.lineage
        for config in project.experiments.values()
    }
    for lineage, folder in sorted(folders.items()):
        if (costs := folder / "diagnostics" / COSTS).is_file():
            print(f"time and memory of each private job on lineage {lineage}: {costs}")


def _check_network(config: Config) -> None:
    """Refuse a public network that cannot be had, cut or tuned as an experiment says."""
    features = config.features
    if features.takes == "texts":
        check_packages(features.model)
    elif features.takes == "images":
        check_name(features.model)
    if features.until is not None:
        # torch, which takes seconds to load
        from dpladder.learn.finetune.parts import check_tuning
        from dpladder.network.cut import check_cut

        network = check_cut(features)
        if isinstance(config.learner, Tuning):
            check_tuning(config.learner, network)


def _other_data(dataset: Dataset, surveyed: Survey, contents: Ids, keys: Keys) -> Iterator[str]:
    """Where this is not the data that its lineage and its version were.

    Units are compared by keyed ids with those that home noted at the version's first COMMIT. A
    shared lineage is found by contents and numbered users (contract: disjoint-parts).
    """
    home = open_home()
    state = ledgers.load(Ledger(home, dataset.lineage))
    first = state.first_units.get(partition_version(dataset.version))
    if first not in (None, units_digest(surveyed.everybody, keys)):
        there = contains(units_of(home, dataset.lineage, first), surveyed.everybody)
        strangers = len(there) - np.count_nonzero(there)
        yield (
            f"{strangers:,} of {len(surveyed.everybody):,} units were not there when this version "
            "of the data was first asked, and count as nothing; what was released is restored as "
            "it is. Data that changed is a version of its own, which pays again: give it a number, "
            "dataset.version."
        )
    known = Known(surveyed.everybody, surveyed.numbered, contents)
    for name in sharing(home, dataset.lineage, known):
        yield (
            f"lineage {name} holds the same data: a person in both bears what both spend, and no "
            "statement adds that up. Make them one lineage, or take what they share out of one."
        )


def _private_records(lineage: str, private_contents: Ids, contents: Ids) -> Iterator[str]:
    """What to do about records that are declared public, where the project's own lineage protects
    them, or another one of this home."""
    if same_data(contents, private_contents):
        yield "To hold out some of the private data, use dataset.split"
    for name in sharing(open_home(), lineage, Known(contents=contents)):
        yield f"Lineage {name} of this home protects the same data: name another source"


def _print_columns(reports: Sequence[column_report.ColumnReport], layout: Layout) -> None:
    for line in column_report.lines(reports, bool(layout.columns)):
        print(printable(line))


def _sources(project: Project) -> Iterator[tuple[Config, SourceAsked]]:
    """Each source once, with the first experiment that reads it."""
    seen: set[SourceAsked] = set()
    for config in project.experiments.values():
        # The dataclass is frozen, so equal sources of several experiments are one.
        for looked in _sources_of(config):
            if looked not in seen:
                seen.add(looked)
                yield config, looked


def _sources_of(config: Config) -> Iterator[SourceAsked]:
    """The sources of one experiment: the private one first, then those declared public."""
    spans = config.spans
    yield SourceAsked(config.dataset, None, None, "", spans)
    for part in PUBLIC:
        if getattr(config.dataset, f"public_{part}") is not None:
            yield SourceAsked(config.dataset, part, None, part, spans)
    for also in follows.further_tests(config).values():
        if also.matched is not None:
            source = follows.source_of(config, also.part)
            yield SourceAsked(
                config.dataset.model_copy(update={"public_test": source}),
                "test",
                also.matched,
                also.name,
            )
