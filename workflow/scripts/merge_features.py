from dpladder.job import run
from dpladder.rules.merge_features import merge_features

run(snakemake, merge_features)  # noqa: F821, Snakemake provides it
