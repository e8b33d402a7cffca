rule train_final:
    input:
        fit=fit_of,
        features=features_of("train"),
        mean=mean_of,
        covariance=covariance_of,
    output:
        weights="results/{experiment}/final/{target}/weights.safetensors",
        privacy="results/{experiment}/final/{target}/privacy.json",
    log:
        "logs/{experiment}/final/{target}/train.log",
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
        "../scripts/train_final.py"
