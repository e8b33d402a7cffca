use rule compose_privacy as fit_radius with:
    input:
        **inputs("fit_radius"),
    output:
        fit="results/{experiment}/final/{target}/fit.json",
        privacy="results/{experiment}/final/{target}/fit.privacy.json",
    log:
        "logs/{experiment}/final/{target}/fit.log",
    params:
        **job_params("fit_radius"),
