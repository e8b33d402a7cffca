"""What `dpladder check` saw in each record, by one look into each, several at a time.

What it saw in files is kept in the private folder, as it goes. A check that was cut off goes on
where it stopped, and a later one looks into files that are new or changed. An answer is known by a
keyed digest of the file's path, size and times, and of all that decides how it is read. No run
builds on it: a run reads every record itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dpladder.data import bags, images, texts
from dpladder.data.census import Seen, size_of, sizes_of
from dpladder.data.digests import content_digest, ids_of, prf
from dpladder.data.files import explain_os_errors, private_folder
from dpladder.data.parallel import cores, ordered_map
from dpladder.data.reading import read_contents
from dpladder.data.sources import Source, Stretch
from dpladder.privacy.ids import Ids
from dpladder.progress import progress

BATCH = 64  # records a thread takes at a time, and so what a kill loses of each
READERS = ("dpladder", "pillow", "pydicom")
Answer = tuple[str, Seen]  # a record's content by its digest, and its size or what is wrong


@dataclass
class CheckCache:
    """A look into every record of a source, for the operator alone.

    Attributes:
        path: of the answers of before, in the private folder.
        largest: pixels that an image may have.
        seen: of each record its size, or what is wrong with it.
        spared: how many files were not read again.
    """

    path: Path
    largest: int
    seen: list[Seen] = field(default_factory=list)
    spared: int = 0

    def digests(self, source: Source, key: bytes) -> Iterator[tuple[Stretch, Ids]]:
        """The source's records, some at a time, with a digest of each one's content, as
        prepare.survey asks for it. On the way `seen` is filled."""
        if source.blocks is not None:
            for stretch, contents in read_contents(source, key):
                assert stretch.block is not None, "a table is read in blocks"
                self.seen += sizes_of(stretch.block.features)
                yield stretch, contents
            return
        count, known = len(source.labels), dict(_answers(self.path))

        def look(start: int) -> list[tuple[str, Answer, bool]]:
            return [
                self._check_record(source, index, key, known)
                for index in range(start, min(start + BATCH, count))
            ]

        starts = range(0, count, BATCH)
        with progress("looking into records", count) as advance:
            for start, batch in zip(starts, ordered_map(look, starts, cores()), strict=True):
                fresh = [(question, *answer) for question, answer, new in batch if new and question]
                if fresh:
                    _append_lines(self.path, fresh)
                self.spared += sum(not new for *_, new in batch)
                self.seen += [size for _, (_, size), _ in batch]
                digests = ids_of(bytes.fromhex(digest) for _, (digest, _), _ in batch)
                yield Stretch(source, start, start + len(batch)), digests
                advance(len(batch))

    def _check_record(
        self, source: Source, index: int, key: bytes, known: dict[str, Answer]
    ) -> tuple[str, Answer, bool]:
        """The question, empty where the record is no file; its answer; and whether that is new."""
        question = self._question(source, index, key)
        if question in known:
            return question, known[question], False
        content = source.read(index)
        digest = content_digest(content, key).hex()
        return question, (digest, size_of(source, content, self.largest)), True

    def _question(self, source: Source, index: int, key: bytes) -> str:
        """A keyed digest of a file's path, size and times, and of how it is read; empty where the
        record is no regular file."""
        path = None if source.files is None else source.files[index]
        try:
            status = os.lstat(path) if isinstance(path, Path) else None
        except (OSError, ValueError):
            status = None
        if status is None or not stat.S_ISREG(status.st_mode):  # a link's target may change
            return ""
        facts = (
            f"{source.kind} {source.width} {status.st_size} {status.st_mtime_ns} "
            f"{status.st_ctime_ns}"
        )
        way = str(path).encode("utf-8", "surrogateescape")
        return prf(key, b"look", way, facts.encode(), self._rules).hex()

    @cached_property
    def _rules(self) -> bytes:
        """All that decides what is seen in a file: a reader that was installed since reads more."""
        code = [Path(module.__file__ or "").read_bytes() for module in (bags, images, texts)]
        return repr((self.largest, [*map(_version, READERS)], code)).encode()


def _version(package: str) -> str:
    """A package's version; empty where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _answers(path: Path) -> Iterator[tuple[str, Answer]]:
    """What was kept. A line that a kill cut short is none."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        for line in file:
            with contextlib.suppress(ValueError, TypeError):
                question, digest, size = json.loads(line)
                yield question, (digest, size)


def _append_lines(path: Path, lines: list[tuple[str, str, Seen]]) -> None:
    """Append, after a line that may have been cut short."""
    private_folder(path.parent)
    with explain_os_errors(path):
        descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        with open(descriptor, "ab") as file:
            file.write("".join(["\n", *(f"{json.dumps(line)}\n" for line in lines)]).encode())
