from dpladder.job import run
from dpladder.rules.select_rung import select_rung

run(snakemake, select_rung)  # noqa: F821, Snakemake provides it
