from dpladder.job import run
from dpladder.rules.evaluate import evaluate

run(snakemake, evaluate)  # noqa: F821, Snakemake provides it
