rule summarise:
    input:
        statement="results/privacy.json",
        rungs=rungs_of,
        fits=fits_of,
        finals=finals_of(WEIGHTS),
        metrics=per_target("evaluate", METRICS),
        also=further_of,
        measured=measured_of,
        open=open_of,
    output:
        summary="results/{experiment}/summary.json",
        table="results/{experiment}/summary.csv",
        privacy="results/{experiment}/summary.privacy.json",
    log:
        "logs/{experiment}/summarise.log",
    benchmark:
        "benchmarks/{experiment}/summarise.tsv"
    wildcard_constraints:
        experiment=those_with("summarise"),
    conda:
        "../../envs/dpladder.yaml"
    params:
        cfg=cfg_of("summarise"),
        code=CODE["summarise"],
    script:
        "../scripts/job.py"


rule plot_ladder:
    input:
        summary="results/{experiment}/summary.json",
    output:
        figure=report(
            "results/{experiment}/figures/ladder.svg",
            caption="../../src/dpladder/report/captions/ladder.rst",
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
        code=CODE["plot_ladder"],
    script:
        "../scripts/job.py"


use rule plot_ladder as plot_scores with:
    input:
        summary="results/{experiment}/summary.json",
    output:
        figure=report(
            "results/{experiment}/figures/scores.svg",
            caption="../../src/dpladder/report/captions/scores.rst",
            category="Ladder",
            labels={"experiment": "{experiment}"},
        ),
        privacy="results/{experiment}/figures/scores.privacy.json",
    log:
        "logs/{experiment}/figures/scores.log",
    benchmark:
        "benchmarks/{experiment}/figures/scores.tsv"


use rule plot_ladder as plot_utility with:
    input:
        summary="results/{experiment}/summary.json",
    output:
        figure=report(
            "results/{experiment}/figures/utility.svg",
            caption="../../src/dpladder/report/captions/utility.rst",
            category="Final models",
            labels={"experiment": "{experiment}"},
        ),
        privacy="results/{experiment}/figures/utility.privacy.json",
    log:
        "logs/{experiment}/figures/utility.log",
    benchmark:
        "benchmarks/{experiment}/figures/utility.tsv"


use rule plot_ladder as plot_shift with:
    input:
        summary="results/{experiment}/summary.json",
    output:
        figure=report(
            "results/{experiment}/figures/shift.svg",
            caption="../../src/dpladder/report/captions/shift.rst",
            category="Final models",
            labels={"experiment": "{experiment}"},
        ),
        table="results/{experiment}/tables/shift.md",
        privacy="results/{experiment}/figures/shift.privacy.json",
    log:
        "logs/{experiment}/figures/shift.log",
    benchmark:
        "benchmarks/{experiment}/figures/shift.tsv"


use rule plot_ladder as plot_budget with:
    input:
        statement="results/privacy.json",
    output:
        figure=report(
            "results/figures/budget.svg",
            caption="../../src/dpladder/report/captions/budget.rst",
            category="Privacy",
        ),
        privacy="results/figures/budget.privacy.json",
    log:
        "logs/figures/budget.log",
    benchmark:
        "benchmarks/figures/budget.tsv"


use rule plot_ladder as plot_pareto with:
    input:
        summaries=summaries,
    output:
        figure=report(
            "results/figures/pareto.svg",
            caption="../../src/dpladder/report/captions/pareto.rst",
            category="Final models",
        ),
        privacy="results/figures/pareto.privacy.json",
    log:
        "logs/figures/pareto.log",
    benchmark:
        "benchmarks/figures/pareto.tsv"


use rule plot_ladder as plot_heatmap with:
    input:
        summaries=repeats,
    output:
        figure=report(
            "results/{experiment}/figures/heatmap.svg",
            caption="../../src/dpladder/report/captions/heatmap.rst",
            category="Research",
            labels={"experiment": "{experiment}"},
        ),
        privacy="results/{experiment}/figures/heatmap.privacy.json",
    log:
        "logs/{experiment}/figures/heatmap.log",
    benchmark:
        "benchmarks/{experiment}/figures/heatmap.tsv"


use rule plot_ladder as plot_gap with:
    input:
        summaries=repeats,
    output:
        figure=report(
            "results/{experiment}/figures/gap.svg",
            caption="../../src/dpladder/report/captions/gap.rst",
            category="Research",
            labels={"experiment": "{experiment}"},
        ),
        privacy="results/{experiment}/figures/gap.privacy.json",
    log:
        "logs/{experiment}/figures/gap.log",
    benchmark:
        "benchmarks/{experiment}/figures/gap.tsv"


use rule plot_ladder as plot_distance with:
    input:
        summaries=moved(),
    output:
        figure=report(
            "results/figures/distance.svg",
            caption="../../src/dpladder/report/captions/distance.rst",
            category="Research",
        ),
        privacy="results/figures/distance.privacy.json",
    log:
        "logs/figures/distance.log",
    benchmark:
        "benchmarks/figures/distance.tsv"


use rule plot_ladder as plot_batches with:
    input:
        summaries=sampled(),
    output:
        figure=report(
            "results/figures/batches.svg",
            caption="../../src/dpladder/report/captions/batches.rst",
            category="Research",
        ),
        table="results/tables/batches.md",
        privacy="results/figures/batches.privacy.json",
    log:
        "logs/figures/batches.log",
    benchmark:
        "benchmarks/figures/batches.tsv"


use rule plot_ladder as tabulate with:
    input:
        summary="results/{experiment}/summary.json",
    output:
        table=report(
            "results/{experiment}/tables/finals.html",
            caption="../../src/dpladder/report/captions/summary.rst",
            category="Final models",
            labels={"experiment": "{experiment}"},
        ),
        privacy="results/{experiment}/tables/finals.privacy.json",
    log:
        "logs/{experiment}/tables/finals.log",
    benchmark:
        "benchmarks/{experiment}/tables/finals.tsv"


use rule plot_ladder as tabulate_grid with:
    input:
        summaries=[f"results/{name}/summary.json" for name in CELLS],
    output:
        html=report(
            "results/tables/grid.html",
            caption="../../src/dpladder/report/captions/grid.rst",
            category="Final models",
        ),
        table="results/tables/grid.md",
        privacy="results/tables/grid.privacy.json",
    log:
        "logs/tables/grid.log",
    benchmark:
        "benchmarks/tables/grid.tsv"
    params:
        cfg=cfg_of("tabulate_grid"),
        code=CODE["tabulate_grid"],


use rule plot_ladder as tabulate_trials with:
    input:
        summary="results/{experiment}/summary.json",
    output:
        table=report(
            "results/{experiment}/tables/trials.html",
            caption="../../src/dpladder/report/captions/trials.rst",
            category="Ladder",
            labels={"experiment": "{experiment}"},
        ),
        privacy="results/{experiment}/tables/trials.privacy.json",
    log:
        "logs/{experiment}/tables/trials.log",
    benchmark:
        "benchmarks/{experiment}/tables/trials.tsv"


use rule plot_ladder as tabulate_spends with:
    input:
        statement="results/privacy.json",
    output:
        table=report(
            "results/tables/spends.html",
            caption="../../src/dpladder/report/captions/spends.rst",
            category="Privacy",
        ),
        privacy="results/tables/spends.privacy.json",
    log:
        "logs/tables/spends.log",
    benchmark:
        "benchmarks/tables/spends.tsv"


use rule plot_ladder as report_page with:
    input:
        statement="results/privacy.json",
        summaries=summaries,
        pictures=drawn,
    output:
        page="results/report.html",
        privacy="results/report.privacy.json",
    log:
        "logs/report_page.log",
    benchmark:
        "benchmarks/report_page.tsv"
    params:
        cfg=cfg_of("report_page"),
        code=CODE["report_page"],
