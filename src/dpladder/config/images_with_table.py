"""Images, or bags of features, in one place and what is known of them in another (`dataset.source`
as a mapping).

The config keeps it as one text, `images:` or `bags:` and its keys as JSON: a source is a name
everywhere else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from dpladder.section import Section, Words, from_document

NAMES = ("images", "bags")
HOLE = re.compile(r"\{([^{}]+)\}")
Level = Annotated[int, Field(ge=1, le=9)]
Width = Annotated[int, Field(ge=1, le=1_000_000)]


class Apart(Section):
    """Images, or bags of features, in a folder, and a table that says what is known of each.

    Attributes:
        images: a folder of images; or else `bags`.
        bags: a folder of HDF5 files with rows of features.
        width: how many features a row of a bag has.
        table: the table's path.
        key: the column of the table that says which images a row is about, or a pattern of columns
            such as s{study_id}.
        names: what the key holds: an image's path below the folder, its file name, or a folder's
            name. A number is of a folder on the way to the image, 1 the first.
        patient: the folder on that way whose name says whose an image is.
    """

    images: Words | None = None
    bags: Words | None = None
    width: Width | None = None
    table: Words
    key: Words
    names: Literal["path", "file"] | Level = "path"
    patient: Level | None = None

    def _problems(self) -> Iterator[str]:
        if (self.images is None) == (self.bags is None):
            yield "give a folder of images, or one of bags"
        if (self.bags is None) != (self.width is None):
            yield "width is how many features a row of a bag has: bags need it"
        if "{" in self.key and not HOLE.findall(self.key):
            yield "key must be a column, or columns in braces as in s{study_id}"

    @property
    def what(self) -> str:
        """What lies in the folder: `images` or `bags`, which is also the name that the source
        has."""
        return NAMES[self.images is None]

    @property
    def folder(self) -> str:
        """Where the images or bags lie."""
        return self.images or self.bags or ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that the key is made of."""
        return tuple(HOLE.findall(self.key)) or (self.key,)


FORMS = {
    "images": "{images: <folder>, table: <csv or parquet>, key: <column>}",
    "bags": "{bags: <folder>, width: <number>, table: <csv or parquet>, key: <column>}",
}
ALLOWED = (
    f"write {' or '.join(FORMS.values())}, and if you like names: path, file or a folder's number "
    "from 1, and patient: a folder's number"
)


def as_source_text(values: Any) -> Any:
    """A source as the config keeps it.

    Args:
        values: `dataset.source` or another source's key, as it was written. What is no mapping is
            given back as it is.

    Raises:
        ValueError: a key of the mapping is wrong. pydantic makes a message of it.
    """
    if not isinstance(values, dict):
        return values
    try:
        layout = from_document(Apart, values)
    except ValidationError as error:
        wrong = error.errors()[0]
        said = wrong["msg"].removeprefix("Value error, ")
        at = f"{wrong['loc'][0]} is wrong ({said})" if wrong["loc"] else said
        raise ValueError(f"{at}: {ALLOWED}") from None
    return f"{layout.what}:{layout.model_dump_json(exclude_defaults=True)}"


def apart_of(source: str) -> Apart | None:
    """What a source says that has images, or bags, and labels apart; nothing of another one."""
    name, _, rest = source.partition(":")
    if name not in NAMES:
        return None
    try:
        layout: Apart = from_document(Apart, json.loads(rest))
    except ValueError:
        return None
    return layout if layout.what == name else None
