rule compose_privacy:
    input:
        plan=["results/plan.json", "results/plan.md", "results/plan.privacy.json"],
        records=privacy_records,
        files=published,
    output:
        statement="results/privacy.json",
        page="results/privacy.md",
    log:
        "logs/compose_privacy.log",
    conda:
        "../../envs/dpladder.yaml"
    params:
        cfg=plan_of,
        code=package.digest(),
    script:
        "../scripts/job.py"


use rule compose_privacy as plan_spend with:
    input:
        [],
    output:
        plan="results/plan.json",
        table="results/plan.md",
        privacy="results/plan.privacy.json",
    log:
        "logs/plan_spend.log",
    params:
        cfg=plan_of,
        code=package.digest(),
