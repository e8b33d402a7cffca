rule summarise:
    input:
        statement="results/privacy.json",
        rungs=rungs_of,
        fits=fits_of,
        finals=finals_of(WEIGHTS),
        metrics=per_target("evaluate", METRICS),
    output:
        summary="results/{experiment}/summary.json",
        table="results/{experiment}/summary.csv",
        privacy="results/{experiment}/summary.privacy.json",
    log:
        "logs/{experiment}/summarise.log",
    benchmark:
        "benchmarks/{experiment}/summarise.tsv"
    conda:
        "../../envs/dpladder.yaml"
    params:
        cfg=summary_params,
        code=CODE["summarise"],
    script:
        "../scripts/summarise.py"


rule plot_ladder:
    input:
        summary="results/{experiment}/summary.json",
    output:
        figure=report(
            "results/{experiment}/figures/ladder.svg",
            caption="../report/ladder.rst",
            category="Ladder",
            labels={"experiment": "{experiment}"},
        ),
        privacy="results/{experiment}/figures/ladder.privacy.json",
    log:
        "logs/{experiment}/figures/ladder.log",
    benchmark:
        "benchmarks/{experiment}/figures/ladder.tsv"
    conda:
        "../../envs/dpladder.yaml"
    params:
        cfg={},
        code=CODE["plots"],
    script:
        "../scripts/plot_ladder.py"


rule plot_scores:
    input:
        summary="results/{experiment}/summary.json",
    output:
        figure=report(
            "results/{experiment}/figures/scores.svg",
            caption="../report/scores.rst",
            category="Ladder",
            labels={"experiment": "{experiment}"},
        ),
        privacy="results/{experiment}/figures/scores.privacy.json",
    log:
        "logs/{experiment}/figures/scores.log",
    benchmark:
        "benchmarks/{experiment}/figures/scores.tsv"
    conda:
        "../../envs/dpladder.yaml"
    params:
        cfg={},
        code=CODE["plots"],
    script:
        "../scripts/plot_scores.py"


rule plot_utility:
    input:
        summary="results/{experiment}/summary.json",
    output:
        figure=report(
            "results/{experiment}/figures/utility.svg",
            caption="../report/utility.rst",
            category="Final models",
            labels={"experiment": "{experiment}"},
        ),
        privacy="results/{experiment}/figures/utility.privacy.json",
    log:
        "logs/{experiment}/figures/utility.log",
    benchmark:
        "benchmarks/{experiment}/figures/utility.tsv"
    conda:
        "../../envs/dpladder.yaml"
    params:
        cfg={},
        code=CODE["plots"],
    script:
        "../scripts/plot_utility.py"


rule plot_budget:
    input:
        statement="results/privacy.json",
    output:
        figure=report(
            "results/figures/budget.svg",
            caption="../report/budget.rst",
            category="Privacy",
        ),
        privacy="results/figures/budget.privacy.json",
    log:
        "logs/figures/budget.log",
    benchmark:
        "benchmarks/figures/budget.tsv"
    conda:
        "../../envs/dpladder.yaml"
    params:
        cfg={},
        code=CODE["plots"],
    script:
        "../scripts/plot_budget.py"


rule plot_pareto:
    input:
        summaries=summaries,
    output:
        figure=report(
            "results/figures/pareto.svg",
            caption="../report/pareto.rst",
            category="Final models",
        ),
        privacy="results/figures/pareto.privacy.json",
    log:
        "logs/figures/pareto.log",
    benchmark:
        "benchmarks/figures/pareto.tsv"
    conda:
        "../../envs/dpladder.yaml"
    params:
        cfg={},
        code=CODE["plots"],
    script:
        "../scripts/plot_pareto.py"


rule plot_heatmap:
    input:
        summaries=descents(),
    output:
        figure=report(
            "results/figures/heatmap.svg",
            caption="../report/heatmap.rst",
            category="Research",
        ),
        privacy="results/figures/heatmap.privacy.json",
    log:
        "logs/figures/heatmap.log",
    benchmark:
        "benchmarks/figures/heatmap.tsv"
    conda:
        "../../envs/dpladder.yaml"
    params:
        cfg={},
        code=CODE["plots"],
    script:
        "../scripts/plot_heatmap.py"


rule tabulate:
    input:
        summary="results/{experiment}/summary.json",
    output:
        table=report(
            "results/{experiment}/tables/finals.html",
            caption="../report/summary.rst",
            category="Final models",
            labels={"experiment": "{experiment}"},
        ),
        privacy="results/{experiment}/tables/finals.privacy.json",
    log:
        "logs/{experiment}/tables/finals.log",
    benchmark:
        "benchmarks/{experiment}/tables/finals.tsv"
    conda:
        "../../envs/dpladder.yaml"
    params:
        cfg={},
        code=CODE["plots"],
    script:
        "../scripts/tabulate.py"


rule tabulate_trials:
    input:
        summary="results/{experiment}/summary.json",
    output:
        table=report(
            "results/{experiment}/tables/trials.html",
            caption="../report/trials.rst",
            category="Ladder",
            labels={"experiment": "{experiment}"},
        ),
        privacy="results/{experiment}/tables/trials.privacy.json",
    log:
        "logs/{experiment}/tables/trials.log",
    benchmark:
        "benchmarks/{experiment}/tables/trials.tsv"
    conda:
        "../../envs/dpladder.yaml"
    params:
        cfg={},
        code=CODE["plots"],
    script:
        "../scripts/tabulate_trials.py"


rule tabulate_spends:
    input:
        statement="results/privacy.json",
    output:
        table=report(
            "results/tables/spends.html",
            caption="../report/spends.rst",
            category="Privacy",
        ),
        privacy="results/tables/spends.privacy.json",
    log:
        "logs/tables/spends.log",
    benchmark:
        "benchmarks/tables/spends.tsv"
    conda:
        "../../envs/dpladder.yaml"
    params:
        cfg={},
        code=CODE["plots"],
    script:
        "../scripts/tabulate_spends.py"
