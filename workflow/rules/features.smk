rule prepare_dataset:
    output:
        privacy="results/{experiment}/data/privacy.json",
    log:
        "logs/{experiment}/prepare_dataset.log",
    conda:
        "../../envs/dpladder.yaml"
    threads: threads_of
    resources:
        mem_mb=mem_mb_of,
        runtime=runtime_of,
    params:
        **job_params("prepare_dataset"),
    script:
        "../scripts/job.py"


use rule prepare_dataset as prepare_public with:
    output:
        privacy="results/{experiment}/data/{part}/privacy.json",
    log:
        "logs/{experiment}/prepare_public/{part}.log",
    params:
        **job_params("prepare_public"),


rule extract_features:
    input:
        **inputs("extract_features"),
    output:
        privacy="results/{experiment}/features/{part}/shards/{shard}-of-{shards}/privacy.json",
    log:
        "logs/{experiment}/features/{part}/{shard}-of-{shards}.log",
    conda:
        "../../envs/dpladder.yaml"
    threads: threads_of
    resources:
        mem_mb=mem_mb_of,
        runtime=runtime_of,
        gpu=gpu_of,
    params:
        **job_params("extract_features"),
    script:
        "../scripts/job.py"


rule merge_features:
    input:
        **inputs("merge_features"),
    output:
        privacy="results/{experiment}/features/{part}/privacy.json",
    log:
        "logs/{experiment}/features/{part}/merge.log",
    conda:
        "../../envs/dpladder.yaml"
    resources:
        mem_mb=mem_mb_of,
        runtime=runtime_of,
    params:
        **job_params("merge_features"),
    script:
        "../scripts/job.py"
