# Comparisons on data declared public. They are no part of the DAG behind a statement: ask for them by name.

MAIN = PROJECT.main.resources


def comparison_of(wildcards):
    """The first experiment's features, and how each experiment learns and searches."""
    cfg = PARSED.params("compare_learners", {"experiment": "main"})
    repeats = 1 + len(PROJECT.repeats["main"])
    return cfg | {"contestants": stages.contestants(PROJECT), "repeats": repeats}


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
    threads: MAIN.threads
    resources:
        mem_mb=MAIN.mem_mb,
        runtime=MAIN.runtime,
    params:
        cfg=comparison_of,
        code=CODE["compare_learners"],
    script:
        "../scripts/compare_learners.py"
