"""JSON schemas of the documents that people script against, from their dataclasses.

`python -m dpladder.report.schemas` writes them; with `--check` it only says which one is out of
step.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pydantic import TypeAdapter

from dpladder.config.docs import DIALECT, write
from dpladder.privacy.statement.documents import PlanDocument, SealedStatement
from dpladder.report.summary import Summary

DOCUMENTS: dict[str, Any] = {"plan": PlanDocument, "privacy": SealedStatement, "summary": Summary}


def generated_files() -> dict[str, str]:
    """The text of each schema, by its path in the repository. `make docs` writes them there."""
    return {
        f"workflow/schemas/{name}.schema.json": schema(kind) for name, kind in DOCUMENTS.items()
    }


def schema(kind: Any) -> str:
    """A document's JSON schema, as text that ends a line. `kind`: its dataclass."""
    return (
        json.dumps(
            {"$schema": DIALECT, **TypeAdapter(kind).json_schema(mode="serialization")}, indent=2
        )
        + "\n"
    )


if __name__ == "__main__":
    raise SystemExit(write(generated_files(), sys.argv[1:]))
