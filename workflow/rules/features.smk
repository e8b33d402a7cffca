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
        cfg=cfg_of("prepare_dataset"),
        code=code_of("prepare_dataset"),
    script:
        "../scripts/job.py"


rule prepare_public:
    input:
        private=output_of("prepare_dataset", DATA),
    output:
        privacy="results/{experiment}/data/{part}/privacy.json",
    log:
        "logs/{experiment}/prepare_public/{part}.log",
    conda:
        "../../envs/dpladder.yaml"
    threads: threads_of
    resources:
        mem_mb=mem_mb_of,
        runtime=runtime_of,
    params:
        cfg=cfg_of("prepare_public"),
        code=code_of("prepare_public"),
    script:
        "../scripts/job.py"


rule extract_features:
    input:
        data=data_of,
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
        cfg=cfg_of("extract_features"),
        code=code_of("extract_features"),
    script:
        "../scripts/job.py"


rule merge_features:
    input:
        shards=shards_of,
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
        cfg=cfg_of("merge_features"),
        code=code_of("merge_features"),
    script:
        "../scripts/job.py"
