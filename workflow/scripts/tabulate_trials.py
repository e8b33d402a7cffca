from dpladder.job import run
from dpladder.rules.plots import tabulate_trials

run(snakemake, tabulate_trials)  # noqa: F821, Snakemake provides it
