from dpladder.job import run
from dpladder.rules.summarise import summarise

run(snakemake, summarise)  # noqa: F821, Snakemake provides it
