from dpladder.job import run
from dpladder.rules.prepare_dataset import prepare_dataset

run(snakemake, prepare_dataset)  # noqa: F821, Snakemake provides it
