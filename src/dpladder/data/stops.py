"""Everything about a source's records that stops a run, for `dpladder check` and the jobs.

A source that cannot be opened as the config says is refused where it is opened, which check and
jobs share (prepare.survey). Such a source lacks a file or columns, or has arrays of unequal length.
Of a source that opens, three things stop a run:

- **Its kind**: images for a network that takes texts (`check_kind`).
- **Too few different rows** for the size that is declared, by header and config alone, in a table
  without ids (`refuse_too_few_different_rows`).
- **Counts of its units** (`reason_to_stop`). Wrong paths and misspelt classes make records count as
nothing, or leave one class. A run would spend its budget on that and report an accuracy of 1. So it
stops where fewer than half of the units that the config declares count as something. It also stops
where fewer than a tenth of those that count are of another class than the most frequent one. Of
findings
  (`dataset.labels: many`) these others are the units that have any, or those that lack any,
  whichever are fewer. Where the config declares that these others are rare, how many there are
  stops nothing.

The first two show in an exit code and tell nothing of a record. The third would: whoever chooses
configs can put the data on any line. So a run sees private records through noised counts alone
(jobs/count_units.py), which are charged and kept like every release; what follows from them is
post-processing. Data on the right side of both lines is stopped by noise once in a million runs at
most. Where the noise is too large to tell, the run goes on. What is declared public is counted
exactly, by the same rule, when it is prepared and when its features are there (jobs/checking.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.config.dataset_sections import Stops
from dpladder.config.detectability import FEWEST_UNITS, least_units, noise_margin
from dpladder.config.features_sections import Features
from dpladder.config.label_sets import MANY, Labels
from dpladder.data.equal_rows import WAYS_OUT, most_different_rows
from dpladder.data.prepare import Survey
from dpladder.data.sources import Source
from dpladder.errors import BadInput


def check_kind(features: Features, source: Source) -> None:
    """Refuse a network that does not take what the source holds. Config and suffixes decide, and no
    record.

    Raises:
        BadInput: it takes something else.
    """
    if features.takes == "features" and source.kind in ("files", "texts"):
        kinds = (
            "image files. Name a timm model"
            if source.kind == "files"
            else "texts. Set features.model: minilm"
        )
        raise BadInput(f"features.model is none, but {source.name} holds {kinds}.")
    if features.takes == "features":
        return
    if source.kind == "features":
        raise BadInput(
            f"features.model is {features.model}, but {source.name} already holds features. Set "
            "features.model: none."
        )
    if (source.kind == "texts") != (features.takes == "texts"):
        kinds = (
            "texts: set features.model to minilm or hf:<name>"
            if source.kind == "texts"
            else "images"
        )
        raise BadInput(
            f"features.model is {features.model}, which takes {features.takes}, but {source.name} "
            f"holds {kinds}."
        )


def refuse_too_few_different_rows(surveyed: Survey, nominal_size: int) -> None:
    """Refuse a table in which nominal_size rows cannot all differ. Header and config decide, and no
    record.

    Raises:
        BadInput: the declared levels allow fewer rows than that.
    """
    allowed = most_different_rows(surveyed)
    if allowed is not None and allowed < nominal_size:
        raise BadInput(
            f"the table has no id column, and its declared levels allow {allowed:,} different rows "
            f"at most, for a dataset.nominal_size of {nominal_size:,}. Equal rows would count as "
            f"one record. Nothing was spent. {WAYS_OUT}."
        )


def reason_to_stop(
    counts: NDArray[Any], expected: int, stops: Stops, most: Labels = 1, sd: float = 0.0
) -> str | None:
    """Why data of these units cannot be what the config means; None where it may be.

    Args:
        counts: (1 + classes,), all units that count, and those of each class. Of findings, (4,):
            all, and those that have none, some and all of them (`units_by_class`).
        expected: how many units there are by declaration.
        stops: which data is to stop anything.
        most: classes of a record, or `many` where each is a finding.
        sd: of the noise in each count, Gaussian and independent; 0 where counts are exact.
    """
    usable, by_class = float(counts[0]), np.asarray(counts[1:], np.float64)
    if stops != "nothing" and usable < least_units(expected, sd):
        return "most of it counts as nothing"
    if stops != "lost or lopsided" or len(by_class) == 1:
        return None
    rest = usable - (by_class[[0, 2]] if most == MANY else by_class)
    # of a tenth of all less the others, which is nine tenths of one count less another
    margin = max(noise_margin(sd * math.sqrt(0.9**2 + 1), len(rest)), FEWEST_UNITS / 10)
    if min(rest) < usable / 10 - margin:
        return "nearly all of it is of one class, or has no finding, or has all"
    return None
