"""Words with facts put in: documents whose sentences stand in templates of jinja's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def fill(path: str, facts: Mapping[str, Any]) -> str:
    """A template with its facts. A fact that is missing stops it: no text goes out with a gap.

    Args:
        path: of the template, inside dpladder. In HTML what stands for facts is escaped; other
            documents escape for themselves.
        facts: by the names that the template has for them.
    """
    # which the start of a workflow does without
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("dpladder", "."),
        autoescape=path.endswith(".html.jinja"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(path).render(facts)
