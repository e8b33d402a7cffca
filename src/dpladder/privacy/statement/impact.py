"""A data protection impact assessment (GDPR, Article 35) with what a statement knows filled in, and
what people must judge left as questions.

The four chapters are the four letters of Article 35(7), which says what an assessment contains at
least. It is written in Markdown, to be filled in, and as a page that prints on A4.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass

from dpladder.config.model import Deployment
from dpladder.privacy.accounting.shown import in_cell, up, up_short
from dpladder.privacy.statement.build import guarantee_of
from dpladder.privacy.statement.documents import Cost, SealedStatement, Stated
from dpladder.privacy.statement.hazards import of_group
from dpladder.privacy.statement.page import NO_PERSON, found_at_most, unit_of

Known = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Topic:
    """`asks`: the words of the law, in short. `known`: what, and what the run says of it;
    `questions`: what people must judge, each with room for an answer."""

    title: str
    asks: str
    known: Known
    questions: tuple[str, ...]


LEVELS = "Likelihood: low / medium / high. Severity: low / medium / high. Why?"


def chapters(statement: SealedStatement, lineage: str, told: Deployment) -> tuple[Topic, ...]:
    dataset = statement.datasets[lineage]
    bound = guarantee_of(dataset)
    assert bound is not None, "what is registered has a guarantee"
    return (
        Topic(
            "The processing and its purposes (a)",
            "A systematic description of the envisaged processing operations and their purposes, "
            "and where applicable the legitimate interest pursued.",
            tuple(_processing(statement, dataset, told)),
            (
                "Who is the controller, and who processes data on their behalf? By which contract?",
                "On which legal basis (Article 6), and for health or other special categories by "
                "which exception (Article 9(2))? If by legitimate interest: whose, and which?",
                "Was the data collected for this purpose? If not, why is this one compatible with "
                "the first (Articles 5(1)(b), 6(4) and 89)?",
                "Who receives the published files, and do they leave the EEA?",
                "How long are the data, the private folder and the ledger's home kept, and who "
                "deletes them? The ledger must outlive every release.",
            ),
        ),
        Topic(
            "Necessity and proportionality (b)",
            "An assessment of the necessity and proportionality of the processing operations in "
            "relation to the purposes.",
            tuple(_necessity(dataset, bound)),
            (
                "Why is personal data needed at all? Would public or synthetic data do?",
                "Is each column, image and patient that is read needed for the purpose?",
                "How are people told (Articles 13 and 14)? How do they object, and who answers?",
                "What is done when somebody withdraws? They can leave every later version of the "
                "data; what is published stays, and tells of them no more than the bound below.",
            ),
        ),
        Topic(
            "Risks to rights and freedoms (c)",
            "An assessment of the risks to the rights and freedoms of the people in the data. Each "
            "is for people to weigh; what the run knows of it stands beside.",
            tuple(_risks(dataset, bound, told)),
            (
                f"Somebody is found to be in the data, or something of theirs. {LEVELS}",
                f"The model is wrong about somebody, and it matters. {LEVELS}",
                f"It is wrong more often about one group than another. {LEVELS}",
                f"Insiders, or thieves, read the data, the private folder or the key. {LEVELS}",
                f"It is used for something else than it is meant for. {LEVELS}",
                "Which other risks are there, and which data about the same people was released "
                "by other means?",
            ),
        ),
        Topic(
            "Measures (d)",
            "The measures envisaged to address the risks: safeguards, security measures, and "
            "mechanisms that protect personal data and demonstrate compliance.",
            tuple(_measures(statement, dataset)),
            (
                "Who may log in where the data and the home lie, and who checks that?",
                "Where are the home's backups, who knows the passphrase, and when was one "
                "restored for a try?",
                "Who is told of a breach, and how fast (Articles 33 and 34)?",
                "Who approves a new question about the same people before it is run?",
                "When is this assessment read again (Article 35(11))?",
            ),
        ),
        Topic(
            "Advice and decision",
            "Articles 35(2), 35(9) and 36.",
            (),
            (
                "The data protection officer's advice, and what was made of it:",
                "The views of the people concerned, or why they were not sought:",
                "The risk that remains, and whether the authority must be asked before (Article "
                "36):",
                "Decision, name, date and signature:",
            ),
        ),
    )


def _processing(
    statement: SealedStatement, dataset: Stated, told: Deployment
) -> Iterator[tuple[str, str]]:
    models = len(dataset.artifacts)
    yield "what it is called", told.name
    yield "who publishes it", ", ".join(told.curators)
    yield "purpose", told.use
    yield "the people and their data", told.data
    yield "region", told.region
    yield "who may read the data", told.access
    yield (
        "operations",
        "Records are read where they lie; a public network turns each by itself into numbers, or "
        "they are numbers already; models are trained on clipped sums to which noise is added; "
        "noised counts say how often the models are right.",
    )
    yield (
        "what is published",
        f"The weights of {models} model{'' if models == 1 else 's'}, noised scores and counts, and "
        "what follows from these: tables, figures, the statement. No record, and no count, size or "
        "mean without noise.",
    )
    yield (
        "what is kept, and never published",
        "The data where it lies; features, a list of records by keyed digests, and details of "
        "errors in a private folder; the key, the ledger and keyed digests of records in the home.",
    )
    yield (
        "new data",
        "Comes in over time; every version counts against one budget."
        if told.dynamic
        else "None is expected; if some comes, it counts against the same budget.",
    )


def _necessity(dataset: Stated, bound: Cost) -> Iterator[tuple[str, str]]:
    yield (
        "data minimisation",
        f"Protected is {unit_of(dataset)}. The config names what is read; nothing else is.",
    )
    yield (
        "purpose limitation",
        f"Every question is priced and written to a ledger before a record is read, and refused "
        f"above epsilon = {up_short(dataset.lifetime_epsilon)} for the data's life."
        if dataset.lifetime_epsilon is not None
        else "All questions were planned together before the first was asked. There is no limit "
        "for life: further questions are priced, and none is refused.",
    )
    yield (
        "spent so far",
        f"epsilon = {up(dataset.lifetime_spent)} at delta = {up_short(dataset.delta)}, in "
        f"{len(dataset.spends)} releases of this project; guaranteed is epsilon = "
        f"{up(bound.epsilon)}.",
    )
    yield (
        "storage limitation",
        "What is published stays bounded whatever is learnt later; data and features can be "
        "deleted once the models are out, the ledger and the key cannot.",
    )


def _risks(dataset: Stated, bound: Cost, told: Deployment) -> Iterator[tuple[str, str]]:
    yield (
        "being found in the data",
        f"Somebody who knows everybody else in the data and sees all that is published, and who "
        f"accuses 5 % wrongly, finds at most {found_at_most(bound, dataset.delta)} of those who "
        "are in it. The same bound holds for whatever else they want to tell of one "
        f"{dataset.unit}.",
    )
    yield (
        "people with several records",
        f"The unit is a {dataset.unit}: a person with two bears {of_group(bound, dataset.delta, 2)}"
        f", one with three {of_group(bound, dataset.delta, 3)}."
        if dataset.unit in NO_PERSON
        else "Covered: all records of a person are one unit. Families and wards are not: a group "
        f"of two bears {of_group(bound, dataset.delta, 2)}.",
    )
    yield (
        "what is learnt about people like them",
        "Not bounded, and no breach of the guarantee: it holds whether or not somebody takes part.",
    )
    yield (
        "being wrong about groups",
        "The report says what was measured by class, by group and on other people's data, where "
        "the config asks for it. Noise and clipping can cost small groups more accuracy.",
    )
    yield "insiders", f"Trusted are those with access: {told.access}"
    yield (
        "run time, memory and what a scheduler records",
        "Outside the guarantee.",
    )


def _measures(statement: SealedStatement, dataset: Stated) -> Iterator[tuple[str, str]]:
    versions = ", ".join(f"{name} {version}" for name, version in statement.origin.versions.items())
    yield (
        "differential privacy",
        "Noise is drawn from a cryptographic generator under a secret key; what leaves lies on a "
        "public grid; a spend whose noise does not earn its charge is refused.",
    )
    yield (
        "pseudonymisation",
        "Records and people are keyed digests, in the private folder and the home alone.",
    )
    yield (
        "security",
        "Private files have mode 0600 in folders of mode 0700; messages, logs, names and exit "
        "codes tell nothing of a record; caches and the ledger are sealed against changes.",
    )
    yield (
        "accountability",
        f"Statement {statement.id} of {statement.origin.date}, config {statement.config}, "
        f"{versions}, commit {statement.origin.commit or 'unknown'}. `dpladder verify` recomputes "
        "every figure without the data; `dpladder audit` attacks every mechanism.",
    )
    yield (
        "by design and by default (Article 25)",
        "Without a setting the guarantee is the stronger one: parts are private, counts are "
        "noised, nothing is charged twice and nothing goes unpriced.",
    )


def as_markdown(statement: SealedStatement, lineage: str, told: Deployment) -> str:
    lines = [f"# Data protection impact assessment: {in_cell(told.name)}", "", _intro(statement)]
    for chapter in chapters(statement, lineage, told):
        lines += ["", f"## {chapter.title}", "", f"*{chapter.asks}*", ""]
        if chapter.known:
            lines += ["| the run knows | |", "|---|---|"]
            lines += [f"| {what} | {in_cell(answer)} |" for what, answer in chapter.known]
            lines += [""]
        for number, question in enumerate(chapter.questions, 1):
            lines += [f"{number}. **{question}**", "", "   > ", ""]
    return "\n".join(lines)


def _intro(statement: SealedStatement) -> str:
    return (
        f"Of privacy statement {statement.id}, {statement.origin.date}. The tables hold what the "
        "run and its config say; the questions are for people to answer, and no software can. "
        "Assess before the processing, and again when it changes."
    )


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


def as_page(statement: SealedStatement, lineage: str, told: Deployment) -> str:
    """The same as a page of HTML, with boxes to write into."""
    title = f"Data protection impact assessment: {html.escape(told.name)}"
    parts = [f"<h1>{title}</h1>", f"<p>{html.escape(_intro(statement))}</p>"]
    for chapter in chapters(statement, lineage, told):
        parts += [f"<h2>{html.escape(chapter.title)}</h2>"]
        parts += [f'<p class="asks">{html.escape(chapter.asks)}</p>']
        rows = (
            f'<tr><th scope="row">{html.escape(what)}</th><td>{html.escape(answer)}</td></tr>'
            for what, answer in chapter.known
        )
        parts += ["<table>", *rows, "</table>"] if chapter.known else []
        asked = (
            f'<li>{html.escape(question)}<div class="answer"></div></li>'
            for question in chapter.questions
        )
        parts += ["<ol>", *asked, "</ol>"]
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
