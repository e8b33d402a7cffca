from dpladder.job import run
from dpladder.rules.compare_hpo import compare_hpo

run(snakemake, compare_hpo)  # noqa: F821, Snakemake provides it
