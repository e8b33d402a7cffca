from dpladder.job import run
from dpladder.rules.plots import plot_utility

run(snakemake, plot_utility)  # noqa: F821, Snakemake provides it
