"""Whether the operator ever looked at a source with `dpladder check`: a mark in the private folder.

It says that a source was looked at, and nothing of what it holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from dpladder.config import Config, Project
from dpladder.config.sources import kind_of


def mark_of(config: Config) -> Path:
    """Where `dpladder check` notes that it went through an experiment's private source."""
    source = blake2b(config.dataset.source.encode(), digest_size=8).hexdigest()
    return Path(config.paths.private) / config.dataset.lineage / "check" / f"{source}.done"


def unchecked_sources(project: Project) -> Iterator[tuple[str, str]]:
    """Each lineage whose source nobody looked at, where it is the operator's own, and a line that
    says so."""
    marks: set[Path] = set()
    for config in project.experiments.values():
        mark, kind = mark_of(config), kind_of(config.dataset.source)
        private = config.mode == "release" and kind is not None and kind.is_private_file
        if private and mark not in marks and not mark.is_file():
            marks.add(mark)
            yield (
                config.dataset.lineage,
                f"lineage {config.dataset.lineage}: `dpladder check` never looked at this source. "
                "It shows on your terminal what counts as nothing, for no price. The run goes on.",
            )
