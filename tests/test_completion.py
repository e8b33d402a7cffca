"""What real shells complete `dpladder` with. fish is asked where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dpladder import cli

# A shell's script that completes the words "$@", the last of which is being written, and prints
# what it finds. COMPLETION is dpladder's own script.
ASK = {
    "bash": """source "$COMPLETION"
complete -p dpladder | grep -q -- '-F _shtab_dpladder' || exit 1
COMP_WORDS=(dpladder "$@") COMP_CWORD=$# COMP_LINE="dpladder $*" COMP_POINT=1000
_shtab_dpladder 2> /dev/null  # bash alone may call compopt
printf '%s\\n' "${COMPREPLY[@]}" """,
    "fish": """source $COMPLETION
complete -C "dpladder $argv" | string replace -r '\\t.*' '' | string trim -rc /
true""",
}
TOP = {name.split()[0] for name in cli.COMMANDS}
FILES = {"a.yaml", "b.yml", "table.csv", "project"}


@pytest.fixture(name="completed", params=ASK)
def _completed(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., set[str]]:
    shell = request.param
    if shutil.which(shell) is None:
        assert shell != "bash", "bash is needed"
        pytest.skip(f"{shell} is not installed")
    assert cli.main(["completion", shell]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out, "utf-8")
    place = tmp_path / "place"
    (place / "project").mkdir(parents=True)
    for name in FILES - {"project"}:
        (place / name).touch()

    def ask(*words: str) -> set[str]:
        plain = {"fish": ["--no-config"], "bash": ["--norc"]}[shell]
        ended = subprocess.run(
            [shell, *plain, "-c", ASK[shell], "--" if shell == "fish" else shell, *words],
            cwd=place,
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(tmp_path),
                "COMPLETION": str(tmp_path / "script"),
            }
            | {"LC_ALL": os.environ.get("LC_ALL", "C.UTF-8")},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert ended.returncode == 0, ended.stderr
        start = words[-1]
        return {word for word in ended.stdout.split() if word.startswith(start)}

    return ask


def test_every_command_and_action_is_completed(completed: Callable[..., set[str]]) -> None:
    assert completed("") == TOP
    assert completed("led") == {"ledger"}
    assert completed("ledger", "") == {"show", "verify"}
    assert completed("home", "") == {"backup", "init", "restore"}


def test_options_are_those_of_their_command_and_so_are_their_values(
    completed: Callable[..., set[str]],
) -> None:
    assert completed("--v") == {"--version"}
    assert completed("ledger", "show", "--") == {"--help", "--by", "--json"}
    assert completed("ledger", "show", "--by", "") == {"user"}
    assert completed("plan", "a.yaml", "--j") == {"--json"}
    assert completed("audit", "--") == {"--help", "--learner", "--canaries", "--json"}
    assert completed("export", "model", "--to", "") == {"torch", "huggingface", "onnx"}


def test_where_a_config_is_due_configs_are_offered(completed: Callable[..., set[str]]) -> None:
    for command in ("plan", "run", "check"):
        assert completed(command, "") >= {"a.yaml", "project"}
        assert completed(command, "b.yml", "a") == {"a.yaml"}
    assert "show" not in completed("plan", "")
