"""Imports point one way, and what Snakemake loads at parse time stays light."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from support import in_new_python

SOURCE = Path(__file__).parents[1] / "src"
PAPERS, AUDIT, LEDGER = "dpladder_papers", "dpladder_audit", "dpladder_ledger"
"""The packages beside dpladder: nothing of dpladder imports them. They come by entry points, and
dpladder.Ledger when it is asked for."""
ROOT = SOURCE.parent

CORE = {"errors", "formats", "public_files", "section", "wording", "privacy"}
BASIS = CORE | {"config"}
MAY_USE = {
    "errors": set(),
    "progress": set(),
    "wording": set(),
    "section": set(),
    "formats": {"errors"},
    "public_files": {"errors"},
    # what a guarantee is hangs on no key of a config
    "privacy": CORE - {"privacy"},
    "config": CORE | {"methods"},  # whose sections it joins, by their names
    "network": BASIS,
    "data": BASIS | {"progress", "network", "learn"},
    "learn": BASIS | {"progress", "network"},
    "methods": BASIS | {"learn", "network"},
    "search": BASIS | {"learn", "methods"},
    "plan": BASIS | {"search"},
    "report": BASIS | {"learn", "search"},
    "research": BASIS | {"learn", "search"},
    "jobs": BASIS | {"network", "data", "learn", "search", "plan", "report", "research"},
    "use": BASIS | {"progress", "network", "data", "learn", "report"},
    "commands": BASIS | {"network", "data", "learn", "plan", "report", "jobs", "use"},
    "estimator": BASIS | {"data", "plan", "commands", "use"},
    "cli": {"errors", "config", "wording", "commands"},
    "__main__": {"cli"},
    LEDGER: CORE,
    AUDIT: BASIS | {"network", "data", "learn", "methods", "search", "plan", "jobs"},
    f"{PAPERS}.rules": BASIS | {"plan"},
    f"{PAPERS}.methods": BASIS | {"learn", "network"},
    f"{PAPERS}.searches": BASIS | {"learn", "search"},
    f"{PAPERS}.research": BASIS
    | {"learn", "methods", "search", "research", "report"}
    | {f"{PAPERS}.methods", f"{PAPERS}.searches"},
    f"{PAPERS}.jobs": BASIS
    | {"learn", "search", "plan", "report", "research", "jobs"}
    | {f"{PAPERS}.rules", f"{PAPERS}.searches", f"{PAPERS}.research"},
}
"""Each room, and the rooms it may import besides itself. A new room takes its place here first.
None of dpladder may import one of the packages beside it."""

TRAINING = {
    "h5py",
    "matplotlib",
    "mlxtend",
    "opacus",
    "pandas",
    "safetensors",
    "sklearn",
    "timm",
    "torch",
    "torchvision",
}
NEVER = dict.fromkeys([*BASIS, "plan", f"{PAPERS}.rules"], TRAINING) | {
    LEDGER: TRAINING - {"opacus"},
    "report": {"h5py", "opacus", "timm", "torch", "torchvision"},
}
"""Libraries that a room never imports, not even inside a function."""

AT_PARSE = [
    "config",
    "errors",
    "plan.dag",
    "plan.package",
    "plan.cost",
    "plan.plan",
    "plan.startup",
    "privacy.accounting.gdp",
    "privacy.accounting.events",
    "privacy.ledger.book",
    "privacy.ledger.home",
    "search.cost",
]
COUNTING = ("count_units", "estimate_mean", "evaluate")
HEAVY = TRAINING | {"dp_accounting", "numpy", "scipy", "pyarrow"}


def imports(tree: ast.Module, everywhere: bool = True) -> Iterator[str]:
    """Dotted names that a module imports: anywhere, or at its top level alone."""
    for node in ast.walk(tree) if everywhere else tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the direction; write the full name"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            yield from (
                part.value
                for part in ast.walk(node)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def room_of(name: str) -> str:
    package, room, *_ = name.split(".")
    if package in (AUDIT, LEDGER):
        return package
    return room if package == "dpladder" else f"{package}.{room}"


MODULES = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text("utf-8"))


@pytest.mark.parametrize("module", [name for name in MODULES if "." in name])
def test_a_module_imports_only_from_the_rooms_below_its_own(module):
    room = room_of(module)
    assert room in MAY_USE, f"{room} is a new room: give it a place in MAY_USE"
    used = {
        room_of(name)
        for name in imports(tree_of(module))
        if name.split(".")[0] in ("dpladder", PAPERS, AUDIT, LEDGER) and "." in name
    }
    assert used <= MAY_USE[room] | {room}


@pytest.mark.parametrize(
    "module", [name for name in MODULES if "." in name and room_of(name) in NEVER]
)
def test_a_module_leaves_training_libraries_to_the_rooms_that_train(module):
    used = {name.split(".")[0] for name in imports(tree_of(module))}
    assert used & NEVER[room_of(module)] == set()


FORBIDDEN = {
    "dpladder.privacy.release",
    "dpladder.learn.records",
    "dpladder.learn.data",
    "dpladder.data",
}
"""What holds records, or the noise."""


@pytest.mark.parametrize("module", [name for name in MODULES if ".methods" in name])
def test_a_method_holds_neither_records_nor_noise(module):
    """It is sent answers by its curator, and nothing else."""
    used = set(imports(tree_of(module)))
    assert {name for name in used for of in FORBIDDEN if f"{name}.".startswith(f"{of}.")} == set()


SEARCHERS = [
    name
    for name in MODULES
    if ".search" in name
    and any(getattr(node, "name", "") == "Searcher" for node in tree_of(name).body)
]


@pytest.mark.parametrize("module", SEARCHERS)
def test_a_search_holds_no_records(module):
    """It yields the trainings and counts that it wants (search/protocol.py), and whoever drives it
    asks the curator. Its own randomness alone comes from a meter."""
    used = set(imports(tree_of(module)))
    held = {
        "dpladder.learn.curator",
        "dpladder.learn.counts",
        "dpladder.learn.trainings",
        *FORBIDDEN,
    }
    held -= {"dpladder.privacy.release"}
    assert {name for name in used for of in held if f"{name}.".startswith(f"{of}.")} == set()


@pytest.mark.parametrize("module", [name for name in MODULES if not name.startswith(PAPERS)])
def test_the_core_names_no_module_of_the_second_package(module):
    """Not even in a text that is imported later."""
    texts = (node.value for node in ast.walk(tree_of(module)) if isinstance(node, ast.Constant))
    assert not [text for text in texts if isinstance(text, str) and text.startswith(PAPERS)]


def test_the_package_itself_imports_nothing_before_it_is_asked():
    assert set(imports(tree_of("dpladder"), everywhere=False)) == {
        "__future__.annotations",
        "typing.TYPE_CHECKING",
        "typing.Any",
    }


def imported_modules(tree: ast.Module) -> set[str]:
    names = imports(tree)
    return {name if name in MODULES else name.rpartition(".")[0] for name in names} & MODULES.keys()


@pytest.mark.ci
def test_no_modules_import_each_other_in_a_circle():
    """Not even inside functions."""
    graph = {module: imported_modules(tree_of(module)) for module in MODULES}
    assert len(list(TopologicalSorter(graph).static_order())) == len(MODULES)


def package_of(module: str) -> str:
    """The folder that a module lies in; a module beside the rooms is one by itself."""
    inside = (SOURCE / module.replace(".", "/")).is_dir() or module.count(".") == 1
    return module if inside else module.rpartition(".")[0]


def test_no_packages_import_each_other_in_a_circle():
    graph: dict[str, set[str]] = {}
    for module in MODULES:
        used = {package_of(name) for name in imported_modules(tree_of(module))}
        graph.setdefault(package_of(module), set()).update(used - {package_of(module)})
    TopologicalSorter(graph).prepare()


def test_a_class_name_says_one_thing():
    homes: dict[str, list[str]] = {}
    for module in MODULES:
        for node in tree_of(module).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(module)
    # Every search's room holds its own.
    assert {
        name: found for name, found in homes.items() if len(found) > 1 and name != "Searcher"
    } == {}


def test_a_job_that_neither_draws_nor_trains_loads_nothing_that_does():
    """Most of a small job is imports."""
    small = (
        "prepare_dataset",
        "merge_features",
        "select_rung",
        "compose_privacy",
        "summarise",
    )
    code = (
        "import sys, importlib; [importlib.import_module('dpladder.jobs.' + job) for job in "
        f"{small!r}]"
    )
    code += "; print(*{'matplotlib', 'scipy', 'torch'} & sys.modules.keys())"
    assert in_new_python(code).split() == []


@pytest.mark.ci
def test_looking_at_a_source_loads_no_network(tmp_path):
    """Whoever checks a table or a folder waits for it alone."""
    code = "import sys; from dpladder.cli import main; main(['check', 'config/config.yaml'])"
    code += "; print(*{'timm', 'torch', 'matplotlib', 'scipy'} & sys.modules.keys())"
    told = in_new_python(code, cwd=ROOT, DPLADDER_HOME=str(tmp_path / "home"))
    assert told.splitlines()[-1] == ""


LIGHT = [
    # Each command imports what it needs when it runs: a shell's user asks for help often.
    pytest.param("cli", {"pydantic", "yaml", "numpy"}, id="help"),
    *(pytest.param(f"jobs.{job}", {"torch"}, id=job) for job in COUNTING),
    *(pytest.param(module, HEAVY, id=module, marks=pytest.mark.few(4)) for module in AT_PARSE),
]


@pytest.mark.parametrize(("module", "heavy"), LIGHT)
def test_a_module_loads_nothing_heavy(module, heavy):
    code = f"import sys, dpladder.{module}; print(*sorted({heavy!r} & sys.modules.keys()))"
    assert in_new_python(code).split() == []


def test_a_path_in_a_docstring_or_a_comment_exists():
    """Modules are named by the end of their path; another project's own scripts stand in a list."""
    folders = ("src", "tests", "tools", "examples", "config", "envs", "workflow")
    known = [f"/{path}" for folder in folders for path in (ROOT / folder).rglob("*.py")]
    sources = [*SOURCE.rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md"]
    path = re.compile(r"(?<![\w./-])((?:[a-z_]+/)+\w+\.py)\b")
    named = {
        name for source in sources for name in path.findall(source.read_text("utf-8"))
    } - FOREIGN
    assert len(named) > 50
    assert {name for name in named if not any(one.endswith(f"/{name}") for one in known)} == set()


FOREIGN = {"scripts/check.py"}  # of the registry of DP deployments
