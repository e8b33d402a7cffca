"""Units of the training part by class, counted under noise before anything else is asked. Where
they say that the data cannot be what the config means, the run stops (data/stops.py)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from dpladder.config.label_sets import MANY
from dpladder.data.stops import reason_to_stop
from dpladder.errors import Refused
from dpladder.jobs.features import part_of, read_raw, stored_constants
from dpladder.jobs.release import Release, release_once, single
from dpladder.jobs.reservation import find_reservation
from dpladder.jobs.task import Task, read_json, write_json
from dpladder.learn import counts
from dpladder.learn.queries import UnitsByClass, declared
from dpladder.plan.reads import CountUnits
from dpladder.privacy.accounting import gdp
from dpladder.privacy.release.meter import Meter


def count_units(task: Task[CountUnits]) -> None:
    """Count the units of the training part, and stop the run where they say that the data cannot be
    what the config means. What stops it are the noised counts alone, which are released: so the
    exit code tells no more than they do.

    The check comes after the release on purpose. Run again, the counts are restored, free, and the
    run stops at the same place (contract: refuse-first).

    Raises:
        Refused: the noised counts are on the wrong side of a line (data/stops.py).
    """
    release_once(release_of(task))
    census, reads = read_json(task.output["census"]), task.reads
    noised, sd = np.array(census["counts"]), float(census["sd"])
    why = reason_to_stop(noised, reads.nominal_size, reads.stops, reads.labels, sd)
    if why is not None:
        raise Refused(
            f"the data does not look like what the config describes: {why}. Counted under noise, "
            f"{noised[0]:,.0f} units of the {reads.nominal_size:,} that train by declaration "
            f"count as something, by class {', '.join(f'{count:,.0f}' for count in noised[1:])} "
            f"(each ± {sd:,.0f}). Nothing else was spent, and these counts are kept. `dpladder "
            "check` shows on your terminal what is wrong. Then correct the config. If the data is "
            "wrong, or others than this version was first asked about, give it a new "
            "dataset.version; other people's data need a lineage of their own. If all of this is "
            "right, declare dataset.rare or nominal_size, or set dataset.census: null."
        )


def release_of(task: Task[CountUnits]) -> Release:
    """Noised counts of units by class.

    Sensitivity: sqrt(2), however many records a unit has (`queries.UnitsByClass`).

    Guarantee: mu-GDP for what was reserved as `class counts`.
    """
    reservation, train = find_reservation(task), part_of(task, "train")
    sigma = gdp.sigma(reservation.mu("class counts"), 1)
    # Classes; or of findings three cells: the units that have none of them, some and all.
    cells = 3 if task.reads.labels == MANY else train.classes
    # a unit is counted once, however many records it has
    constants = replace(stored_constants(task, train), cap=1)
    query = UnitsByClass(name="units", multiplier=sigma, classes=cells)
    costs = declared([query], constants)

    def produce(meter: Meter, folder: Path) -> None:
        noised = counts.ask(query.at(), read_raw(train), constants, meter)
        write_json(
            folder / "census.json", {"counts": noised.tolist(), "sd": query.scale(constants)}
        )

    spends = reservation.actual_spends("class counts", costs.events)
    inputs = {"train": train.map_name}
    return single(reservation, spends, costs.draws, inputs, ("census",), produce)
