"""Where a source holds what belongs to a record, as the config declares it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Protocol, cast

from dpladder.config.dataset_sections import Chosen, Dataset, Links
from dpladder.config.records import Grouping
from dpladder.data.columns import column_as_json, name_of, restored_columns
from dpladder.section import from_document

ROLES = ("label", "id", "user", "split")
NAMED_ROLES = ("label", "id", "user")  # roles whose column the config may name
OF_CLASS = "label "  # begins the role of a column that holds one class, numbered from 0


class Naming(Protocol):
    """What says how the columns of roles are called: a dataset, or a job that reads one."""

    @property
    def label(self) -> str | tuple[str, ...] | None: ...
    @property
    def id(self) -> str | None: ...
    @property
    def user(self) -> str | None: ...


@dataclass(frozen=True)
class Layout:
    """What the config says about a source's columns, arrays and folders.

    Attributes:
        columns: of a table, those that are features, all others where none is named; of lines of
            JSON, the roles that they have.
        grouping: where a record's group stands, and what groups are called.
        links: which links below a folder are followed.
        named: the column of a role, where it is called otherwise.
        labelled: whether a table has to name a class for each record.
        number: whether labels are numbers (dataset.target).
    """

    columns: tuple[Chosen, ...] = ()
    grouping: Grouping | None = None
    links: Links = "none"
    named: tuple[tuple[str, str], ...] = ()
    labelled: bool = True
    number: bool = False

    @property
    def number_roles(self) -> tuple[str, ...]:
        """The roles whose cells are read as numbers: the target's. Whoever is known by the same
        column is known by what it says."""
        return ("label",) if self.number else ()

    @property
    def group(self) -> str | None:
        """The column that holds each record's group."""
        return None if self.grouping is None else self.grouping.column

    @property
    def level(self) -> int | None:
        """Which of the folders on a file's way is its group."""
        return None if self.grouping is None else self.grouping.level

    def name(self, role: str) -> str:
        """What the column of a role is called."""
        return dict(self.named).get(role, role)

    @property
    def has_class_columns(self) -> bool:
        """Whether each class has a column."""
        return any(role.startswith(OF_CLASS) for role, _ in self.named)

    def columns_present(self, names: Collection[str], plural: str = "") -> dict[str, str]:
        """The column of each role and of the group, as far as they are among those held.

        Args:
            names: of the columns or arrays that a source holds.
            plural: what arrays have after the name of a role.
        """
        columns = {role: f"{role}{plural}" for role in ROLES} | dict(self.named)
        if self.has_class_columns:
            del columns["label"]
        if self.group is not None:
            columns["group"] = self.group
        return {role: name for role, name in columns.items() if name in names}

    def json_fields(self) -> dict[str, str]:
        """The fields of lines of JSON, which have no header: no line may say it for the others."""
        roles = {"label"} if self.labelled and not self.has_class_columns else set()
        roles |= {name_of(column) for column in self.columns} | {role for role, _ in self.named}
        known = {role: self.name(role) for role in ROLES if role in roles} | dict(self.named)
        return known | ({"group": self.group} if self.group is not None else {})


PLAIN = Layout()


def layout_of(dataset: Dataset, grouping: Grouping | None = None, labelled: bool = True) -> Layout:
    """Which columns of a table, or arrays, have a role of their own, by the config alone.

    Args:
        dataset: names the columns of labels, ids and users.
        grouping: names the one of groups; None where there is none.
        labelled: whether records have labels; those to be predicted have none.
    """
    return Layout(
        dataset.columns,
        grouping,
        dataset.links,
        renamed_columns(dataset),
        labelled,
        dataset.target is not None,
    )


def renamed_columns(says: Naming) -> tuple[tuple[str, str], ...]:
    """The roles whose column is called otherwise, each with its column."""
    renamed: list[tuple[str, str]] = []
    for role in NAMED_ROLES:
        name = getattr(says, role)
        if isinstance(name, tuple):
            renamed += [(f"{OF_CLASS}{place}", one) for place, one in enumerate(name)]
        elif name is not None:
            renamed.append((role, name))
    return tuple(renamed)


def as_attrs(layout: Layout) -> dict[str, str]:
    """A layout as attributes of a manifest. What is not declared is left out, so that a new key
    changes no older manifest."""
    attrs = {"columns": json.dumps([column_as_json(column) for column in layout.columns])}
    if layout.grouping is not None:
        attrs["grouping"] = json.dumps(asdict(layout.grouping))
    if layout.links != "none":
        attrs["links"] = layout.links
    if layout.named:
        attrs["named"] = json.dumps(dict(layout.named))
    if layout.number:
        attrs["number"] = "label"
    return attrs


def from_attrs(attrs: Mapping[str, object], labelled: bool) -> Layout:
    """A layout, from what `as_attrs` made of it.

    Args:
        attrs: of a manifest.
        labelled: whether records have labels.
    """
    grouping = attrs.get("grouping")
    return Layout(
        restored_columns(json.loads(str(attrs["columns"]))),
        None if grouping is None else from_document(Grouping, json.loads(str(grouping))),
        cast(Links, attrs.get("links", "none")),
        tuple(json.loads(str(attrs.get("named", "{}"))).items()),
        labelled or "number" in attrs,
        "number" in attrs,
    )
