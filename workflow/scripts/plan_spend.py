from dpladder.job import run
from dpladder.rules.plan_spend import plan_spend

run(snakemake, plan_spend)  # noqa: F821, Snakemake provides it
