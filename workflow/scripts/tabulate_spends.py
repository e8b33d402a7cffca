from dpladder.job import run
from dpladder.rules.plots import tabulate_spends

run(snakemake, tabulate_spends)  # noqa: F821, Snakemake provides it
