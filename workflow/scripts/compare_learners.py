from dpladder.job import run
from dpladder.rules.compare_learners import compare_learners

run(snakemake, compare_learners)  # noqa: F821, Snakemake provides it
