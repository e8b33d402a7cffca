from dpladder.job import run
from dpladder.rules.plots import plot_scores

run(snakemake, plot_scores)  # noqa: F821, Snakemake provides it
