from dpladder.job import run
from dpladder.rules.private_search import private_search

run(snakemake, private_search)  # noqa: F821, Snakemake provides it
