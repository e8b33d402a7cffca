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


# Post-processing of a release on a public test: the head that the network starts from, by itself.
use rule prepare_dataset as evaluate_head with:
    input:
        head=from_jobs("head", "estimate_head"),
        features=features_of("evaluate_head"),
        mean=mean_of,
    output:
        metrics="results/{experiment}/head/metrics.json",
        privacy="results/{experiment}/head/metrics.privacy.json",
    log:
        "logs/{experiment}/evaluate_head.log",
    params:
        **job_params("evaluate_head"),


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
