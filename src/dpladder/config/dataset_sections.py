"""The config's section about the private data: whose it is, where it lies, how it is parted."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from dpladder.config.images_with_table import as_source_text
from dpladder.config.label_sets import Conflicts
from dpladder.config.section import Count, Fraction, Name, NeutralAt, Positive, Section, Words
from dpladder.config.shift import Grouping
from dpladder.config.sources import FORMS, count_of_classes, kind_of

NO_USERS = ("record", "document")


class Unit(Section):
    """Whose privacy is protected."""

    by: Literal["record", "document", "user"] = Field(
        "record",
        description="one record; with dataset.spans, one document with all its spans; or all "
        "records of one user",
    )
    cap: Count = Field(
        1,
        description="records kept per document or user, chosen by a key among that unit's own; 1 "
        "for records",
    )
    called: Annotated[Words | None, NeutralAt(None)] = Field(
        None,
        description="with by: user, what a user is in statements, such as patient; fixed for the "
        "lineage's life",
    )
    pool: Literal["none", "mean"] = Field(
        "none",
        description="mean: all records of a user are one record, whose features are the mean of "
        "theirs, under one label; cap is 1 then",
    )
    conflicts: Conflicts = Field(
        "nothing",
        description="with pool, a user whose records have different labels. nothing: the user "
        "counts as nothing; any: is of the class among them that comes last in dataset.classes; "
        "majority: of the most frequent, and among equals the last. Findings are told each by "
        "itself: nothing leaves one out, any is present in any record, majority in half of those "
        "that know",
    )

    @model_validator(mode="after")
    def _a_record_is_one_record(self) -> Unit:
        if self.by == "record" and self.cap != 1:
            raise ValueError(
                "cap must be 1 when the unit is a record; set by: user, or with dataset.spans by: "
                "document, to protect several records together"
            )
        return self

    @model_validator(mode="after")
    def _users_have_a_name(self) -> Unit:
        if self.called is not None and (self.by != "user" or self.called in NO_USERS):
            raise ValueError("called needs by: user, and a word for a person, such as patient")
        return self

    @property
    def word(self) -> str:
        """What statements call a unit."""
        return self.called or self.by

    @model_validator(mode="after")
    def _a_pool_is_one_record(self) -> Unit:
        if not self.pooled and self.conflicts != "nothing":
            raise ValueError("conflicts need pool: mean: they are between records of one user")
        if self.pooled and (self.by != "user" or self.cap != 1):
            raise ValueError("pool needs by: user, and no cap: it makes one record of a user's")
        return self

    @property
    def pooled(self) -> bool:
        return self.pool != "none"


HELD_OUT = 0.2


class Split(Section):
    """How a unit finds its part. A keyed hash of the unit's own id decides, never its position."""

    rule: Literal["hash", "given"] = Field(
        "hash",
        description="hash: keyed hash of the unit's id; given: the source names each unit's part",
    )
    test: Fraction | None = Field(
        None,
        description="expected fraction of units held out for evaluation; empty: 0.2, but 0 for a "
        "new lineage whose experiments all have dataset.public_test",
    )
    validation: Fraction = Field(
        0.0, description="expected fraction of units held out to score trials"
    )

    @model_validator(mode="after")
    def _something_is_left_to_train_on(self) -> Split:
        if self.held_out + self.validation >= 1:
            raise ValueError(
                "test + validation must stay below 1, so that something is left to train on"
            )
        return self

    @property
    def held_out(self) -> float:
        return HELD_OUT if self.test is None else self.test


class Column(Section):
    """What is publicly known of a table's column. Its values must not decide it: a scaler or a list
    of levels taken from private data is a leak."""

    name: Words
    levels: tuple[Words, ...] = Field(
        (),
        description="all that it may hold, in quotes where they are numbers: a feature each, 1 "
        "or 0",
    )
    range: tuple[float, float] | None = Field(
        None, description="smallest and largest value: cut there, and scaled to -1 to 1"
    )
    missing: Annotated[float | None, NeutralAt(None)] = Field(
        None,
        description="of numbers, what a missing one counts as, known publicly; empty: a record "
        "without it counts as nothing",
    )
    mark_missing: Annotated[bool, NeutralAt(False)] = Field(
        False, description="with missing, true: one more feature, 1 where it is missing and else 0"
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Column:
        if self.levels and self.range is not None:
            raise ValueError("a column has levels or a range, not both")
        if len(set(self.levels)) != len(self.levels):
            raise ValueError("levels must name each level once")
        if self.range is not None and not self.range[0] < self.range[1]:
            raise ValueError("range must be [smallest, largest]")
        if self.levels and self.missing is not None:
            raise ValueError("missing is for numbers; of levels a missing one is none of them")
        if self.mark_missing and self.missing is None:
            raise ValueError("mark_missing needs missing: what a missing number counts as")
        return self


RESERVED_COLUMNS = ("label", "id", "user", "split", "path", "text")
TAGS = ("a name", "a column")  # how pydantic tells which of both was meant
Chosen = Annotated[
    Annotated[str, Tag(TAGS[0])] | Annotated[Column, Tag(TAGS[1])],
    Discriminator(lambda value: TAGS[0] if isinstance(value, str) else TAGS[1]),
]


Groups = tuple[Words, ...]


class Group(Section):
    """Which of some publicly named groups a record is of, such as a region or a hospital; one of
    none counts as nothing."""

    names: Annotated[Groups, Field(min_length=1)] = Field(
        description="the groups; named beforehand, and never read off the data"
    )
    column: Words | None = Field(
        None,
        description="of a table, or arrays: the column, or array, that holds each record's group",
    )
    level: Literal[1, 2] | None = Field(
        None,
        description="of folders, the one that is the group: 1 in group/class/file, 2 in "
        "class/group/file",
    )

    @model_validator(mode="after")
    def _names_are_a_set(self) -> Group:
        if len(set(self.names)) != len(self.names):
            raise ValueError("names must name each group once")
        if (self.column is None) == (self.level is None):
            raise ValueError(
                "names need to be found: give column for a table or arrays, level for folders"
            )
        if self.column in RESERVED_COLUMNS:
            raise ValueError(f"column must not be one of {', '.join(RESERVED_COLUMNS)}")
        return self

    @property
    def grouping(self) -> Grouping:
        return Grouping(self.names, self.column, self.level)


class TrainedGroup(Group):
    """Which of some publicly named groups a record is of, such as a region or a hospital; one of
    none counts as nothing."""

    train: Groups = Field(
        (),
        description="those that are trained on, the others are tested alone: a record of another "
        "group counts as nothing in the training and validation parts; empty: all",
    )

    @model_validator(mode="after")
    def _trained_are_some(self) -> TrainedGroup:
        if len(set(self.train)) != len(self.train) or not set(self.train) <= set(self.names):
            raise ValueError("train must name some of names, each once")
        return self

    @property
    def trained(self) -> tuple[str, ...]:
        return self.train or self.names


class UnitCounts(Section):
    """Units of the training part, counted by class under noise. A run stops before it spends more
    where these counts say that fewer than half of nominal_size count as something, or that fewer
    than a tenth are of another class than the most frequent one. null: nothing is counted, and
    no data stops a run; look with `dpladder check`."""

    epsilon: Positive = Field(
        0.02,
        description="epsilon of these counts alone, at the lineage's delta: by default about a "
        "thousandth of mu^2 of a total of 1",
    )


Where = Annotated[
    str,
    Field(min_length=1),
    BeforeValidator(as_source_text),
    WithJsonSchema({"type": ["string", "object"]}, mode="validation"),
]
Links = Literal["none", "inside"]
Counted = Literal["ignore", 0, 1]
Stops = Literal["lost or lopsided", "lost", "nothing"]
"""Which data stops a run: such as is mostly lost, such as has few units of another class than the
most frequent one, or few findings."""


class Dataset(Section):
    """The private data: a lineage for life, and where its current version lies."""

    lineage: Name = Field(
        description="the data's name for life; every later version of the same data keeps it"
    )
    source: Where = Field(
        description=" | ".join(FORMS),
    )
    columns: tuple[Chosen, ...] = Field(
        (),
        description="of a table, the columns that are features, in this order, each by its name or "
        "with its public levels or range; []: all but label, id, user, split and a "
        "pandas index. Of jsonl, which of id, user, split its lines have (or dataset.id and "
        "dataset.user)",
    )
    label: Words | tuple[Words, ...] | None = Field(
        None,
        description="of a table or arrays, the column that holds each record's class; empty: "
        "label. With labels: many also a list: a column for each class, in the order of "
        "dataset.classes, which may then be left out, with 1, 0, -1 or nothing in it",
    )
    id: str | None = Field(
        None,
        min_length=1,
        description="the column with each record's own id; empty: id, where there is one",
    )
    user: str | None = Field(
        None,
        min_length=1,
        description="the column that says whose a record is; empty: user, where there is one",
    )
    nominal_size: Count = Field(
        description="about how many units train: a round figure that everybody may know, for sums "
        "are divided by it"
    )
    classes: Count | tuple[str, ...] | None = Field(
        None,
        description="class list, or how many; required for your own data, known for named datasets",
    )
    majority: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None,
        description="the largest class's share, where it is known from elsewhere, and never "
        "counted in the data: the report compares accuracy with it",
    )
    rare: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None,
        description="the share of the rarest class, or finding, where it is known from elsewhere, "
        "and never counted in the data: few of it stop no run then, and the plan says whether a "
        "test can tell anything of it",
    )
    labels: Count | Literal["many"] = Field(
        1,
        description="classes that a record may be of, at most, for learner dp_ls: above 1 its "
        "label is a list of them, or their names between bars, as in cat|dog; right is "
        "whatever names one of them. many: any number of them, and none, as findings in an image: "
        "each class is told by itself, and names of no class count as other findings",
    )
    unknown: Counted = Field(
        "ignore",
        description="with labels: many, what a class counts as that is -1 (uncertain) or blank for "
        "a record: ignore leaves the class out for this record, 0 is absent, 1 present",
    )
    blank: Counted | None = Field(
        None,
        description="the same for a blank alone, which is often not mentioned; empty: as unknown",
    )
    multiline: Annotated[bool, NeutralAt(False)] = Field(
        False,
        description="of a CSV table, true: a cell between quotes may hold line ends. Then a quote "
        "that is not closed takes all rows after it along; false: each line is a row, and one "
        "that does not parse counts as nothing by itself",
    )
    version: Annotated[int | None, NeutralAt(None)] = Field(
        None,
        description="a number for this version of the data, a part of every question about it. "
        "Data that changed gets another one: then it is asked anew, at its price; under the same "
        "number what was released is restored, and units that were not there count as nothing. "
        "Experiments of one lineage with different sources give each its own",
    )
    links: Links = Field(
        "none",
        description="of a folder: none follows no links, and a file that is one counts as nothing; "
        "inside follows those that lead to files and other folders of the source "
        "itself",
    )
    declared_public: bool = Field(
        False, description="true: the data is not private at all; required by mode: research"
    )
    spans: bool = Field(
        False,
        description="only with task: language_model: true makes several records of a text that is "
        "longer than features.tokens, of so many tokens each, of which "
        "dataset.unit.cap count; dataset.unit.by is then document or user",
    )
    equal_rows: Annotated[Literal["one_record"] | None, NeutralAt(None)] = Field(
        None,
        description="of a table without ids, one_record: confirms that equal rows are one record, "
        "stored several times; empty: refused where the declared levels allow fewer different rows "
        "than nominal_size",
    )
    census: UnitCounts | None = Field(default_factory=UnitCounts, description=UnitCounts.__doc__)
    group: TrainedGroup | None = Field(None, description=TrainedGroup.__doc__)
    unit: Unit = Field(default_factory=Unit, description=Unit.__doc__)
    split: Split = Field(default_factory=Split, description=Split.__doc__)
    public_test: Where | None = Field(
        None, description="another source, declared public, to evaluate on for free"
    )
    public_validation: Where | None = Field(
        None, description="another source, declared public, to score trials on for free"
    )
    public_sample: Where | None = Field(
        None,
        description="a few hundred records of the same kind, declared public, whose mean centres "
        "the features; with learner.init: public their labels train the head that "
        "trainings start from, and with learner.public they guide each step",
    )
    public_unlabelled: Where | None = Field(
        None,
        description="many records of the same kind, declared public, whose labels are not read: "
        "the final head labels them, and a student that learns those labels is released beside it, "
        "at no cost",
    )
    public_size: Count | None = Field(
        None,
        description="about how many records public_sample has, for the plan alone: with "
        "learner.public: gradient it says how much of a step is theirs, and whether trials pay "
        "beside them",
    )

    @model_validator(mode="after")
    def _class_names_are_a_set(self) -> Dataset:
        if isinstance(self.classes, tuple) and (
            len(self.classes) < 1 or len(set(self.classes)) != len(self.classes)
        ):
            raise ValueError("classes must name each class once, and at least one")
        return self

    @property
    def lopsided(self) -> bool:
        """Whether fewer than a tenth may be of another class than the most frequent one, or have a
        finding, by declaration. Each of the other classes has the rarest one's share at least."""
        if self.majority is not None:
            return 1.0 - self.majority < 0.1
        count = count_of_classes(self.source, self.classes) if self.labels == 1 else None
        return self.rare is not None and self.rare * ((count or 2) - 1) < 0.1

    @property
    def stops(self) -> Stops:
        if self.census is None:
            return "nothing"
        return "lost" if self.lopsided else "lost or lopsided"

    @property
    def label_columns(self) -> tuple[str, ...]:
        """Those that hold labels, as far as they are named."""
        return (self.label,) if isinstance(self.label, str) else self.label or ()

    @model_validator(mode="after")
    def _named_columns_are_of_a_table(self) -> Dataset:
        column_keys = [*self.label_columns, *filter(None, (self.id, self.user))]
        kind = kind_of(self.source)
        if column_keys and kind is not None and (kind.folder or not kind.is_private_file):
            raise ValueError(
                "label, id and user name columns of a table or arrays, and this source has none: "
                "leave them out"
            )
        if len(set(column_keys)) != len(column_keys):
            raise ValueError("label, id and user must name a column each")
        return self

    @property
    def names_of_columns(self) -> tuple[str, ...]:
        return tuple(column if isinstance(column, str) else column.name for column in self.columns)

    @model_validator(mode="after")
    def _columns_are_a_set(self) -> Dataset:
        names = self.names_of_columns
        if len(set(names)) != len(names):
            raise ValueError("columns must name each column once")
        return self
