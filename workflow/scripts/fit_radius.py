from dpladder.job import run
from dpladder.rules.fit_radius import fit_radius

run(snakemake, fit_radius)  # noqa: F821, Snakemake provides it
