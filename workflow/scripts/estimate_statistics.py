from dpladder.job import run
from dpladder.rules.estimate_statistics import estimate_statistics

run(snakemake, estimate_statistics)  # noqa: F821, Snakemake provides it
