"""How a rule's row names the jobs whose outputs the rule reads."""

from __future__ import annotations

from dpladder.plan.follows import is_public, looks_back, records_of
from dpladder.plan.node import Input, Node


def outputs(output: str, *makers: str, tells_apart: bool = True, several: bool = False) -> Input:
    """This output of all jobs of the makers whose wildcards agree with those of the reader.

    Args:
        output: its name in their rules.
        *makers: rules.
        tells_apart, several: as an `Input` has them.
    """

    def find(reader: Node) -> list[Node]:
        return [job for maker in makers for job in reader.jobs(maker, **reader.wildcards)]

    return Input(output, find, tells_apart, several)


def _merged_features(reader: Node) -> list[Node]:
    return [job for part in reader.parts for job in reader.jobs("merge_features", part=part)]


def _manifest(reader: Node) -> list[Node]:
    """The private dataset's, or that of a source declared public for the part."""
    part = records_of(reader.config, reader.parts[0])
    if is_public(reader.config, part):
        return reader.jobs("prepare_public", part=part)
    return reader.jobs("prepare_dataset")


def _rungs_below(reader: Node) -> list[Node]:
    """Earlier rungs' releases, where a rung's draws start from them. No checkpoint is needed for
    that."""
    rungs = range(int(reader.wildcards["rung"])) if looks_back(reader.config) else ()
    return [job for rung in rungs for job in reader.jobs("select_rung", rung=str(rung))]


DATA = {"data": Input("privacy", _manifest)}
FEATURES = {"features": Input("privacy", _merged_features, several=True)}
BELOW = {"below": Input("best", _rungs_below, several=True)}
# Before anything is released, units are counted, which may stop the run.
COUNTED = {"counted": outputs("privacy", "count_units", tells_apart=False)}
MEAN = {"mean": outputs("mean", "estimate_mean", "find_mean")}
SUMS = {"sums": outputs("sums", "estimate_sums")}
START = {"start": outputs("head", "estimate_head", "find_start")}
SEEN = {**FEATURES, **COUNTED, **MEAN}
