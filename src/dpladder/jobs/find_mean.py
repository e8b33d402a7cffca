"""The mean that centres features for nothing: of a sample declared public, or the network's own."""

from __future__ import annotations

from safetensors.numpy import save_file

from dpladder.data import centre
from dpladder.jobs.private import part_of, read_raw
from dpladder.jobs.record import write_record
from dpladder.jobs.task import Task
from dpladder.plan.reads import FindMean


def find_mean(task: Task[FindMean]) -> None:
    if task.reads.centre == "public":
        found = centre.plain_mean(read_raw(part_of(task, "sample")).features)
        free = "the mean of a source that the config declares public"
    else:
        found = centre.network_mean(task.reads.features)
        free = "computed from a public network alone"
    save_file({"mean": found}, task.output["mean"])
    write_record(task, free=free)
