use rule compose_privacy as fit_radius with:
    input:
        rungs=made("best", "select_rung"),
    output:
        fit="results/{experiment}/final/{target}/fit.json",
        privacy="results/{experiment}/final/{target}/fit.privacy.json",
    log:
        "logs/{experiment}/final/{target}/fit.log",
    benchmark:
        "benchmarks/{experiment}/final/{target}/fit.tsv"
    params:
        **told("fit_radius"),
