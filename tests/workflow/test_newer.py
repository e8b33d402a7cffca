"""What a newer dpladder wrote is refused in one sentence, whichever command meets it, before
anything is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import h5py
import pytest
from safetensors.numpy import load_file, safe_open, save_file
from support import Workspace
from workflow.test_formats import unpacked

from dpladder import formats
from dpladder.cli import main
from dpladder.data.cache import verify_cache
from dpladder.formats import FORMATS, Kind
from dpladder.privacy.ledger.home import ONE_USERS, open_home, subkey

MODEL = "results/main/final/1/weights.safetensors"


def document(path: Path, edit: Callable[[dict], None]) -> None:
    found = json.loads(path.read_text())
    edit(found)
    path.write_text(json.dumps(found))


def raise_ledger(old: Workspace, number: int) -> None:
    last = sorted((old.home / "ledger" / "tiny").glob("*.json"))[-1]
    last.write_text(
        last.read_text().replace(f'"format": {FORMATS["ledger"]}', f'"format": {number}')
    )


def raise_home(old: Workspace, number: int) -> None:
    (old.home / "format").write_text(f"{number}\n")


def raise_results(old: Workspace, number: int) -> None:
    document(Path("results/ledger.json"), lambda anchors: anchors["tiny"].update(format=number))


def raise_cache(old: Workspace, number: int) -> None:
    with h5py.File(sorted(Path("private/cache").glob("*.h5"))[0], "r+") as file:
        file.attrs["format"] = number


def raise_statement(old: Workspace, number: int) -> None:
    document(Path("results/privacy.json"), lambda statement: statement.update(format=number))


def raise_weights(old: Workspace, number: int) -> None:
    with safe_open(MODEL, framework="numpy") as file:
        facts = json.loads(file.metadata()["dpladder"])
    save_file(load_file(MODEL), MODEL, {"dpladder": json.dumps(facts | {"format": number})})


RAISED: dict[Kind, Callable[[Workspace, int], None]] = {
    "ledger": raise_ledger,
    "home": raise_home,
    "results": raise_results,
    "statement": raise_statement,
    "weights": raise_weights,
}
RUNS = "a run"
COMMANDS = {
    RUNS: ("ledger", "home", "results", "statement"),
    "plan": ("ledger", "home"),
    "verify results": ("ledger", "home", "results", "statement"),
    "ledger show": ("ledger", "home"),
    "ledger verify results": ("ledger", "home", "results", "statement"),
    "compare results": ("results", "statement"),
    "register results": ("results", "statement"),
    f"predict {MODEL} data.npz": ("results", "statement", "weights"),
    f"export {MODEL} out": ("results", "statement", "weights"),
}
CASES = [(command, kind) for command, kinds in COMMANDS.items() for kind in kinds]


def files(old: Workspace) -> dict[Path, tuple[int, bytes]]:
    found = (
        path
        for path in old.folder.parent.rglob("*")
        if path.is_file() and ".snakemake" not in path.parts
    )
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in found}


@pytest.mark.few(11)
@pytest.mark.parametrize(
    ("command", "kind"), CASES, ids=[f"{kind}, {command}" for command, kind in CASES]
)
def test_a_newer_format_is_refused_in_one_sentence(
    command, kind, tmp_path, monkeypatch, parse, capfd
) -> None:
    old = unpacked("1-ladder", tmp_path, monkeypatch)
    known = FORMATS[kind]
    RAISED[kind](old, known + 1)
    before = files(old)
    capfd.readouterr()
    if command == RUNS:
        with pytest.raises(SystemExit) as stopped:
            parse()
        assert stopped.value.code == 2
    else:
        assert main(command.split()) == 2
    told = [line for line in capfd.readouterr().err.splitlines() if line.startswith("dpladder: ")]
    assert len(told) == 1
    assert told[0].endswith(
        f" was written by a newer dpladder (format {known + 1}; this one reads up to {known}): "
        "upgrade."
    )
    assert files(old) == before


def test_a_newer_cache_is_never_written_anew(tmp_path, monkeypatch) -> None:
    raise_cache(unpacked("1-ladder", tmp_path, monkeypatch), FORMATS["cache"] + 1)
    [path, *_] = sorted(Path("private/cache").glob("*.h5"))
    with pytest.raises(formats.Newer, match="upgrade"):
        verify_cache(path, subkey(open_home(create=False), "cache"))


@pytest.mark.parametrize("kind", formats.KINDS)
def test_every_number_up_to_todays_is_read(kind: Kind) -> None:
    for number in (None, *range(1, FORMATS[kind] + 1)):
        formats.check(kind, "a file", number)
    for number in (FORMATS[kind] + 1, "2", 1.5):
        with pytest.raises(formats.Newer, match="upgrade"):
            formats.check(kind, "a file", number)


def test_what_is_written_now_carries_its_number(finished) -> None:
    entries = sorted((finished.home / "ledger" / "tiny").glob("*.json"))
    assert {json.loads(path.read_text())["format"] for path in entries} == {FORMATS["ledger"]}
    assert (finished.home / "format").read_text() == f"{ONE_USERS}\n"
    assert (
        json.loads(Path("results/ledger.json").read_text())["tiny"]["format"] == FORMATS["results"]
    )
    for cache in Path("private").rglob("*.h5"):
        with h5py.File(cache) as file:
            assert file.attrs["format"] == FORMATS["cache"]
    for kind, path in (("plan", "plan.json"), ("statement", "privacy.json")):
        assert json.loads(Path("results", path).read_text())["format"] == FORMATS[kind]
    with safe_open(MODEL, framework="numpy") as file:
        assert json.loads(file.metadata()["dpladder"])["format"] == FORMATS["weights"]
