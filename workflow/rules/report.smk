use rule compose_privacy as summarise with:
    input:
        **inputs("summarise"),
        statement="results/privacy.json",
    output:
        summary="results/{experiment}/summary.json",
        table="results/{experiment}/summary.csv",
        privacy="results/{experiment}/summary.privacy.json",
    log:
        "logs/{experiment}/summarise.log",
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
        records=summary_records,
        tables=summary_tables,
    output:
        *map(filed, PICTURES),
        page=report("results/report.html", category="The page"),
        privacy="results/report.privacy.json",
    log:
        "logs/write_report.log",
    params:
        **job_params("write_report"),
