from dpladder.job import run
from dpladder.rules.compose_privacy import compose_privacy

run(snakemake, compose_privacy)  # noqa: F821, Snakemake provides it
