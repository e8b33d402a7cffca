"""The mean that centres features for nothing: of a sample declared public, or the network's own."""

from __future__ import annotations

from safetensors.numpy import save_file

from dpladder.data import centre
from dpladder.jobs.private import depths_of, part_of, read_raw, save_found
from dpladder.jobs.record import write_record
from dpladder.jobs.task import Task
from dpladder.learn.interface import plain
from dpladder.plan.reads import FindMean


def find_mean(task: Task[FindMean]) -> None:
    if task.reads.centre == "public":
        sample = part_of(task, "sample")
        seen = centre.Map(depths=depths_of(task, sample))
        found = centre.plain_mean(centre.Mapped(plain(read_raw(sample).features), seen))
        save_found(task, "mean", {"mean": found})
        free = "the mean of a source that the config declares public"
    else:
        network = task.reads.features.model_copy(update={"layers": task.reads.layers})
        save_file({"mean": centre.network_mean(network)}, task.output["mean"])
        free = "computed from a public network alone"
    write_record(task, free=free)
