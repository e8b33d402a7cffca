from dpladder.job import run
from dpladder.rules.plots import plot_budget

run(snakemake, plot_budget)  # noqa: F821, Snakemake provides it
