"""Columns of a table as arrays: what each cell says, as a text, a number or a value, by that cell
alone.

An array is worked on as a whole where its cells are plain, and cell by cell where they are not,
each different one once. Both give the same: data/columns.py says what one cell means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpladder.config.level_texts import MOST_SINGLE
from dpladder.data.columns import cell_as_text, is_missing, number_of, with_point

Function = Callable[[Any], Any]
BINARY = pa.binary()
MOST_BYTES = 2**30  # of rows that are joined in the smaller type


def _bytes_table(characters: bytes) -> NDArray[np.bool_]:
    """From a byte to whether it is one of these."""
    table = np.zeros(256, bool)
    table[np.frombuffer(characters, np.uint8)] = True
    return table


OF_NUMBERS = _bytes_table(b"0123456789.eE+-")
# A cell without these bytes, that is not "nan" and does not end in ".0", is what `cell_as_text`
# makes of it: white space and letters beyond ASCII could stand around a missing value, and +
# stands in whole numbers of many digits.
UNUSUAL = _bytes_table(bytes(range(33)) + b"+" + bytes(range(127, 256)))
USUAL = np.flatnonzero(~UNUSUAL).astype(np.uint8).tobytes()
CASE = 32  # the bit that tells small letters from capitals
# between these Arrow writes a number as Python does: the shortest digits, without an exponent
LEAST_PLAIN, MOST_PLAIN, MOST_PLAIN_SINGLE = 1e-4, 1e10, 1e6
MOST_WHOLE = 2.0**53  # below it every whole number is one of 64 bits too


@dataclass(frozen=True)
class TextCells:
    """Cells that are texts, or missing.

    Attributes:
        array: of bytes in UTF-8. Bytes that are none are kept.
        comma: whether decimals may stand behind a comma.
    """

    array: Any
    comma: bool = False

    def __len__(self) -> int:
        return len(self.array)

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        return np.diff(self._offsets)

    @cached_property
    def _offsets(self) -> NDArray[np.int64]:
        return offsets_of(self.array)

    @cached_property
    def _bytes(self) -> NDArray[np.uint8]:
        """The bytes of all cells, one after the other."""
        return np.frombuffer(data_of(self.array), np.uint8)

    def _has(self, table: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Of each cell whether it has a byte of the table."""
        places = np.flatnonzero(table[self._bytes])
        marked = np.zeros(len(self) + 1, bool)
        if len(places):
            marked[np.searchsorted(self._offsets, places, "right") - 1] = True
        return marked[:-1]

    def _unusual(self) -> NDArray[np.bool_]:
        """Of each cell whether it must be looked at by itself to tell whether it is missing."""
        unusual = np.zeros(len(self), bool)
        if data_of(self.array).tobytes().translate(None, USUAL):  # which is found faster than where
            unusual = self._has(UNUSUAL)
        of_three = np.flatnonzero(self._lengths == len("nan"))
        firsts = self._bytes[self._offsets[of_three]]
        unusual[of_three] |= (firsts | CASE) == ord("n")
        return unusual

    def some(self, mask: NDArray[np.bool_]) -> TextCells:
        """The cells that a mask names."""
        return TextCells(self.array.filter(pa.array(mask)), self.comma)

    def as_texts(self) -> Any:
        """What each cell says, as `cell_as_text` has it: an array of bytes without gaps."""
        last, size = self._offsets[1:], len(self._bytes)
        long = self._lengths >= 2
        whole = np.zeros(len(self), bool)
        ends = last[long]
        if size:
            whole[long] = (self._bytes[ends - 1] == ord("0")) & (self._bytes[ends - 2] == ord("."))
        unusual = whole | self._unusual()
        texts = self.array.fill_null(b"") if self.array.null_count else self.array
        if not unusual.any():
            return texts
        return _replaced(texts, unusual, lambda cell: bytes_of(cell_as_text(text_of(cell))))

    def missing(self) -> NDArray[np.bool_]:
        """Of each cell whether it is missing (`is_missing`)."""
        absent = self._lengths == 0
        unusual = self._unusual()
        if unusual.any():
            absent[unusual] = mapped(TextCells(self.array.filter(unusual)), is_missing, bool)
        return absent

    def numbers(self) -> NDArray[np.float64]:
        """Of each cell its number, NaN where it is none: float64 (rows,)."""
        if not self.array.null_count:
            with suppress(pa.ArrowInvalid):
                return _as_float64(self.array)
        numbers = np.full(len(self), np.nan)
        other, empty = self._has(~OF_NUMBERS), self._lengths == 0
        plain = ~(other | empty)
        try:
            numbers[plain] = _as_float64(self.array.filter(plain))
        except pa.ArrowInvalid:  # such as 1-2
            other |= plain
        if other.any():
            read = self._number if self.comma else number_of
            numbers[other] = mapped(TextCells(self.array.filter(other)), read, np.float64)
        return numbers

    @staticmethod
    def _number(cell: str) -> float:
        """As Python reads it, with a comma for a point."""
        return number_of(with_point(cell))

    def values(self) -> tuple[NDArray[np.int64], list[Any]]:
        """The different cells, as texts, and of each cell which one it is."""
        codes, values = _different(self.array)
        return codes, [None if cell is None else text_of(cell) for cell in values]


@dataclass(frozen=True)
class TypedCells:
    """Cells of any type that Arrow has.

    Attributes:
        array: of them.
    """

    array: Any

    def __len__(self) -> int:
        return len(self.array)

    def some(self, mask: NDArray[np.bool_]) -> TypedCells:
        """The cells that a mask names."""
        return TypedCells(self.array.filter(pa.array(mask)))

    def as_texts(self) -> Any:
        """What each cell says, as `cell_as_text` has it: an array of bytes without gaps."""
        kind = self.array.type
        if pa.types.is_integer(kind):
            return self.array.cast(pa.string()).cast(BINARY).fill_null(b"")
        if pa.types.is_float32(kind) or pa.types.is_float64(kind):
            return _numbers_as_texts(self.numbers())
        codes, values = self.values()
        texts = [bytes_of(cell_as_text(value)) for value in values]
        return pa.array(texts, BINARY).take(pa.array(codes))

    def missing(self) -> NDArray[np.bool_]:
        """Of each cell whether it is missing (`is_missing`)."""
        if is_numeric(self.array.type):
            return np.isnan(self.numbers())
        return mapped(self, is_missing, bool)

    def numbers(self) -> NDArray[np.float64]:
        """Of each cell its number, NaN where it is none: float64 (rows,)."""
        if is_numeric(self.array.type):
            numbers = self.array.cast(pa.float64(), safe=False)
            return np.array(numbers.to_numpy(zero_copy_only=False), np.float64)
        return mapped(self, number_of, np.float64)

    def values(self) -> tuple[NDArray[np.int64], list[Any]]:
        """The different cells, and of each cell which one it is."""
        return _different(self.array)


Cells = TextCells | TypedCells


def cells_of(column: Any) -> Cells:
    """A column of a parquet table. Nothing makes sure that its texts are UTF-8."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # of more bytes than one array holds
        array = pa.concat_arrays(array.chunks)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return TextCells(array.cast(BINARY))
    return TypedCells(array)


def texts_of(cells: Iterable[str | bytes | None]) -> Any:
    """Cells as an array of bytes."""
    return pa.array([bytes_of(cell) if isinstance(cell, str) else cell for cell in cells], BINARY)


def mapped(cells: Cells, function: Function, kind: Any) -> NDArray[Any]:
    """What a function makes of each cell, asked once for each different one."""
    codes, values = cells.values()
    return np.array([function(value) for value in values], kind)[codes]


def offsets_of(array: Any) -> NDArray[np.int64]:
    """Where each cell of an array of bytes begins, and where the last one ends."""
    whole = _raw_offsets(array)
    return (whole - whole[0]).astype(np.int64)


def data_of(array: Any) -> memoryview:
    """The bytes of an array of bytes, one cell after the other."""
    whole, data = _raw_offsets(array), array.buffers()[2]
    return memoryview(b"" if data is None else data)[int(whole[0]) : int(whole[-1])]


def _raw_offsets(array: Any) -> NDArray[Any]:
    """Where cells begin in the memory of an array of bytes, which may be part of a larger one."""
    kind = np.int64 if pa.types.is_large_binary(array.type) else np.int32
    buffer = array.buffers()[1]
    if not len(array) or buffer is None:
        return np.zeros(1, kind)
    return np.frombuffer(buffer, kind)[array.offset : array.offset + len(array) + 1]


def is_numeric(kind: Any) -> bool:
    """Whether an Arrow type is of whole or floating-point numbers."""
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def python_cells(array: Any) -> list[Any]:
    """Cells as Python has them. Nothing where a cell holds what Python has no value for: names that
    are no UTF-8, a time after its last one."""
    try:
        whole: list[Any] = array.to_pylist()
    except Exception:
        return [_python_cell(cell) for cell in array]
    return whole


def text_of(cell: bytes) -> str:
    """A cell's text. Bytes that are no UTF-8 stay apart from all others."""
    for errors in ("strict", "surrogatepass"):
        try:
            return cell.decode("utf-8", errors)
        except UnicodeDecodeError:
            pass
    return cell.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """A text's bytes: half a pair of surrogates is no character, but as good as another."""
    return text.encode("utf-8", "surrogatepass")


def _python_cell(value: Any) -> Any:
    try:
        return value.as_py()
    except Exception:
        return None


def _as_float64(array: Any) -> NDArray[np.float64]:
    """Numbers of texts that look like numbers.

    Raises:
        ArrowInvalid: one is none.
    """
    numbers = array.cast(pa.string()).cast(pa.float64())
    return np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64)


def _different(array: Any) -> tuple[NDArray[np.int64], list[Any]]:
    """The different cells of an array, and of each cell which one it is."""
    try:
        encoded = array.dictionary_encode()
    except pa.ArrowException:  # lists, and what else has no order
        return np.arange(len(array)), python_cells(array)
    values = python_cells(encoded.dictionary)
    codes = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, [*values, None]


def _replaced(texts: Any, where: NDArray[np.bool_], function: Callable[[bytes], bytes]) -> Any:
    """Texts of which those that a mask names are what a function makes of them."""
    codes, values = _different(texts.filter(where))
    new = pa.array([b"" if cell is None else function(cell) for cell in values], BINARY)
    return pc.replace_with_mask(texts, where, new.take(pa.array(codes)))


def _numbers_as_texts(numbers: NDArray[np.float64]) -> Any:
    """Numbers as `cell_as_text` writes them: what a float32 can hold as short as one is written,
    whole ones without decimals, and NaN as nothing."""
    with np.errstate(over="ignore", invalid="ignore"):
        single = numbers.astype(np.float32)
        is_single = (single == numbers) & (np.abs(numbers) < MOST_SINGLE)
    size = np.abs(numbers)
    whole = (size < MOST_WHOLE) & (np.floor(numbers) == numbers)
    most = np.where(is_single, MOST_PLAIN_SINGLE, MOST_PLAIN)
    plain = whole | ((size >= LEAST_PLAIN) & (size < most))
    missing = np.isnan(numbers)
    texts = pa.array(np.where(plain, numbers, 0.5)).cast(pa.string())
    short = pa.array(np.where(plain, single, np.float32(0.5))).cast(pa.string())
    texts = pc.if_else(is_single, short, texts)
    digits = pa.array(np.where(whole, numbers, 0.0).astype(np.int64)).cast(pa.string())
    texts = pc.if_else(whole, digits, texts)
    odd = ~(plain | missing)
    if odd.any():
        written = [cell_as_text(number) for number in numbers[odd].tolist()]
        texts = pc.replace_with_mask(texts, odd, pa.array(written, pa.string()))
    return pc.if_else(missing, "", texts).cast(BINARY)


def joined(columns: Sequence[Any], count: int) -> tuple[NDArray[np.int64], memoryview]:
    """All that each row says, of which no cell can run into the next: the lengths of its cells, and
    the cells.

    Args:
        columns: of each a text for every row, as bytes.
        count: of the rows.

    Returns:
        Where each row begins and the last one ends, and the bytes of all rows.
    """
    offsets = [offsets_of(column) for column in columns]
    lengths = np.empty((count, len(columns)), "<u4")
    for place, starts in enumerate(offsets):
        lengths[:, place] = np.diff(starts)
    size = lengths.shape[1] * lengths.itemsize
    small = count * size + sum(int(places[-1]) for places in offsets) < MOST_BYTES
    kind = BINARY if small else pa.large_binary()
    places = np.arange(count + 1, dtype=np.int32 if small else np.int64) * size
    buffers = [None, pa.py_buffer(places), pa.py_buffer(lengths)]
    sizes = pa.Array.from_buffers(kind, count, buffers)
    cells = columns if small else [column.cast(kind) for column in columns]
    rows = pc.binary_join_element_wise(sizes, *cells, pa.scalar(b"", kind))
    return offsets_of(rows), data_of(rows)
