# Comparisons on data declared public. They are no part of the DAG behind a statement: ask for them by name.


rule compare_learners:
    input:
        features=[path_of("merge_features", FEATURES, "main", part=part) for part in ("train", "test")],
    output:
        figure=report(
            "results/comparison/learners.svg",
            caption="../report/learners.rst",
            category="Research",
        ),
        table="results/comparison/learners.md",
        csv="results/comparison/learners.csv",
        privacy="results/comparison/learners.privacy.json",
    log:
        "logs/comparison/learners.log",
    conda:
        "../../envs/dpladder.yaml"
    threads: PROJECT.main.resources.threads
    resources:
        mem_mb=PROJECT.main.resources.mem_mb,
        runtime=PROJECT.main.resources.runtime,
    params:
        cfg=comparison_of,
        code=CODE["compare_learners"],
    script:
        "../scripts/compare_learners.py"
