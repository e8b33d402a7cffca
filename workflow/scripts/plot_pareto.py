from dpladder.job import run
from dpladder.rules.plots import plot_pareto

run(snakemake, plot_pareto)  # noqa: F821, Snakemake provides it
