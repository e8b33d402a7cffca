# A model stays until the next one is there, and comes back where that failed: update(). Its record
# does not, so the job stays due.
use rule extract_features as train_final with:
    input:
        fit=from_jobs("fit", "fit_radius"),
        features=features_of("train_final"),
        mean=mean_of,
        sums=sums_of,
        start=start_of,
    output:
        weights=update("results/{experiment}/final/{target}/weights.safetensors"),
        privacy="results/{experiment}/final/{target}/privacy.json",
    log:
        "logs/{experiment}/final/{target}/train.log",
    wildcard_constraints:
        experiment=those_with("train_final"),
    params:
        **job_params("train_final"),


# Everything that a private search trains stays in one job with one output: its theorem needs that.
use rule extract_features as private_search with:
    input:
        features=features_of("private_search"),
        mean=mean_of,
        start=start_of,
    output:
        weights=update("results/{experiment}/final/{target}/weights.safetensors"),
        privacy="results/{experiment}/final/{target}/privacy.json",
    log:
        "logs/{experiment}/final/{target}/search.log",
    wildcard_constraints:
        experiment=those_with("private_search"),
    params:
        **job_params("private_search"),


# Research alone: the same learner without noise, for the gap to privacy. It puts no model out.
use rule extract_features as train_open with:
    input:
        features=features_of("train_open"),
        mean=mean_of,
        start=start_of,
    output:
        metrics="results/{experiment}/open/metrics.json",
        privacy="results/{experiment}/open/privacy.json",
    log:
        "logs/{experiment}/open.log",
    params:
        **job_params("train_open"),


# Post-processing: it opens public records alone.
use rule prepare_dataset as train_student with:
    input:
        weights=from_jobs("weights", *rule_specs.FINALS),
        features=features_of("train_student"),
        mean=mean_of,
    output:
        weights="results/{experiment}/student/{target}/weights.safetensors",
        metrics="results/{experiment}/student/{target}/metrics.json",
        privacy="results/{experiment}/student/{target}/privacy.json",
    log:
        "logs/{experiment}/student/{target}.log",
    wildcard_constraints:
        experiment=those_with("train_student"),
    params:
        **job_params("train_student"),
