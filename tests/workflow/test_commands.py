"""The commands that the pages give, each run in a finished project."""

from __future__ import annotations

import shlex
import subprocess
import sys

import numpy as np
import pytest
from documented import commands
from support import Workspace, mixture

from dpladder import cli
from dpladder.commands import home

pytestmark = pytest.mark.ci

ELSEWHERE = {
    "dpladder audit": "minutes: tests/audits",
    "dpladder audit --canaries": "minutes: tests/audits",
    "dpladder audit --learner": "minutes: tests/audits",
    "dpladder audit --learner <name>": "minutes: tests/audits",
    "dpladder audit --learner dp_adam": "minutes: tests/audits",
    "dpladder audit --learner own.nearest_mean": "a package: tests/workflow/test_plugins.py",
    'dpladder generate MODEL "To be," --tokens 40 --samples 3': "another model: "
    "tests/workflow/test_language_model.py",
    "dpladder run --slurm": "a cluster: tests/slurm",
    "dpladder home init": "a home that is one already: tests/crash/test_team.py",
    "dpladder home init --group imaging": "a group: tests/crash/test_team.py",
    "dpladder tune network.safetensors --until blocks.3": "public images: tests/test_tune.py",
    "dpladder register results": "a deployment: tests/privacy/statement/test_registry.py",
}
"""What this project, or this machine, is not for."""
STANDS_FOR = {
    "~/my-photos": "photos",
    "~/scans": "scans",
    "CONFIG": "config.yaml",
    "RESULTS...": "results",
    "MODEL": "results",
    "INPUT...": "new.npz",
    "photo.jpg": "new.npz",
    "<address>": "https://example.org/licence",
    "config/config.yaml": "config.yaml",
    "FILE": "backup",
    "[--json]": "--json",
}
"""What a reader fills in."""


def given() -> list[str]:
    """Those with arguments, or that need none: the others are told by their names alone."""
    return [
        command
        for command in commands("dpladder ")
        if command not in ELSEWHERE
        and (command.removeprefix("dpladder ") not in cli.COMMANDS or takes_nothing(command))
    ]


def takes_nothing(command: str) -> bool:
    asked = cli.COMMANDS.get(command.removeprefix("dpladder "))
    return asked is not None and all(
        argument.names[0].startswith("-") or argument.options.get("nargs") in ("*", "?")
        for argument in asked.takes
    )


@pytest.mark.parametrize("command", given())
def test_a_command_of_the_pages_does_what_it_is_for(
    command: str, finished: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez("new.npz", **mixture(20, seed=5))
    monkeypatch.setattr(home, "getpass", lambda _: "a passphrase")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{finished.folder}/mlflow.db")
    text = command.replace("[--to huggingface]", "--to huggingface")
    words = [STANDS_FOR.get(word, word) for word in shlex.split(text)[1:]]
    words = ["new" if word == "FOLDER" else word for word in words]
    if words[:2] == ["home", "restore"]:
        assert cli.main(["home", "backup", "backup"]) == 0
        monkeypatch.setenv("DPLADDER_HOME", str(finished.folder / "elsewhere"))
    if words[0] == "run":  # which may give its place to Snakemake
        program = [sys.executable, "-m", "dpladder", *words]
        assert subprocess.run(program, check=False, timeout=600).returncode == 0
    else:
        assert cli.main(words) == 0


def test_what_is_left_out_is_still_in_the_pages() -> None:
    assert [command for command in ELSEWHERE if command not in commands("dpladder ")] == []
