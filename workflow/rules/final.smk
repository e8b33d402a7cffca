rule train_final:
    input:
        fit=fit_of,
        features=features_of("train"),
        mean=mean_of,
        covariance=covariance_of,
        statistics=statistics_of,
        start=start_of,
    output:
        weights="results/{experiment}/final/{target}/weights.safetensors",
        privacy="results/{experiment}/final/{target}/privacy.json",
    log:
        "logs/{experiment}/final/{target}/train.log",
    wildcard_constraints:
        experiment=those_with("train_final"),
    conda:
        "../../envs/dpladder.yaml"
    threads: threads_of
    resources:
        mem_mb=mem_mb_of,
        runtime=runtime_of,
        gpu=gpu_of,
    params:
        cfg=cfg_of("train_final"),
        code=code_of("train_final"),
    script:
        "../scripts/job.py"


# Everything that a private search trains stays in one job with one output: its theorem needs that.
rule private_search:
    input:
        features=features_of("train"),
        mean=mean_of,
        start=start_of,
    output:
        weights="results/{experiment}/final/{target}/weights.safetensors",
        privacy="results/{experiment}/final/{target}/privacy.json",
    log:
        "logs/{experiment}/final/{target}/search.log",
    wildcard_constraints:
        experiment=those_with("private_search"),
    conda:
        "../../envs/dpladder.yaml"
    threads: threads_of
    resources:
        mem_mb=mem_mb_of,
        runtime=runtime_of,
        gpu=gpu_of,
    params:
        cfg=cfg_of("private_search"),
        code=code_of("private_search"),
    script:
        "../scripts/job.py"


# Research alone: the same learner without noise, for the gap to privacy. It puts no model out.
rule train_open:
    input:
        features=open_tests,
        mean=mean_of,
        start=start_of,
    output:
        metrics="results/{experiment}/open/metrics.json",
        privacy="results/{experiment}/open/privacy.json",
    log:
        "logs/{experiment}/open.log",
    conda:
        "../../envs/dpladder.yaml"
    threads: threads_of
    resources:
        mem_mb=mem_mb_of,
        runtime=runtime_of,
        gpu=gpu_of,
    params:
        cfg=cfg_of("train_open"),
        code=code_of("train_open"),
    script:
        "../scripts/job.py"
