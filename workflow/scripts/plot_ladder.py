from dpladder.job import run
from dpladder.rules.plots import plot_ladder

run(snakemake, plot_ladder)  # noqa: F821, Snakemake provides it
