# The workflow is in workflow/Snakefile; this file lets `snakemake` find it from here.


include: "workflow/Snakefile"


# `include:` leaves the default target of what it includes behind.
workflow.default_target = "all"
