rule find_mean:
    input:
        sample=sample_of,
    output:
        mean="results/{experiment}/centre/mean.safetensors",
        privacy="results/{experiment}/centre/privacy.json",
    log:
        "logs/{experiment}/find_mean.log",
    conda:
        "../../envs/dpladder.yaml"
    threads: threads_of
    resources:
        mem_mb=mem_mb_of,
        runtime=runtime_of,
    params:
        cfg=cfg_of("find_mean"),
        code=code_of("find_mean"),
    script:
        "../scripts/job.py"


rule find_start:
    input:
        sample=features_of("sample"),
        mean=mean_of,
    output:
        head="results/{experiment}/start/head.safetensors",
        privacy="results/{experiment}/start/privacy.json",
    log:
        "logs/{experiment}/find_start.log",
    conda:
        "../../envs/dpladder.yaml"
    threads: threads_of
    resources:
        mem_mb=mem_mb_of,
        runtime=runtime_of,
    params:
        cfg=cfg_of("find_start"),
        code=code_of("find_start"),
    script:
        "../scripts/job.py"


rule estimate_mean:
    input:
        features=features_of("train"),
    output:
        mean="results/{experiment}/mean/mean.safetensors",
        privacy="results/{experiment}/mean/privacy.json",
    log:
        "logs/{experiment}/estimate_mean.log",
    conda:
        "../../envs/dpladder.yaml"
    threads: threads_of
    resources:
        mem_mb=mem_mb_of,
        runtime=runtime_of,
    params:
        cfg=cfg_of("estimate_mean"),
        code=code_of("estimate_mean"),
    script:
        "../scripts/job.py"


rule estimate_covariance:
    input:
        features=features_of("train"),
        mean=mean_of,
    output:
        covariance="results/{experiment}/covariance/covariance.safetensors",
        privacy="results/{experiment}/covariance/privacy.json",
    log:
        "logs/{experiment}/estimate_covariance.log",
    conda:
        "../../envs/dpladder.yaml"
    threads: threads_of
    resources:
        mem_mb=mem_mb_of,
        runtime=runtime_of,
    params:
        cfg=cfg_of("estimate_covariance"),
        code=code_of("estimate_covariance"),
    script:
        "../scripts/job.py"


rule estimate_statistics:
    input:
        features=features_of("train"),
        mean=mean_of,
    output:
        statistics="results/{experiment}/statistics/statistics.h5",
        privacy="results/{experiment}/statistics/privacy.json",
    log:
        "logs/{experiment}/estimate_statistics.log",
    conda:
        "../../envs/dpladder.yaml"
    threads: threads_of
    resources:
        mem_mb=mem_mb_of,
        runtime=runtime_of,
    params:
        cfg=cfg_of("estimate_statistics"),
        code=code_of("estimate_statistics"),
    script:
        "../scripts/job.py"


rule run_trial:
    input:
        features=trial_features,
        mean=mean_of,
        covariance=covariance_of,
        statistics=statistics_of,
        start=start_of,
        below=rungs_below,
    output:
        weights="results/{experiment}/rungs/{rung}/trials/{trial}/weights.safetensors",
        score="results/{experiment}/rungs/{rung}/trials/{trial}/score.json",
        privacy="results/{experiment}/rungs/{rung}/trials/{trial}/privacy.json",
    log:
        "logs/{experiment}/rungs/{rung}/trials/{trial}.log",
    wildcard_constraints:
        experiment=trials_apart(),
    conda:
        "../../envs/dpladder.yaml"
    threads: threads_of
    resources:
        mem_mb=mem_mb_of,
        runtime=runtime_of,
        gpu=gpu_of,
    params:
        cfg=cfg_of("run_trial"),
        code=code_of("run_trial"),
    script:
        "../scripts/job.py"


# A rung is one job, and its outputs are as many as it has trials: so each has a rule of its own.
for RUNG in rungs_together():

    rule:
        name:
            RUNG.rule
        input:
            **RUNG.input,
        output:
            **RUNG.output,
        log:
            RUNG.log,
        conda:
            "../../envs/dpladder.yaml"
        threads: RUNG.resources.threads
        resources:
            mem_mb=RUNG.mem_mb,
            runtime=RUNG.runtime,
            gpu=RUNG.resources.gpu,
        params:
            cfg=RUNG.cfg,
            code=RUNG.code,
        script:
            "../scripts/job.py"


rule select_rung:
    input:
        scores=scores_of,
    output:
        best="results/{experiment}/rungs/{rung}/best.json",
        privacy="results/{experiment}/rungs/{rung}/privacy.json",
    log:
        "logs/{experiment}/rungs/{rung}/select.log",
    benchmark:
        "benchmarks/{experiment}/rungs/{rung}/select.tsv"
    conda:
        "../../envs/dpladder.yaml"
    params:
        cfg=cfg_of("select_rung"),
        code=code_of("select_rung"),
    script:
        "../scripts/job.py"
