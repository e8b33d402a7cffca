from dpladder.job import run
from dpladder.rules.plots import tabulate

run(snakemake, tabulate)  # noqa: F821, Snakemake provides it
