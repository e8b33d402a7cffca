# A model stays until the next one is there, and comes back where that failed: update(). Its record
# does not, so the job stays due.
use rule extract_features as train_final with:
    input:
        **inputs("train_final"),
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
        **inputs("private_search"),
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
        **inputs("train_open"),
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
        **inputs("train_student"),
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
