"""A data protection impact assessment (GDPR, Article 35) with what a statement knows filled in, and
what people must judge left as questions.

The four chapters are the four letters of Article 35(7), which says what an assessment contains at
least. It is written in Markdown, to be filled in, and as a page that prints on A4. The words stand
in texts/impact.yaml.
"""

from __future__ import annotations

import html

from dpladder.config.model import Deployment
from dpladder.privacy.accounting.rounding import markdown_cell
from dpladder.privacy.statement.documents import SealedStatement
from dpladder.privacy.statement.facts import facts_of, fill_template


def as_markdown(statement: SealedStatement, lineage: str, deployment: Deployment) -> str:
    """The impact assessment of a deployment: what the run knows filled in, and the questions that
    people answer (statement/texts/impact.yaml).

    Args:
        statement: as it is sealed.
        lineage: one of its lineages, with a guarantee.
        deployment: what people declared; its texts cannot break a table.
    """
    text = fill_template("impact", facts_of(statement, lineage, deployment))
    title = f"# Data protection impact assessment: {markdown_cell(deployment.name)}"
    lines = [title, "", text["intro"]]
    for chapter in text["chapters"]:
        lines += ["", f"## {chapter['title']}", "", f"*{chapter['asks']}*", ""]
        if chapter["known"]:
            lines += ["| the run knows | |", "|---|---|"]
            lines += [
                f"| {one['what']} | {markdown_cell(one['answer'])} |" for one in chapter["known"]
            ]
            lines += [""]
        for number, question in enumerate(chapter["questions"], 1):
            lines += [f"{number}. **{question}**", "", "   > ", ""]
    return "\n".join(lines)


STYLE = """\
body { font: 11pt/1.45 system-ui, sans-serif; color: #222; max-width: 46rem; margin: 2rem auto;
  padding: 0 1rem; overflow-wrap: break-word }
h1, h2 { line-height: 1.2 } h2 { margin-top: 2rem; break-after: avoid }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0;
  border-bottom: 1px solid #ccc; font-weight: normal }
th { width: 11rem; color: #555 } tr, li { break-inside: avoid }
.asks { color: #555; font-style: italic }
.answer { border: 1px solid #999; min-height: 3.2rem; margin: .4rem 0 1rem }
@page { size: A4; margin: 18mm }
@media print { body { margin: 0; max-width: none; padding: 0 } }
"""


def impact_page(statement: SealedStatement, lineage: str, deployment: Deployment) -> str:
    """The same as a page of HTML, with boxes to write into. It loads nothing from elsewhere, and
    all that people declared is escaped."""
    text = fill_template("impact", facts_of(statement, lineage, deployment))
    title = f"Data protection impact assessment: {html.escape(deployment.name)}"
    parts = [f"<h1>{title}</h1>", f"<p>{html.escape(text['intro'])}</p>"]
    for chapter in text["chapters"]:
        parts += [f"<h2>{html.escape(chapter['title'])}</h2>"]
        parts += [f'<p class="asks">{html.escape(chapter["asks"])}</p>']
        rows = (
            f'<tr><th scope="row">{html.escape(one["what"])}</th>'
            f"<td>{html.escape(one['answer'])}</td></tr>"
            for one in chapter["known"]
        )
        parts += ["<table>", *rows, "</table>"] if chapter["known"] else []
        inputs_html = (
            f'<li>{html.escape(question)}<div class="answer"></div></li>'
            for question in chapter["questions"]
        )
        parts += ["<ol>", *inputs_html, "</ol>"]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            f'<head><meta charset="utf-8"><title>{title}</title><style>\n{STYLE}</style></head>',
            "<body>",
            *parts,
            "</body>",
            "</html>",
            "",
        ]
    )
