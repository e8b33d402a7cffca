from dpladder.job import run
from dpladder.rules.run_trial import run_trial

run(snakemake, run_trial)  # noqa: F821, Snakemake provides it
