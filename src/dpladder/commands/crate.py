"""`dpladder crate`: a finished run as an RO-Crate (1.1, profile Process Run Crate 0.5), from its
public files alone.

Soiland-Reyes et al. 2022, *Packaging research artefacts with RO-Crate*: one JSON-LD file that says
what lies beside it, and what made it.
"""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpladder.commands.croissant import CONFORMS, FOLDER
from dpladder.config.model import Deployment
from dpladder.config.section import restored
from dpladder.privacy.statement.check import checked
from dpladder.privacy.statement.documents import SealedStatement
from dpladder.privacy.statement.page import first_line
from dpladder.privacy.statement.records import file_digest

Entity = dict[str, Any]

METADATA = "ro-crate-metadata.json"
SPECIFICATION = "https://w3id.org/ro/crate/1.1"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
SOFTWARE = "https://pypi.org/project/dpladder/"
RUN, PUBLISHER = "#run", "#publisher"
TYPES = {
    ".safetensors": "application/octet-stream",
    ".md": "text/markdown",
    ".svg": "image/svg+xml",
}


def crate(results: Path, license_url: str) -> Path:
    """Write the crate's metadata into the results folder. Refused where they are not as they were
    written."""
    statement: SealedStatement = restored(SealedStatement, checked(results, "Nothing was written."))
    path = results / METADATA
    graph = [*_graph(statement, results, license_url)]
    path.write_text(
        json.dumps({"@context": f"{SPECIFICATION}/context", "@graph": graph}, indent=2) + "\n",
        "utf-8",
    )
    return path


def _graph(statement: SealedStatement, results: Path, license_url: str) -> Iterator[Entity]:
    told = None if statement.deployment is None else restored(Deployment, statement.deployment)
    files, networks = [*_files(results)], [*_networks(results)]
    inputs = [file for file in files if _is_input(file["@id"])]
    authors = [
        {"@id": f"#author-{place}", "@type": "Person", "name": name}
        for place, name in enumerate(told.authors if told else ())
    ]
    guarantees = " ".join(first_line(statement, lineage) for lineage in statement.datasets)
    yield {
        "@id": METADATA,
        "@type": "CreativeWork",
        "conformsTo": {"@id": SPECIFICATION},
        "about": {"@id": "./"},
    }
    yield {
        "@id": "./",
        "@type": "Dataset",
        "conformsTo": {"@id": PROFILE},
        "name": f"dpladder: {told.name if told else ', '.join(statement.datasets)}",
        "description": guarantees,
        "datePublished": statement.origin.date,
        "license": {"@id": license_url}
        if license_url
        else "Not stated. Ask whoever published this.",
        "identifier": statement.id,
        "author": [{"@id": author["@id"]} for author in authors] or {"@id": PUBLISHER},
        "publisher": {"@id": PUBLISHER},
        "hasPart": [{"@id": file["@id"]} for file in files],
        "mentions": {"@id": RUN},
    }
    yield {"@id": PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"}
    if license_url:
        yield {
            "@id": license_url,
            "@type": "CreativeWork",
            "name": license_url,
            "description": "The licence of these results.",
        }
    yield {
        "@id": SOFTWARE,
        "@type": "SoftwareApplication",
        "name": "dpladder",
        "softwareVersion": " ".join(
            filter(None, (statement.origin.versions["dpladder"], statement.origin.commit))
        ),
        "softwareRequirements": [
            f"{name} {number}" for name, number in statement.origin.versions.items()
        ],
        "url": SOFTWARE,
    }
    yield {
        "@id": RUN,
        "@type": "CreateAction",
        "name": "tuning and training with differential privacy, mode " + statement.mode,
        "description": f"Of config {statement.config}. Its private data stays where it is, so it "
        "is no object of this crate.",
        "endTime": statement.origin.date,
        "instrument": {"@id": SOFTWARE},
        "agent": {"@id": PUBLISHER},
        "object": [{"@id": given["@id"]} for given in (*inputs, *networks)],
        "result": [{"@id": file["@id"]} for file in files if file not in inputs],
    }
    if inputs:
        yield {"@id": CONFORMS, "@type": "CreativeWork", "name": "Croissant", "version": "1.0"}
    yield {
        "@id": PUBLISHER,
        "@type": "Organization",
        "name": ", ".join(told.curators) if told else "whoever published these results",
    }
    yield from authors
    yield from networks
    yield from files


def _is_input(name: str) -> bool:
    return name.startswith(f"{FOLDER}/")


def _networks(results: Path) -> Iterator[Entity]:
    """The public networks that final models read records through. Croissant describes data sets,
    and these are none."""
    known: dict[str, Entity] = {}
    for path in sorted(results.glob("*/final/*/weights.safetensors")):
        from dpladder.use.model import network_behind_file  # torch, which takes seconds to load

        if (network := network_behind_file(path)) is not None:
            name = f"#network-{network['weights_sha256'][:16]}"
            known[name] = {
                "@id": name,
                "@type": "CreativeWork",
                "name": f"{network['model']}, weights: {network['weights']}",
                "description": "A public network, by a digest of all its tensors.",
                "identifier": network["weights_sha256"],
            }
    yield from known.values()


def _files(results: Path) -> Iterator[Entity]:
    """All that a run published, but what a second writing would change."""
    for path in sorted(results.rglob("*")):
        if path.is_file() and path.name != METADATA:
            name = path.relative_to(results).as_posix()
            guessed = mimetypes.guess_type(name)[0] or "application/octet-stream"
            yield {
                "@id": name,
                "@type": "File",
                "name": name,
                "encodingFormat": TYPES.get(path.suffix, guessed),
                "contentSize": str(path.stat().st_size),
                "sha256": file_digest(path),
                **({"conformsTo": {"@id": CONFORMS}} if _is_input(name) else {}),
            }
