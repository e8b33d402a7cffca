from dpladder.job import run
from dpladder.rules.estimate_covariance import estimate_covariance

run(snakemake, estimate_covariance)  # noqa: F821, Snakemake provides it
