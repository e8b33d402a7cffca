use rule compose_privacy as summarise with:
    input:
        statement="results/privacy.json",
        rungs=outputs_of("best", "select_rung"),
        fits=outputs_of("fit", "fit_radius"),
        finals=outputs_of("weights", *stages.FINALS),
        metrics=outputs_of("metrics", "evaluate"),
        students=outputs_of("metrics", "train_student"),
        head=outputs_of("metrics", "evaluate_head"),
        also=outputs_of("metrics", "evaluate_also"),
        measured=measured_of,
        open=outputs_of("metrics", "train_open"),
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
    params:
        **job_params("summarise"),


# All figures and tables, and the page that shows them. One that cannot be drawn takes no other
# along.
use rule compose_privacy as write_report with:
    input:
        statement="results/privacy.json",
        signed="results/privacy.md",
        summaries=summaries,
        tables=summary_tables,
    output:
        *map(filed, PICTURES),
        page="results/report.html",
        privacy="results/report.privacy.json",
    log:
        "logs/write_report.log",
    benchmark:
        "benchmarks/write_report.tsv"
    params:
        **job_params("write_report"),
