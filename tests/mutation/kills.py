"""A pytest plugin that plants generated bugs, one a forked process, and notes the tests that fail.

It first runs all tests once and notes which lines each one enters. A bug is given to functions as
they stand in memory, so a test that starts Python anew does not see it, nor one that runs the
workflow. Bugs that no test sees are places to read, not failures. `make test-matrix` runs it.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, NoReturn

import pytest
from _pytest.runner import runtestprotocol
from mutation.operators import Bug, bugs

import dpladder

PACKAGE = Path(dpladder.__file__).parent
Reached = dict[str, tuple[float, dict[str, list[int]]]]  # of a test: its seconds, its lines


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bugs-in", nargs="+", help="files or folders below src/dpladder")
    parser.addoption("--bugs-out", type=Path, help="where the table goes, a bug a line")
    parser.addoption("--every", type=int, default=1, help="of so many bugs plant one")
    parser.addoption("--after", type=int, default=0, help="so many bugs first")
    parser.addoption("--killers", type=int, default=1, help="after so many a bug is dropped")
    parser.addoption("--at-once", type=int, default=os.cpu_count())
    parser.addoption("--seconds", type=float, default=60.0, help="of tests, for one bug")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    option = session.config.getoption
    places = [PACKAGE / room for room in option("--bugs-in")]
    files = [file for one in places for file in ([one] if one.suffix else sorted(one.glob("*.py")))]
    items = {item.nodeid: item for item in session.items}
    reached = _reached(session.items, option("--bugs-out").with_suffix(".reached"))
    gc.unfreeze()  # tests/conftest.py hides from it what collecting made
    functions = [one for one in gc.get_objects() if type(one) is FunctionType]
    gc.freeze()  # or each child would copy what it collects
    first: Counter[str] = Counter()  # what killed bugs before runs first
    rows: list[list[object]] = []

    def works() -> Iterator[Callable[[], object]]:
        for file in files:
            own = [one for one in functions if one.__code__.co_filename == str(file)]
            for bug in islice(
                bugs(file.read_text("utf-8")), option("--after"), None, option("--every")
            ):
                chosen, left = [], option("--seconds")
                entering = _entering(reached, file, bug)
                for name in sorted(entering, key=lambda test: (-first[test], reached[test][0])):
                    left -= reached[name][0]
                    if left > 0 or not chosen:
                        chosen.append(items[name])
                place = str(file.relative_to(PACKAGE))
                rows.append([place, bug.lines.start, bug.old, bug.new, len(chosen)])
                plant = partial(_plant, file, own, bug)
                yield partial(_killers, plant, chosen, option("--killers"))

    out: Path = option("--bugs-out")
    with out.open("w", encoding="utf-8") as table:
        for place, killers in _in_children(works(), option("--at-once"), 4 * option("--seconds")):
            first.update(killers or [])
            caught = ["what ran without an end"] if killers is None else killers
            table.write(json.dumps([*rows[place], caught]) + "\n")
            table.flush()
    names = sorted({item.nodeid.partition("[")[0] for item in session.items})
    out.with_suffix(".md").write_text(_matrix(out, names), "utf-8")
    return True


def _matrix(out: Path, names: Iterable[str]) -> str:
    """Bugs by file, bugs that no test sees, and how many each test catches, alone or with others.
    It catches some alone only where `--killers` asks for two or more."""
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    by_file: dict[str, Counter[str]] = defaultdict(Counter)
    caught, alone = Counter[str](), Counter[str]()
    for file, _, _, _, entering, killers in rows:
        by_file[file]["caught" if killers else "seen by none" if entering else "not entered"] += 1
        tests = {killer.partition("[")[0] for killer in killers}
        caught.update(tests)
        alone.update(tests if len(tests) == 1 else ())
    kinds = ("caught", "seen by none", "not entered")
    lines = ["| file | " + " | ".join(kinds) + " |", "|---|---|---|---|"]
    lines += [
        f"| {file} | " + " | ".join(str(count[kind]) for kind in kinds) + " |"
        for file, count in by_file.items()
    ]
    lines += ["", "| not caught | tests that enter | now | with the bug |", "|---|---|---|---|"]
    lines += [
        f"| {file}:{line} | {entering} | `{' '.join(old.split())}` | `{' '.join(new.split())}` |"
        for file, line, old, new, entering, killers in rows
        if not killers
    ]
    lines += ["", "| test | catches | alone |", "|---|---|---|"]
    lines += [
        f"| {name} | {caught[name]} | {alone[name]} |"
        for name in sorted(names, key=lambda name: (-alone[name], -caught[name]))
    ]
    return "\n".join(lines) + "\n"


def _reached(items: list[pytest.Item], file: Path) -> Reached:
    if not file.exists():
        (_, reached) = next(_in_children([partial(_trace, items)], 1, 3600.0))
        file.write_text(json.dumps(reached), "utf-8")
    return json.loads(file.read_text("utf-8"))


def _killers(plant: Callable[[], bool], tests: list[pytest.Item], most: int) -> list[str]:
    return _failing(tests, most) if tests and plant() else []


def _entering(reached: Reached, file: Path, bug: Bug) -> Iterator[str]:
    """Tests that enter the bug's statement; for a module's constant, that enter its module."""
    in_function = any(
        node.lineno <= bug.lines.start <= (node.end_lineno or 0)
        for node in ast.walk(bug.tree)
        if isinstance(node, ast.FunctionDef)
    )
    for name, (_, lines) in reached.items():
        entered = lines.get(str(file), [])
        if set(bug.lines) & set(entered) if in_function else entered:
            yield name


def _trace(items: list[pytest.Item]) -> Reached:
    reached: Reached = {}
    lines: dict[str, set[int]] = defaultdict(set)

    def of_line(frame: FrameType, event: str, _: object) -> object:
        lines[frame.f_code.co_filename].add(frame.f_lineno)
        return of_line

    def of_call(frame: FrameType, event: str, _: object) -> object:
        return of_line if frame.f_code.co_filename.startswith(str(PACKAGE)) else None

    for item, after in zip(items, [*items[1:], None], strict=True):
        lines.clear()
        start = time.perf_counter()
        threading.settrace(of_call)
        sys.settrace(of_call)
        reports = runtestprotocol(item, log=False, nextitem=after)
        sys.settrace(None)
        if not any(report.failed for report in reports):
            entered = {file: sorted(entered) for file, entered in lines.items()}
            reached[item.nodeid] = (time.perf_counter() - start, entered)
    return reached


def _failing(items: list[pytest.Item], most: int) -> list[str]:
    failing: list[str] = []
    for item, after in zip(items, [*items[1:], None], strict=True):
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=after)):
            failing.append(item.nodeid)
        if len(failing) == most:
            break
    return failing


def _plant(file: Path, functions: list[FunctionType], bug: Bug) -> bool:
    """Give the bug to all functions that are this module's; for a constant, to all who import it.
    False where it cannot be given."""
    edited = {
        (code.co_qualname, code.co_firstlineno): code
        for code in _codes(compile(bug.tree, str(file), "exec"))
    }
    planted = False
    for function in functions:
        code = function.__code__
        new = edited.get((code.co_qualname, code.co_firstlineno), code)
        if new != code:
            if code.co_freevars != new.co_freevars:
                return False
            function.__code__ = new
            planted = True
    if not planted:
        for node in bug.tree.body:
            if isinstance(node, ast.Assign) and node.lineno == bug.lines.start:
                planted = True
                _set_constant(file, node)
    return planted


def _set_constant(file: Path, node: ast.Assign) -> None:
    module = next(one for one in sys.modules.values() if getattr(one, "__file__", 0) == str(file))
    values = dict(vars(module))
    exec(compile(ast.Module([node], []), str(file), "exec"), values)
    for name in (target.id for target in node.targets if isinstance(target, ast.Name)):
        old = vars(module)[name]
        for other in list(sys.modules.values()):
            ours = getattr(other, "__name__", "").startswith("dpladder")
            if ours and vars(other).get(name) is old:
                setattr(other, name, values[name])


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _in_children(
    works: Iterable[Callable[[], object]], at_once: int, seconds: float
) -> Iterator[tuple[int, Any]]:
    """What each work returns, from a forked process of its own; None of one that does not end."""
    left = enumerate(works)
    running: dict[int, tuple[int, Path, float]] = {}
    while True:
        while len(running) < at_once and (work := next(left, None)):
            folder = Path(tempfile.mkdtemp())
            pid = os.fork()
            if not pid:
                _answer(work[1], folder)
            running[pid] = (work[0], folder, time.monotonic() + seconds)
        if not running:
            return
        time.sleep(0.02)
        for pid, (place, folder, deadline) in list(running.items()):
            if time.monotonic() > deadline:
                os.killpg(pid, signal.SIGKILL)
            if os.waitpid(pid, os.WNOHANG)[0]:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                answer = folder / "answer"
                yield place, json.loads(answer.read_text("utf-8")) if answer.exists() else None
                shutil.rmtree(folder, ignore_errors=True)
                del running[pid]


def _answer(work: Callable[[], object], folder: Path) -> NoReturn:
    """What one bug leaves on disk or prints must reach no other."""
    os.setpgid(0, 0)
    for name in ("DPLADDER_HOME", "XDG_CACHE_HOME", "TMPDIR", "PYTEST_DEBUG_TEMPROOT"):
        os.environ[name] = str(folder)
    tempfile.tempdir = str(folder)
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        (folder / "partly").write_text(json.dumps(work()), "utf-8")
        (folder / "partly").rename(folder / "answer")
    finally:
        os._exit(0)
