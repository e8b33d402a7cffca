from dpladder.job import run
from dpladder.rules.estimate_mean import estimate_mean

run(snakemake, estimate_mean)  # noqa: F821, Snakemake provides it
