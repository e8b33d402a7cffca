rule fit_radius:
    input:
        rungs=rungs_of,
    output:
        fit="results/{experiment}/final/{target}/fit.json",
        privacy="results/{experiment}/final/{target}/fit.privacy.json",
    log:
        "logs/{experiment}/final/{target}/fit.log",
    benchmark:
        "benchmarks/{experiment}/final/{target}/fit.tsv"
    conda:
        "../../envs/dpladder.yaml"
    params:
        cfg=cfg_of("fit_radius"),
        code=code_of("fit_radius"),
    script:
        "../scripts/job.py"
