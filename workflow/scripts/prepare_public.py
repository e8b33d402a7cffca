from dpladder.job import run
from dpladder.rules.prepare_public import prepare_public

run(snakemake, prepare_public)  # noqa: F821, Snakemake provides it
