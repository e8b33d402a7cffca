"""NIST SP 800-226's privacy hazards, one by one, and what a statement answers to each.

The hazards are told in our words, in the order and by the sections of the initial public draft
(December 2023). Beside them stands what *How to DP-fy ML* (Ponomareva et al. 2023), section 5.3,
asks a report of a DP model for. Last come three dimensions, from the abstract of the W3C's draft
note *Considerations for Reviewing Differential Privacy Systems* (February 2026). The words stand in
texts/hazards.yaml.
"""

from __future__ import annotations

from dpladder.config.model import Deployment
from dpladder.privacy.accounting.rounding import markdown_cell
from dpladder.privacy.statement.documents import SealedStatement
from dpladder.privacy.statement.facts import facts_of, fill_template


def checklist(statement: SealedStatement, lineage: str, deployment: Deployment) -> str:
    """The hazards of NIST SP 800-226 as a table in markdown: which of them the run answers, and
    which a person must (statement/texts/hazards.yaml).

    Args:
        statement: as it is sealed.
        lineage: one of its lineages, with a guarantee.
        deployment: what people declared; its texts cannot break the table.
    """
    text = fill_template("hazards", facts_of(statement, lineage, deployment))
    return "\n".join(
        [
            f"# NIST SP 800-226, hazard by hazard: {markdown_cell(deployment.name)}",
            "",
            text["intro"],
            "",
            "| section | hazard | answered | how |",
            "|---|---|---|---|",
            *(
                f"| {one['section']} | {one['hazard']} | {one['answered']} | "
                f"{markdown_cell(one['answer'])} |"
                for one in text["hazards"]
            ),
            "",
            "## How to DP-fy ML (2023), section 5.3",
            "",
            "| asked | answer |",
            "|---|---|",
            *(f"| {one['asked']} | {markdown_cell(one['answer'])} |" for one in text["reported"]),
            "",
            "## W3C's draft note for reviewers (2026): what is traded against what",
            "",
            "| dimension | answer |",
            "|---|---|",
            *(f"| {one['asked']} | {markdown_cell(one['answer'])} |" for one in text["traded"]),
            "",
        ]
    )
