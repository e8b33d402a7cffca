from dpladder.job import run
from dpladder.rules.plots import plot_heatmap

run(snakemake, plot_heatmap)  # noqa: F821, Snakemake provides it
