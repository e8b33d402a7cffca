"""The rows of a CSV file, as a CSV writer wrote them (RFC 4180), a block of them at a time.

A cell with line ends stands between quotes. A line that opens a quote which no later line closes as
a writer would is one bad record, and the lines after it are rows of their own. Of what a CSV writer
wrote no line is such. Bytes that are no UTF-8 are one bad record rather than the end of the run,
and so is a cell of any length.

Lines of the header's number of cells, without quotes or with each where a writer puts it, are read
by Arrow. All others are read one by one, which gives the same (`tests/data/test_blocks.py`).
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from dpladder.data.cells import BINARY, TextCells, texts_of
from dpladder.data.sources import refuse_names_twice
from dpladder.errors import BadInput

BLOCK = 8 << 20  # bytes of a file that are read at a time
FRESH = 3  # blocks whose lines are kept until a worker asks for their cells
DELIMITERS = b",;\t"
# how files of other kinds begin, as `first_line_of` reads them
KINDS = {
    "\x1f\ufffd": "packed by gzip",
    "PK\x03\x04": "a zip archive, as .xlsx is",
    "PAR1": "parquet (parquet:<path>)",
    "\ufffd\ufffd\x11\u0871": "a spreadsheet (.xls)",
    "\ufffdHDF": "HDF5 (hdf5:<path>)",
}
QUOTE = ord('"')
QUOTED_TEXT = b'[^"]*(?:""[^"]*)*'  # what stands between two quotes, with quotes doubled
QUOTED = b'"' + QUOTED_TEXT + b'"'
PLAIN_CELL = {
    b",": b'[^",]*',
    b";": b'[^";]*',
    b"\t": b'(?:[^"\t][^\t]*)?',
}
"""Between tabs a quote may stand inside a cell, where texts are written as they are. Elsewhere such
a cell stands between quotes (RFC 4180): without them it is the end of a longer one."""


@dataclass(frozen=True)
class BlockPlace:
    """Where a block of rows lies in its file.

    Attributes:
        offset, size: in bytes.
        line: its first one, as the operator counts them.
        rows: how many it holds.
    """

    offset: int
    size: int
    line: int
    rows: int


@dataclass(frozen=True)
class RowBlock:
    """Some rows of a CSV file. Private.

    Attributes:
        columns: cells by the name of the column. In a row that does not parse all are missing.
        rest: the text of rows that do not parse; missing elsewhere.
        lines: the line that each row begins with; the header is line 1.
    """

    columns: Mapping[str, TextCells]
    rest: Any
    lines: NDArray[np.int64]


@dataclass
class CsvRows:
    """A CSV file, whose rows are found block by block, as they are asked for. Private.

    Attributes:
        path: of the file.
        names: of its columns, in its first line.
        delimiter: what stands between cells.
        unread: lines that are no row, and count as nothing, as far as rows were found.
        spread: of each row of several lines the first and the last one, so far.
    """

    path: Path
    names: Sequence[str] = ()
    delimiter: bytes = b","
    unread: list[str] = field(default_factory=list)
    spread: list[str] = field(default_factory=list)
    _newline: bytes = b"\n"
    _last_lines: dict[int, int | None] = field(default_factory=dict)
    _places_so_far: list[BlockPlace] = field(default_factory=list)
    _fresh: dict[BlockPlace, _Lines] = field(default_factory=dict)  # of the blocks found last
    _unreadable: bool = False

    @property
    def comma(self) -> bool:
        """Whether decimals may stand behind a comma, which stands nowhere else."""
        return self.delimiter != b","

    @property
    def places(self) -> list[BlockPlace]:
        """Of all blocks, in order."""
        while self.place_of(len(self._places_so_far)) is not None:
            pass
        return self._places_so_far

    def place_of(self, number: int) -> BlockPlace | None:
        """The place of a block, by its number; None behind the last one."""
        if self._unreadable:
            raise _no_table(self.path)
        try:
            while len(self._places_so_far) <= number:
                place, lines_read = next(self._finding, (None, None))
                if place is None or lines_read is None:
                    return None
                self._places_so_far.append(place)
                self._fresh[place] = lines_read
                if len(self._places_so_far) > FRESH:
                    self._fresh.pop(self._places_so_far[-FRESH - 1], None)
        except OSError:
            self._unreadable = True
            raise _no_table(self.path) from None
        return self._places_so_far[number]

    @property
    def likely_count(self) -> int:
        """How many rows it may hold, by the length of those in its first block."""
        first = self.place_of(0)
        return 0 if first is None else first.rows * self.path.stat().st_size // first.size

    @property
    def largest_count(self) -> int:
        """More rows than it holds where each has all its cells, and a byte behind every cell."""
        return self.path.stat().st_size // max(1, len(self.names)) + 1

    @property
    def count(self) -> int:
        """How many rows it holds."""
        return sum(place.rows for place in self.places)

    def block(
        self,
        place: BlockPlace,
        wanted: Collection[str] | None = None,
        some: NDArray[np.bool_] | None = None,
    ) -> RowBlock:
        """The rows of a block.

        Args:
            place: of the block.
            wanted: the columns that are read; None for all.
            some: a mask of its rows; None for all.
        """
        lines_read = self._fresh.pop(place, None) or self._lines_at(place)
        if len(lines_read.irregular) + np.count_nonzero(lines_read.regular) != place.rows:
            raise BadInput(f"{self.path} was written while it was read. Run it again.")
        if some is not None:
            lines_read.keep_rows(some)
        return self._cells(lines_read, place.line, wanted)

    def _lines_at(self, place: BlockPlace) -> _Lines:
        """The lines of a block that was found before."""
        with _bytes_at(self.path) as file:
            file.seek(place.offset)
            return self._lines(file.read(place.size), place.line)

    @cached_property
    def _finding(self) -> Iterator[tuple[BlockPlace, _Lines]]:
        return self._find()

    def _find(self) -> Iterator[tuple[BlockPlace, _Lines]]:
        """The blocks of the file, with the lines of each."""
        with _bytes_at(self.path) as file:
            line, offset = 2, file.seek(_length_of_first_line(file))
            ahead = _Ahead(self.path, self._patterns, self._newline)
            while chunk := file.read(BLOCK):
                chunk += _rest_of_line(file, self._newline)
                lines_read = self._lines(chunk, line, ahead, offset)
                while lines_read.lacks:  # a row that goes on behind the block
                    for _ in range(lines_read.lacks):
                        chunk += _rest_of_line(file, self._newline)
                    lines_read = self._lines(chunk, line, ahead, offset)
                rows = int(lines_read.regular.sum()) + len(lines_read.irregular)
                for first, last, cells in lines_read.irregular:
                    if first != last:
                        self.spread.append(f"lines {line + first}-{line + last}")
                    if cells is None:
                        self.unread.append(f"line {line + first}")
                if rows:
                    yield BlockPlace(offset, len(chunk), line, rows), lines_read
                line, offset = line + len(lines_read.ends), offset + len(chunk)

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
        """Of lines that are a row, and of those that open a quote in their last cell."""
        cell = b"(?:" + QUOTED + b"|" + PLAIN_CELL[self.delimiter] + b")"
        before = b"(?:" + cell + self.delimiter + b")*"
        return re.compile(before + cell + b"\r?"), re.compile(before + b'"' + QUOTED_TEXT)

    def _lines(
        self, chunk: bytes, line: int, ahead: _Ahead | None = None, offset: int = 0
    ) -> _Lines:
        """The lines of a chunk of whole lines, by what they are.

        Args:
            chunk: bytes of the file.
            line: the number of its first line.
            ahead: looks for the ends of rows, where they are not known yet.
            offset: where the chunk lies.
        """
        lines_read = _split(chunk, self._newline, self.delimiter, len(self.names))
        opening, read_until = self._patterns[1], -1
        whole = self._patterns[0]
        for first in np.flatnonzero(lines_read.odd).tolist():
            if first <= read_until:
                continue
            last: int | None = first
            text = lines_read.text(first, first)
            if b'"' in text and not whole.fullmatch(text):
                last = None
                if opening.fullmatch(text):
                    at = line + first
                    if ahead is not None and at not in self._last_lines:
                        self._last_lines[at] = ahead.closing(at + 1, line, offset)
                    end = self._last_lines.get(at)
                    last = None if end is None else end - line
            read_until = first if last is None else last
            if read_until >= len(lines_read.ends):
                lines_read.lacks = read_until + 1 - len(lines_read.ends)
                return lines_read
            cells = None if last is None else self._split_row(lines_read.text(first, read_until))
            lines_read.regular[first + 1 : read_until + 1] = False
            lines_read.irregular.append((first, read_until, cells))
        return lines_read

    def _split_row(self, row: bytes) -> list[bytes] | None:
        """The cells of a row that parses; None where there are more than the header has."""
        row = row.removesuffix(b"\r")
        if b'"' not in row:
            cells = row.split(self.delimiter)
        else:
            pattern = b"(" + QUOTED + b"|" + PLAIN_CELL[self.delimiter] + b")" + self.delimiter
            cells = [
                cell[1:-1].replace(b'""', b'"') if cell.startswith(b'"') else cell
                for cell in re.findall(pattern, row + self.delimiter)
            ]
        width = len(self.names)
        return None if any(cells[width:]) else cells[:width]

    def _cells(self, lines_read: _Lines, line: int, wanted: Collection[str] | None) -> RowBlock:
        """The cells of a chunk's rows, column by column."""
        columns = {
            name: place for place, name in enumerate(self.names) if wanted is None or name in wanted
        }
        places = [*columns.values()]
        try:
            table = _read_regular(lines_read, self.delimiter, len(self.names), places)
        except pa.ArrowException:  # no row may end a run, whatever Arrow finds in it
            table = self._read_one_by_one(lines_read, places)
        irregular, regular = lines_read.irregular, np.flatnonzero(lines_read.regular)
        firsts = np.array([first for first, _, _ in irregular], np.int64)
        lines = np.concatenate([regular, firsts])
        order = np.argsort(lines, kind="stable")

        def column(place: int, read: Any) -> Any:
            if not irregular:
                return read
            more = [
                cells[place] if cells is not None and place < len(cells) else None
                for _, _, cells in irregular
            ]
            return pa.concat_arrays([read, texts_of(more)]).take(pa.array(order))

        rest = pa.nulls(len(regular), BINARY)
        if irregular:
            texts = [
                lines_read.text(first, last).removesuffix(b"\r") if cells is None else None
                for first, last, cells in irregular
            ]
            rest = pa.concat_arrays([rest, texts_of(texts)]).take(pa.array(order))
        arrays = {
            name: TextCells(column(place, read), self.comma)
            for (name, place), read in zip(columns.items(), table, strict=True)
        }
        return RowBlock(arrays, rest, line + lines[order])

    def _read_one_by_one(self, lines_read: _Lines, places: Sequence[int]) -> list[Any]:
        """What `_read_regular` reads."""
        rows = [
            self._split_row(lines_read.text(at, at))
            for at in np.flatnonzero(lines_read.regular).tolist()
        ]
        return [texts_of(cells[place] if cells else None for cells in rows) for place in places]


def rows_of(path: Path) -> CsvRows:
    """A CSV file, whose rows are found as they are asked for.

    Raises:
        BadInput: it is no table, or its header goes over several lines.
    """
    first = first_line_of(path)
    # at a carriage return where the header does, as on old Macs; it may stand in a cell elsewhere
    newline = b"\r" if first.endswith("\r") else b"\n"
    return CsvRows(path, header_of(path), delimiter_in(path).encode(), _newline=newline)


def header_of(path: Path) -> list[str]:
    """The names of a table's columns, all on the first line.

    Raises:
        BadInput: a quote stays open there. What follows would be read as a name, and told, though
            it may be a record's.
    """
    csv.field_size_limit(2**31 - 1)
    line = first_line_of(path)
    if kind := next((kind for start, kind in KINDS.items() if line.startswith(start)), ""):
        raise BadInput(f"{path} is {kind}, and no CSV. Save it as comma-separated text in UTF-8.")
    if "\0" in line:
        raise BadInput(
            f"{path} has NUL bytes in its first line, as UTF-16 without its mark or UTF-32 has. "
            "Save it as UTF-8."
        )
    names = next(csv.reader([line], delimiter=delimiter_in(path)), [])
    if len(names) == 1 and "|" in line:
        raise BadInput(
            f"{path} has | between the names of its columns. Commas, semicolons and tabs are read: "
            "write it with one of these."
        )
    if any(name.endswith(("\n", "\r")) for name in names):
        raise BadInput(
            f"{path} opens a quote in its first line and does not close it there. Write the names "
            "of its columns on one line."
        )
    refuse_names_twice(path, names)
    return names


def delimiter_in(path: Path) -> str:
    """What stands between the names of a table's columns: of comma, semicolon and tab the one that
    its first line has most of."""
    return max(DELIMITERS.decode(), key=first_line_of(path).count)


def first_line_of(path: Path) -> str:
    """The first line of a table, as it stands. What is no character there is replaced."""
    try:
        with _bytes_at(path) as file:
            size = _length_of_first_line(file)
            file.seek(0)
            return file.read(size).decode("utf-8-sig", "replace")
    except OSError:
        raise _no_table(path) from None


def _no_table(path: Path) -> BadInput:
    return BadInput(f"{path} cannot be read as a table. Save it as comma-separated text in UTF-8.")


def _bytes_at(path: Path) -> BinaryIO:
    """A file's bytes, in UTF-8. One that begins with the mark of UTF-16, as spreadsheets write it,
    is read into memory."""
    file = path.open("rb")
    mark = file.read(2)
    file.seek(0)
    if mark not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return file
    with file:
        content = file.read()
    # half a pair of surrogates stays what it is, for names that differ tell people apart
    text = content[: len(content) // 2 * 2].decode("utf-16", "surrogatepass")
    return io.BytesIO(text.encode("utf-8", "surrogatepass"))


def _length_of_first_line(file: BinaryIO) -> int:
    """How many bytes the first line has, with its end: \\n, \\r\\n, or \\r alone."""
    line = b""
    while more := file.readline(1 << 16):
        line += more
        at = line.find(b"\r")
        if 0 <= at < len(line) - 1:
            return at + 1 + line[at + 1 :].startswith(b"\n")
        if line.endswith(b"\n"):
            break
    return len(line)


def _rest_of_line(file: BinaryIO, newline: bytes) -> bytes:
    """The bytes up to the next end of a line, and it."""
    if newline == b"\n":
        return file.readline()
    pieces = []
    while piece := file.read(1 << 16):
        at = piece.find(newline)
        if at >= 0:
            file.seek(at + 1 - len(piece), io.SEEK_CUR)
            pieces.append(piece[: at + 1])
            break
        pieces.append(piece)
    return b"".join(pieces)


@dataclass
class _Lines:
    """The lines of a chunk.

    Attributes:
        chunk: the bytes.
        newline: what ends a line.
        ends: of each line, its end's place.
        regular: of each whether it is a row that Arrow reads.
        odd: of each whether it has to be read by itself.
        irregular: rows that were read by themselves: their first and last line, and their cells;
            None where they do not parse.
        lacks: lines behind the chunk that belong to its last row.
    """

    chunk: bytes
    newline: bytes
    ends: NDArray[np.int64]
    regular: NDArray[np.bool_]
    odd: NDArray[np.bool_]
    irregular: list[tuple[int, int, list[bytes] | None]] = field(default_factory=list)
    lacks: int = 0

    def start(self, line: int) -> int:
        """Where a line begins."""
        return int(self.ends[line - 1]) + 1 if line else 0

    def text(self, first: int, last: int) -> bytes:
        """Some lines as they stand, without the last one's end."""
        return self.chunk[self.start(first) : int(self.ends[last])]

    def keep_rows(self, some: NDArray[np.bool_]) -> None:
        """Leave out all rows but those that a mask names."""
        firsts = np.array([first for first, _, _ in self.irregular], np.int64)
        rows = np.sort(np.concatenate([np.flatnonzero(self.regular), firsts]))
        stays = np.zeros(len(self.ends), bool)
        stays[rows[some]] = True
        self.regular &= stays
        self.irregular = [row for row in self.irregular if stays[row[0]]]

    def regular_bytes(self) -> bytes:
        """The lines that Arrow reads, one after the other."""
        if self.regular.all():
            chunk = self.chunk
        else:
            sizes = np.diff(np.append(-1, self.ends))
            keep = np.repeat(self.regular, sizes)[: len(self.chunk)]
            chunk = np.frombuffer(self.chunk, np.uint8)[keep].tobytes()
        return chunk if self.newline == b"\n" else chunk.replace(self.newline, b"\n")


def _split(chunk: bytes, newline: bytes, delimiter: bytes, width: int) -> _Lines:
    """The lines of a chunk; which are rows by their look, and which must be looked at one by
    one."""
    data = np.frombuffer(chunk, np.uint8)
    separates = data == ord(newline)
    separates |= data == ord(delimiter)
    separators = np.flatnonzero(separates)
    is_end = data[separators] == ord(newline)
    ends = separators[is_end]
    if not chunk.endswith(newline):
        ends = np.append(ends, len(chunk))
    starts = np.append(0, ends[:-1] + 1)
    stops = ends.copy()
    if newline == b"\n":
        # where a line is empty this looks at another one's byte, which changes nothing
        stops -= (ends > starts) & (data[np.maximum(ends - 1, 0)] == ord("\r"))
    full = stops > starts
    odd = np.zeros(len(ends), bool)
    for strange in (b"\0", b"\r", b"\n"):
        if strange != newline and strange in chunk:
            places = np.flatnonzero(data == ord(strange))
            lines = np.searchsorted(ends, places)
            odd[lines[places < stops[lines]]] = True
    # Arrow takes a mark away where a block begins, and there alone. One byte is found faster.
    if codecs.BOM_UTF8[:1] in chunk and codecs.BOM_UTF8 in chunk:
        odd[[chunk.startswith(codecs.BOM_UTF8, start) for start in starts.tolist()]] = True
    if b'"' in chunk:
        quotes = np.flatnonzero(data == QUOTE)
        odd[_misplaced(data, quotes, starts, stops, ord(delimiter))] = True
        before = np.searchsorted(quotes, separators)
        first = np.searchsorted(quotes, starts[np.searchsorted(ends, separators)])
        is_end = is_end[is_end | ((before - first) % 2 == 0)]
    behind = np.flatnonzero(np.append(is_end, True))[: len(ends)]
    cells = np.diff(behind, prepend=-1)
    odd |= cells != width
    odd &= full
    return _Lines(chunk, newline, ends, full & ~odd, odd)


def _misplaced(
    data: NDArray[np.uint8],
    quotes: NDArray[np.int64],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    delimiter: int,
) -> NDArray[np.int64]:
    """The lines with a quote where no writer puts one: it opens a cell behind a delimiter, closes
    one before a delimiter, or is doubled inside."""
    lines = np.searchsorted(starts, quotes, "right") - 1
    place = np.arange(len(quotes)) - np.searchsorted(quotes, starts[lines])
    opens = place % 2 == 0
    padded = np.concatenate([[delimiter], data, [delimiter]])
    before = np.where(quotes == starts[lines], delimiter, padded[quotes])
    after = np.where(quotes + 1 == stops[lines], delimiter, padded[quotes + 2])
    beside = np.where(opens, before, after)
    wrong = lines[(beside != delimiter) & (beside != QUOTE)]
    counts = np.bincount(lines, minlength=len(starts))
    return np.concatenate([wrong, np.flatnonzero(counts % 2)])


def _read_regular(
    lines_read: _Lines, delimiter: bytes, width: int, places: Sequence[int]
) -> list[Any]:
    """The cells of the lines that Arrow reads, as an array for each of these columns."""
    count = int(lines_read.regular.sum())
    if not count or not places:
        return [pa.array([], BINARY) if not count else pa.nulls(count, BINARY) for _ in places]
    content = lines_read.regular_bytes()
    names = [str(place) for place in range(width)]
    table = pyarrow.csv.read_csv(
        pa.BufferReader(content),
        pyarrow.csv.ReadOptions(column_names=names, block_size=len(content) + 1),
        pyarrow.csv.ParseOptions(
            delimiter=delimiter.decode(),
            quote_char='"' if b'"' in content else False,
            ignore_empty_lines=False,
        ),
        pyarrow.csv.ConvertOptions(
            check_utf8=False,
            column_types=dict.fromkeys(names, BINARY),
            include_columns=[names[place] for place in places],
            null_values=[],
        ),
    )
    if len(table) != count:
        raise pa.ArrowInvalid("it read other rows than were counted")
    return [column.combine_chunks() for column in table.columns]


@dataclass
class _Ahead:
    """Looks ahead for the line that closes a quote. No line is looked at twice, however many quotes
    stay open."""

    path: Path
    patterns: tuple[re.Pattern[bytes], re.Pattern[bytes]]
    newline: bytes
    _decisive: deque[tuple[int, bool]] = field(default_factory=deque)
    _lines: Iterator[tuple[int, bool]] | None = None

    def closing(self, line: int, begin: int, offset: int) -> int | None:
        """The line that ends a row whose last cell is open before this line; None where none does.

        Args:
            line: behind the one that opens the cell. Later calls ask about later lines.
            begin, offset: the number of a line before it, and where that lies.
        """
        if self._lines is None:
            self._lines = self._deciding(begin, offset)
        while self._decisive and self._decisive[0][0] < line:
            self._decisive.popleft()
        while not self._decisive:
            decisive = next(self._lines, None)
            if decisive is None:
                return None
            if decisive[0] >= line:
                self._decisive.append(decisive)
        at, closes = self._decisive[0]
        return at if closes else None

    def _deciding(self, line: int, offset: int) -> Iterator[tuple[int, bool]]:
        """Lines that end an open cell, or show that none was open; each with whether it closes."""
        whole, opening = self.patterns
        with _bytes_at(self.path) as file:
            file.seek(offset)
            while chunk := file.read(BLOCK):
                chunk += _rest_of_line(file, self.newline)
                # a line in the middle of a cell reads as one whose first cell has its quote before
                for number, text in enumerate(chunk.split(self.newline), line):
                    if b'"' not in text:
                        continue
                    closes = whole.fullmatch(b'"' + text) is not None
                    if closes or not opening.fullmatch(b'"' + text):
                        yield number, closes
                line += chunk.count(self.newline)
