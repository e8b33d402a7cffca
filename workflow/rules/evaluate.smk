use rule prepare_dataset as evaluate with:
    input:
        weights=from_jobs("weights", *rule_specs.FINALS),
        features=features_of("evaluate"),
        mean=mean_of,
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
        weights=from_jobs("weights", *rule_specs.FINALS),
        features=features_of("evaluate_also"),
        mean=mean_of,
    output:
        metrics="results/{experiment}/final/{target}/also/{test}/metrics.json",
        privacy="results/{experiment}/final/{target}/also/{test}/privacy.json",
    log:
        "logs/{experiment}/final/{target}/also/{test}.log",
    params:
        **job_params("evaluate_also"),
