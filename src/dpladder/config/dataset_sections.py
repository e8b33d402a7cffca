"""The config's section about the private data: whose it is, where it lies, how it is parted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema

from dpladder.config.images_with_table import as_source_text
from dpladder.config.label_sets import MANY, Conflicts
from dpladder.config.level_texts import level_as_text
from dpladder.config.records import Grouping
from dpladder.config.sources import FORMS, SOURCES, count_of_classes, kind_of
from dpladder.section import (
    Count,
    Epsilon,
    Fraction,
    Name,
    NeutralAt,
    OnlyFor,
    Positive,
    Section,
    Words,
)
from dpladder.wording import look_alikes

NO_USERS = ("record", "document")


class Unit(Section):
    """Whose privacy is protected."""

    by: Literal["record", "document", "user"] = "record"
    """Whose records are protected together: a single record, a document's spans (dataset.spans), or
    all of a user's."""
    cap: Count = 1
    """Most records of a document or user that count; a key chooses which. 1 for records and with
    pool."""
    called: Annotated[Words | None, NeutralAt(None)] = None
    """What statements call a user, with by: user. Fixed for the lineage's life. Empty: user.
    Example: patient"""
    pool: Literal["none", "mean"] = "none"
    """mean: a user's records become a single record, the mean of their features."""
    conflicts: Conflicts = "nothing"
    """With pool: what a user counts as whose labels differ. any: the class among them that comes
    last in dataset.classes. majority: the most frequent, of equals the last. mean: the mean of
    their numbers. Of findings, each by itself: nothing leaves it out, any takes one record,
    majority half of those that know."""

    def _problems(self) -> Iterator[str]:
        if self.by == "record" and self.cap != 1:
            yield (
                "cap must be 1 when the unit is a record; set by: user, or with dataset.spans by: "
                "document, to protect several records together"
            )
        if self.called is not None and (self.by != "user" or self.called in NO_USERS):
            yield "called needs by: user, and a word for a person, such as patient"
        if not self.pooled and self.conflicts != "nothing":
            yield "conflicts need pool: mean: they are between records of one user"
        if self.pooled and (self.by != "user" or self.cap != 1):
            yield "pool needs by: user, and no cap: it makes one record of a user's"

    @property
    def word(self) -> str:
        """What statements call a unit, in the singular: patient, user, document or record."""
        return self.called or self.by

    @property
    def pooled(self) -> bool:
        """Whether all records of a user become one, the mean of their features.

        A pooled unit is one record, so its sums are bounded as a record's are and no cap is needed.
        """
        return self.pool != "none"


# share of units in a test part that nobody set
HELD_OUT = 0.2


class Split(Section):
    """How a unit finds its part."""

    rule: Literal["hash", "given"] = "hash"
    """What decides a unit's part. hash: a keyed hash of its id. given: the source's column
    split."""
    test: Fraction | None = None
    """Expected share of units in the test part. Empty: 0.2, but 0 where all experiments of a new
    lineage have dataset.public_test. Example: 0.3"""
    validation: Fraction = 0.0
    """Expected share of units that score trials."""

    def _problems(self) -> Iterator[str]:
        if self.held_out + self.validation >= 1:
            yield (
                "test must stay below 1 with validation added, so that something is left to train "
                "on"
            )

    @property
    def held_out(self) -> float:
        """The share of units that form the private test part; the rest trains and validates.

        It is 0.2 where the config leaves it to the plan, until plan/resolve.py decides.
        """
        return HELD_OUT if self.test is None else self.test


class Column(Section):
    """What is publicly known of a table's column. Its values must not decide it: a scaler or a list
    of levels taken from private data is a leak."""

    name: Words
    """The column's name. Example: age"""
    levels: tuple[Words, ...] = ()
    """Its possible values, each a feature of 1 or 0. Numbers stand in quotes. Example: [red, green,
    blue]"""
    range: tuple[float, float] | None = None
    """Smallest and largest value. Values are cut there and scaled to -1 to 1. Empty: numbers as
    they are. Example: [0, 100]"""
    missing: Annotated[float | None, NeutralAt(None)] = None
    """What a missing number counts as. Empty: a record without it counts as nothing. Example: 40"""
    mark_missing: Annotated[bool, NeutralAt(False)] = False
    """Whether a feature marks missing numbers by 1. Needs missing."""
    scale: Annotated[Literal["linear", "log"], NeutralAt("linear")] = "linear"
    """log: numbers count by their logarithm, log(1 + x) where the range begins at 0."""
    knots: Annotated[Count | tuple[float, ...] | None, NeutralAt(None)] = None
    """Where its curve bends: how many equal pieces, or the values themselves. Empty:
    features.curves says. Example: 8"""
    curve: Annotated[bool, NeutralAt(True)] = True
    """false: a line, never a curve."""
    monotone: Annotated[Literal["up", "down"] | None, NeutralAt(None)] = None
    """A final model's prediction may only rise, or only fall, with the number: the log-odds of the
    second of two classes, or of each finding. A later change pays the final
    training anew. Empty: either. Example: up"""

    def _problems(self) -> Iterator[str]:
        if self.range is None and (self.scale != "linear" or self.knots is not None):
            yield "scale and knots need a range"
        elif self.range is not None and self.scale == "log" and self.range[0] < 0:
            yield "scale: log needs a range that begins at 0 or above"
        if self.range is None and self.monotone is not None:
            yield "monotone is of numbers, and needs a range"
        if self.knots is not None and not self.curve:
            yield "knots are of curves: leave them out, or curve: false"
        if isinstance(self.knots, tuple) and self.range is not None:
            ends = (self.range[0], *self.knots, self.range[1])
            if not self.knots or any(a >= b for a, b in pairwise(ends)):
                yield "knots must lie inside the range, each above the one before"
        if self.levels and self.range is not None:
            yield "a column has levels or a range, not both"
        if len({*map(level_as_text, self.levels)}) != len(self.levels):
            yield "levels must name each level once, and 1 and 1.0 are one level"
        if self.range is not None and not self.range[0] < self.range[1]:
            yield "range must be [smallest, largest]"
        if self.levels and self.missing is not None:
            yield "missing is for numbers; of levels a missing one is none of them"
        if self.mark_missing and self.missing is None:
            yield "mark_missing needs missing: what a missing number counts as"


# columns with a meaning of their own, which a group cannot have too
RESERVED_COLUMNS = ("label", "id", "user", "split", "path", "text")
COLUMNS_OF_PREDICTIONS = ("input", "record", "problem")  # beside what is predicted
TAGS = ("\0a name", "\0a column")  # how pydantic tells both apart; no key in YAML holds a NUL
Chosen = Annotated[
    Annotated[str, Tag(TAGS[0])] | Annotated[Column, Tag(TAGS[1])],
    Discriminator(lambda value: TAGS[not isinstance(value, str | int | float)]),
]

Cross = tuple[Words, Words]


Groups = tuple[Words, ...]


SHORTEST = 1e-100  # range of a target: squares of what lies in it are floats, and so is its inverse
MOST_ERRORS = 1e6  # in a range: targets are told apart by a billionth of it


class NumberTarget(Section):
    """The number that is predicted, in place of a class. A record without a finite number counts as
    nothing. Empty: classes are."""

    range: tuple[float, float]
    """Its smallest and largest value, known publicly. Values beyond are cut to it. Example: [0,
    100]"""
    column: Words | None = None
    """The table's column, or the array, of each record's number. Empty: label, and of a folder the
    names of the folders in it. Example: age"""
    unit: Annotated[Words | None, NeutralAt(None)] = None
    """What the number is counted in, as the page writes it. Empty: nothing. Example: days"""
    error: Annotated[Positive | None, NeutralAt(None)] = None
    """Largest error that tests count; larger ones count as this. A change asks the test anew, and
    no training. Empty: a first look at errors says it. Example: 20"""

    def _problems(self) -> Iterator[str]:
        taken = {*RESERVED_COLUMNS, *COLUMNS_OF_PREDICTIONS} - {"label"}
        if self.column in taken:
            yield f"column must not be one of {', '.join(sorted(taken))}, which say something else"
        length = self.range[1] - self.range[0]
        if not self.range[0] < self.range[1]:
            yield "range must be [smallest, largest], two finite numbers"
        elif not SHORTEST <= length <= 1 / SHORTEST:
            yield f"range must be {SHORTEST:g} long at least and {1 / SHORTEST:g} at most"
        elif self.error is not None and not length / MOST_ERRORS <= self.error <= length:
            yield "error must not be longer than the range, nor shorter than a millionth of it"


class Group(Section):
    """The publicly named group that a record is of, such as a hospital. A record of none counts as
    nothing. Empty: none."""

    names: Annotated[Groups, Field(min_length=1)]
    """The groups, never read off the data. Example: [north, south, east]"""
    column: Words | None = None
    """The table's column, or the array, of each record's group. Empty: level says where. Example:
    hospital"""
    level: Literal[1, 2] | None = None
    """Which folder is the group. 1: group/class/file. 2: class/group/file. Empty: column says.
    Example: 1"""

    def _problems(self) -> Iterator[str]:
        if len(set(self.names)) != len(self.names):
            yield "names must name each group once"
        if (self.column is None) == (self.level is None):
            yield "names need to be found: give column for a table or arrays, level for folders"
        if self.column in RESERVED_COLUMNS:
            yield f"column must not be one of {', '.join(RESERVED_COLUMNS)}"

    @property
    def grouping(self) -> Grouping:
        """The groups, without which of them are trained on."""
        return Grouping(self.names, self.column, self.level)


class TrainedGroup(Group):
    """The publicly named group that a record is of, such as a hospital. A record of none counts as
    nothing. Empty: none."""

    train: Groups = ()
    """Groups that are trained on. Records of others are tested alone. Empty: all. Example: [north,
    south]"""

    def _problems(self) -> Iterator[str]:
        yield from super()._problems()
        if len(set(self.train)) != len(self.train) or not set(self.train) <= set(self.names):
            yield "train must name some of names, each once"

    @property
    def trained(self) -> tuple[str, ...]:
        """The groups that trainings read; the others are for tests alone."""
        return self.train or self.names


class UnitCounts(Section):
    """A noised histogram of the training part's units by class, before all else. A run stops where
    fewer than half of nominal_size count as something, or fewer than a tenth are outside the most
    frequent class. null: no count, and no data stops a run."""

    epsilon: Epsilon | None = None
    """Epsilon of these counts. Empty: the least at which a run without any of its units stops but
    for once in a million, 1 % of mu^2 at most. Example: 0.02"""


Where = Annotated[
    str,
    Field(min_length=1),
    BeforeValidator(as_source_text),
    WithJsonSchema({"type": ["string", "object"]}, mode="validation"),
]
Links = Literal["none", "inside"]
Counted = Literal["ignore", 0, 1]
Stops = Literal["lost or lopsided", "lost", "nothing"]
"""Which data stops a run, by the noised counts of its units.

lost: fewer than half of nominal_size count as something. lopsided: fewer than a tenth are of
another class than the most frequent one, or have a finding."""


SOURCES_OF_DATASET = (
    "source",
    "public_test",
    "public_validation",
    "public_sample",
    "public_unlabelled",
)
"""The keys that name a source, the private one first."""


def _any_reads_folder(c: Any) -> bool:
    """Whether files below a folder are read for any of a config's sources."""
    sources = [getattr(c.dataset, key) for key in SOURCES_OF_DATASET]
    kinds = [kind_of(source) for source in sources if source is not None]
    return any(kind is not None and kind.reads_folder for kind in kinds)


OF_COLUMNS = OnlyFor(
    "sources with columns or arrays",
    lambda c: (kind := kind_of(c.dataset.source)) is None or kind.by_columns,
)
OF_TABLES = OnlyFor(
    f"tables ({', '.join(name for name, kind in SOURCES.items() if kind.columns)})",
    lambda c: (kind := kind_of(c.dataset.source)) is None or kind.columns,
)
OF_FOLDERS = OnlyFor(
    f"folders ({', '.join(name for name, kind in SOURCES.items() if kind.reads_folder)})",
    _any_reads_folder,
)
OF_CLASSES = OnlyFor("task: classification", lambda c: c.task == "classification")
OF_FINDINGS = OnlyFor("dataset.labels: many", lambda c: c.dataset.labels == MANY)
OF_SPANS = OnlyFor("task: language_model", lambda c: c.task == "language_model")
OF_SAMPLE = OnlyFor("dataset.public_sample", lambda c: c.dataset.public_sample is not None)


class Dataset(Section):
    """The private data: a lineage for life, and where its current version lies."""

    lineage: Name
    """The data's name for life, which every later version keeps. Example: clinic-chests"""
    source: Where = Field(
        description=f"Where the records come from. One of: {'; '.join(FORMS)}",
    )
    columns: Annotated[tuple[Chosen, ...], OF_TABLES] = ()
    """The features in their order: names, or columns with public levels or a range. Of jsonl, also
    which of id, user and split its lines have. Empty: all but label, id, user, split and a pandas
    index. Example: [visits, {name: age, range: [0, 100]}]"""
    crosses: Annotated[tuple[Cross, ...], NeutralAt(()), OF_TABLES] = ()
    """Pairs of columns with ranges or levels whose effects depend on each other. Each adds the
    products of their curves or levels. Empty: none. Example: [[longitude, latitude]]"""
    label: Annotated[Words | tuple[Words, ...] | None, OF_COLUMNS] = None
    """The column, or array, of each record's class. With labels: many also a list of columns, the
    classes' names. Empty: label. Example: diagnosis"""
    id: Annotated[str | None, Field(min_length=1), OF_COLUMNS] = None
    """The column of each record's own id. Empty: id, where there is one. Example: case"""
    user: Annotated[str | None, Field(min_length=1), OF_COLUMNS] = None
    """The column that says whose a record is. Empty: user, where there is one. Example: patient"""
    nominal_size: Count
    """About how many units train: a round, public figure, by which sums are divided. Example:
    4000"""
    target: Annotated[NumberTarget | None, NeutralAt(None)] = None
    classes: Annotated[Count | tuple[str, ...] | None, OF_CLASSES] = None
    """The classes in their order, or how many. Empty: those of a data set known by name, or of the
    list dataset.label. Example: [healthy, ill]"""
    majority: Annotated[Annotated[float, Field(gt=0, lt=1)] | None, OF_CLASSES] = None
    """The largest class's share, known from elsewhere, with which the report compares accuracy.
    Empty: not known. Example: 0.9"""
    rare: Annotated[Annotated[float, Field(gt=0, lt=1)] | None, OF_CLASSES] = None
    """The rarest class's or finding's share, known from elsewhere. Few records of it then stop no
    run, and the plan says whether a test can see it. Empty: not known. Example: 0.03"""
    labels: Count | Literal["many", "number"] = 1
    """Most classes of a record. Above 1 (learner dp_ls) a label is a list, or cat|dog, and a
    prediction is right if it names one. many (multi-label): any number of findings, or none.
    number: set by dataset.target."""
    unknown: Annotated[Counted, OF_FINDINGS] = "ignore"
    """What a finding of -1 (uncertain) or blank counts as: left out for this record, absent, or
    present."""
    blank: Annotated[Counted | None, OF_FINDINGS] = None
    """What a blank finding, often not mentioned, counts as. Empty: as unknown. Example: 0"""
    version: Annotated[int | None, NeutralAt(None)] = None
    """This version's number. Changed data gets another one and is asked anew, at its price; under
    the same number releases are restored, and later units count as nothing. Experiments with
    different sources need a number each. Empty: the data never changed. Example: 2"""
    links: Annotated[Links, OF_FOLDERS] = "none"
    """Which links in a folder are followed. none: links count as nothing. inside: those within the
    source."""
    declared_public: bool = False
    """Whether nobody in the data needs protection; mode: research requires it."""
    spans: Annotated[bool, OF_SPANS] = False
    """Whether a text longer than features.tokens becomes several records, of which dataset.unit.cap
    count; dataset.unit.by is then document or user."""
    equal_rows: Annotated[Literal["one_record"] | None, NeutralAt(None)] = None
    """one_record: equal rows of a table without ids are one record. Empty: the run is refused where
    the levels allow fewer different rows than nominal_size. Example: one_record"""
    census: UnitCounts | None = Field(default_factory=UnitCounts)
    group: TrainedGroup | None = None
    unit: Unit = Field(default_factory=Unit)
    split: Split = Field(default_factory=Split)
    public_test: Where | None = None
    """Another source, declared public, to test on for free. Empty: the private test part. Example:
    folder:public/test"""
    public_validation: Where | None = None
    """Another source, declared public, to score trials on for free. Empty: private records score
    them. Example: folder:public/validation"""
    public_sample: Where | None = None
    """A few hundred similar records, declared public. Their mean centres the features; labelled,
    they train the first head (learner.init: public) or guide each step (learner.public). Empty:
    none. Example: folder:public/sample"""
    public_unlabelled: Annotated[Where | None, OF_CLASSES] = None
    """Many similar records, declared public, without labels. A student that learns the final head's
    labels of them is released beside it, for free. Empty: none. Example:
    folder:public/unlabelled"""
    public_size: Annotated[Count | None, OF_SAMPLE] = None
    """About how many records public_sample has, by which the plan says how much of a step is
    theirs, and whether trials pay. Empty: not known. Example: 200"""

    def _problems(self) -> Iterator[str]:
        if isinstance(self.classes, tuple) and (
            len(self.classes) < 1 or len(set(self.classes)) != len(self.classes)
        ):
            yield "classes must name each class once, and at least one"
        elif isinstance(self.classes, tuple) and (pair := look_alikes(self.classes)):
            yield (
                f"classes names {pair[0]!a} and {pair[1]!a}, which look alike: write both "
                "in letters of one script, or leave one out"
            )
        column_keys = [*self.label_columns, *filter(None, (self.id, self.user))]
        if len(set(column_keys)) != len(column_keys):
            yield "label, id and user must name a column each"
        names = self.names_of_columns
        if len(set(names)) != len(names):
            yield "columns must name each column once"
        yield from self._problems_of_crosses()

    def _problems_of_crosses(self) -> Iterator[str]:
        bounded = {
            one.name
            for one in self.columns
            if isinstance(one, Column) and (one.levels or one.range)
        }
        for cross in self.crosses:
            if unbounded := [name for name in cross if name not in bounded]:
                yield (
                    f"crosses name {unbounded[0]}, which has no levels and no range in columns: "
                    "give it one there, or leave the pair out"
                )
        crossed = {name for cross in self.crosses for name in cross}
        if both := [name for name in self.monotone if name in crossed]:
            yield (
                f"crosses name {both[0]}, which is monotone, so that another column could turn it: "
                "leave out one of them"
            )
        pairs = [{*cross} for cross in self.crosses]
        if any(len(pair) < 2 or pairs.count(pair) > 1 for pair in pairs):
            yield "crosses must name two columns each, and each pair once"

    @property
    def monotone(self) -> dict[str, str]:
        """The columns that a prediction may only rise or only fall with, and which of these."""
        columns = (one for one in self.columns if not isinstance(one, str))
        return {one.name: one.monotone for one in columns if one.monotone is not None}

    @property
    def lopsided(self) -> bool:
        """Whether fewer than a tenth may be of another class than the most frequent one, or have a
        finding, by declaration. Each of the other classes has the rarest one's share at least.

        Such data would look broken to the count before a run, and declares here that it is not.
        """
        if self.majority is not None:
            return 1.0 - self.majority < 0.1
        count = count_of_classes(self.source, self.classes) if self.labels == 1 else None
        return self.rare is not None and self.rare * ((count or 2) - 1) < 0.1

    @property
    def stops(self) -> Stops:
        """Which data stops a run, by noised counts alone (contract: refuse-first): none where
        nothing is counted, and none for being lopsided where that was declared."""
        if self.census is None:
            return "nothing"
        return "lost" if self.lopsided else "lost or lopsided"

    @property
    def label_columns(self) -> tuple[str, ...]:
        """Those that hold labels, as far as they are named; empty where the column is called
        label."""
        return (self.label,) if isinstance(self.label, str) else self.label or ()

    @property
    def names_of_columns(self) -> tuple[str, ...]:
        """The columns by name, in the config's order, whatever else is said of them."""
        return tuple(column if isinstance(column, str) else column.name for column in self.columns)
