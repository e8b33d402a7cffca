use rule prepare_dataset as evaluate with:
    input:
        **inputs("evaluate"),
    output:
        metrics="results/{experiment}/final/{target}/metrics.json",
        privacy="results/{experiment}/final/{target}/metrics.privacy.json",
    log:
        "logs/{experiment}/final/{target}/evaluate.log",
    wildcard_constraints:
        experiment=those_with("evaluate"),
    params:
        **job_params("evaluate"),


use rule prepare_dataset as evaluate_also with:
    input:
        **inputs("evaluate_also"),
    output:
        metrics="results/{experiment}/final/{target}/also/{test}/metrics.json",
        privacy="results/{experiment}/final/{target}/also/{test}/privacy.json",
    log:
        "logs/{experiment}/final/{target}/also/{test}.log",
    params:
        **job_params("evaluate_also"),
