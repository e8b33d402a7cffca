rule evaluate:
    input:
        weights=final_of(WEIGHTS),
        features=features_of("test"),
        mean=mean_of,
    output:
        metrics="results/{experiment}/final/{target}/metrics.json",
        privacy="results/{experiment}/final/{target}/metrics.privacy.json",
    log:
        "logs/{experiment}/final/{target}/evaluate.log",
    wildcard_constraints:
        experiment=those_with("evaluate"),
    conda:
        "../../envs/dpladder.yaml"
    threads: threads_of
    resources:
        mem_mb=mem_mb_of,
        runtime=runtime_of,
    params:
        cfg=cfg_of("evaluate"),
        code=code_of("evaluate"),
    script:
        "../scripts/job.py"


# Another experiment's models, on records of another lineage, which alone pays.
rule evaluate_of:
    input:
        weights=final_of(WEIGHTS),
        features=features_of("test"),
        mean=mean_of,
    output:
        metrics="results/{experiment}/tests/{target}/metrics.json",
        privacy="results/{experiment}/tests/{target}/privacy.json",
    log:
        "logs/{experiment}/tests/{target}.log",
    wildcard_constraints:
        experiment=those_with("evaluate_of"),
    conda:
        "../../envs/dpladder.yaml"
    threads: threads_of
    resources:
        mem_mb=mem_mb_of,
        runtime=runtime_of,
    params:
        cfg=cfg_of("evaluate_of"),
        code=code_of("evaluate_of"),
    script:
        "../scripts/job.py"


rule evaluate_also:
    input:
        weights=final_of(WEIGHTS),
        features=also_features,
        mean=mean_of,
    output:
        metrics="results/{experiment}/final/{target}/also/{test}/metrics.json",
        privacy="results/{experiment}/final/{target}/also/{test}/privacy.json",
    log:
        "logs/{experiment}/final/{target}/also/{test}.log",
    conda:
        "../../envs/dpladder.yaml"
    threads: threads_of
    resources:
        mem_mb=mem_mb_of,
        runtime=runtime_of,
    params:
        cfg=cfg_of("evaluate_also"),
        code=code_of("evaluate_also"),
    script:
        "../scripts/job.py"
