from dpladder.job import run
from dpladder.rules.extract_features import extract_features

run(snakemake, extract_features)  # noqa: F821, Snakemake provides it
