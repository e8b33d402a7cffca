# dpladder: tune and train differentially private models, with every epsilon on the books.
# The config is read, checked and priced here, before any private record is; nothing heavy is imported.


include: "workflow/rules/common.smk"
include: "workflow/rules/features.smk"
include: "workflow/rules/sweep.smk"
include: "workflow/rules/fit.smk"
include: "workflow/rules/final.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/privacy.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/baselines.smk"


# The reservation, the only one: it sees exactly the jobs that will run, before any output is deleted.
onstart:
    reserve(PARSED, [(job.rule.name, dict(job.wildcards.items())) for job in workflow.dag.needrun_jobs()])


onsuccess:
    conclude()


rule all:
    default_target: True
    input:
        "results/privacy.json",
        summaries,
        pictures,


rule plan:
    input:
        "results/plan.json",
