rule summarise:
    input:
        statement="results/privacy.json",
        rungs=rungs_of,
        fits=per_target("fit_radius", FIT),
        finals=per_target("train_final", WEIGHTS),
        metrics=per_target("evaluate", METRICS),
    output:
        summary="results/{experiment}/summary.json",
        table="results/{experiment}/summary.csv",
        privacy="results/{experiment}/summary.privacy.json",
    log:
        "logs/{experiment}/summarise.log",
    benchmark:
        "benchmarks/{experiment}/summarise.tsv"
    conda:
        "../../envs/dpladder.yaml"
    params:
        cfg=summary_params,
        code=CODE["summarise"],
    script:
        "../scripts/summarise.py"
