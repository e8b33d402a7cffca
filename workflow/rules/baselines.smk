# Comparisons on data declared public. They are no part of the DAG behind a statement: ask for them
# by name.


use rule prepare_dataset as compare_learners with:
    input:
        **inputs("compare_learners"),
    output:
        figure=report(
            "results/comparison/learners.svg",
            caption="../../src/dpladder_papers/captions/learners.rst",
            category="Research",
        ),
        table="results/comparison/learners.md",
        csv="results/comparison/learners.csv",
        privacy="results/comparison/learners.privacy.json",
    log:
        "logs/comparison/learners.log",
    params:
        **job_params("compare_learners"),


use rule prepare_dataset as compare_hpo with:
    input:
        **inputs("compare_hpo"),
    output:
        hpo_figure=report(
            "results/comparison/hpo.svg",
            caption="../../src/dpladder_papers/captions/hpo.rst",
            category="Research",
        ),
        hpo_table="results/comparison/hpo.md",
        hpo_csv="results/comparison/hpo.csv",
        ablations_figure=report(
            "results/comparison/ablations.svg",
            caption="../../src/dpladder_papers/captions/ablations.rst",
            category="Research",
        ),
        ablations_table="results/comparison/ablations.md",
        ablations_csv="results/comparison/ablations.csv",
        privacy="results/comparison/hpo.privacy.json",
    log:
        "logs/comparison/hpo.log",
    params:
        **job_params("compare_hpo"),
