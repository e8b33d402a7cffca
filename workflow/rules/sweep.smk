use rule prepare_dataset as find_mean with:
    input:
        **inputs("find_mean"),
    output:
        mean="results/{experiment}/centre/mean.safetensors",
        privacy="results/{experiment}/centre/privacy.json",
    log:
        "logs/{experiment}/find_mean.log",
    params:
        **job_params("find_mean"),


use rule prepare_dataset as find_start with:
    input:
        **inputs("find_start"),
    output:
        head="results/{experiment}/start/head.safetensors",
        privacy="results/{experiment}/start/privacy.json",
    log:
        "logs/{experiment}/find_start.log",
    params:
        **job_params("find_start"),


use rule prepare_dataset as count_units with:
    input:
        **inputs("count_units"),
    output:
        census="results/{experiment}/census/census.json",
        privacy="results/{experiment}/census/privacy.json",
    log:
        "logs/{experiment}/count_units.log",
    params:
        **job_params("count_units"),


use rule prepare_dataset as estimate_mean with:
    input:
        **inputs("estimate_mean"),
    output:
        mean="results/{experiment}/mean/mean.safetensors",
        privacy="results/{experiment}/mean/privacy.json",
    log:
        "logs/{experiment}/estimate_mean.log",
    params:
        **job_params("estimate_mean"),


use rule prepare_dataset as estimate_sums with:
    input:
        **inputs("estimate_sums"),
    output:
        sums="results/{experiment}/sums/sums.h5",
        privacy="results/{experiment}/sums/privacy.json",
    log:
        "logs/{experiment}/estimate_sums.log",
    params:
        **job_params("estimate_sums"),


use rule extract_features as estimate_head with:
    input:
        **inputs("estimate_head"),
    output:
        head="results/{experiment}/head/head.safetensors",
        privacy="results/{experiment}/head/privacy.json",
    log:
        "logs/{experiment}/estimate_head.log",
    params:
        **job_params("estimate_head"),


use rule extract_features as run_trial with:
    input:
        **inputs("run_trial"),
    output:
        weights="results/{experiment}/rungs/{rung}/trials/{trial}/weights.safetensors",
        score="results/{experiment}/rungs/{rung}/trials/{trial}/score.json",
        privacy="results/{experiment}/rungs/{rung}/trials/{trial}/privacy.json",
    log:
        "logs/{experiment}/rungs/{rung}/trials/{trial}.log",
    wildcard_constraints:
        experiment=trials_apart(),
    params:
        **job_params("run_trial"),


use rule compose_privacy as select_rung with:
    input:
        **inputs("select_rung"),
    output:
        best="results/{experiment}/rungs/{rung}/best.json",
        privacy="results/{experiment}/rungs/{rung}/privacy.json",
    log:
        "logs/{experiment}/rungs/{rung}/select.log",
    params:
        **job_params("select_rung"),


# A rung is one job, and its outputs are as many as it has trials: so each has a rule of its own.
for RUNG in rungs_together():

    rule:
        name:
            RUNG.rule
        input:
            **RUNG.input,
        output:
            **RUNG.output,
        log:
            RUNG.log,
        conda:
            "../../envs/dpladder.yaml"
        threads: RUNG.resources.threads
        resources:
            mem_mb=RUNG.mem_mb,
            runtime=RUNG.runtime,
            gpu=RUNG.resources.gpu,
        params:
            cfg=RUNG.cfg,
            code=code_of("run_trial"),
        script:
            "../scripts/job.py"
