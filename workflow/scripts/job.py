"""The one script of the workflow: it does what the rule's name says."""

from dpladder.jobs.run import run_job

run_job(snakemake)  # noqa: F821, Snakemake provides it
