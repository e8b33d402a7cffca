from dpladder.job import run
from dpladder.rules.train_final import train_final

run(snakemake, train_final)  # noqa: F821, Snakemake provides it
