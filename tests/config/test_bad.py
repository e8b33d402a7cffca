"""Bad configs: each gives one readable message that names the key, the value, what is allowed and
what to do. tests/approved/bad_configs.txt has them beside their messages: write a new one there
without its message, and `make approve` adds it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import approval
import pytest
import torch
from safetensors.torch import save_file

from dpladder import cli
from dpladder.config.checkpoints import wrong_with_checkpoint
from dpladder.config.load import load, resolve
from dpladder.errors import BadInput

DATASET = "dataset: {lineage: digits, source: digits, nominal_size: 1400}"
PRIVACY = "privacy: {epsilon: 1.0, delta: 1.0e-5}"


# what is no config at all, and what is not one in YAML's own eyes
FILES: dict[str, str | bytes] = {
    "empty": "",
    "only comments": "# nothing yet\n",
    "list at the top": "- dataset\n",
    "text at the top": "dataset\n",
    "syntax": "dataset: {lineage: digits\nprivacy: 1\n",
    "unclosed quote": "mode: 'release\n",
    "tabs": "dataset:\n\tlineage: digits\n",
    "two documents": "mode: release\n---\nmode: release\n",
    "control character": "mode: a\0b\n",
    "not UTF-8": "mode: Köln\n".encode("latin-1"),
    "UTF-16": "mode: release\n".encode("utf-16"),
    "half a surrogate": 'mode: "\\ud800"\n',
    "key twice": "mode: release\nfit:\n  degree: 1\n  degree: 2\n",
    "section twice": "fit: {}\nmode: release\nfit: {}\n",
    "key that is no text": "2020-01-01: 3\n",
    "key that is a mapping": "? {a: b}\n: 3\n",
    "no such date": "mode: 2020-13-45\n",
    "too many digits": f"mode: {'9' * 5000}\n",
    "foreign tag": "mode: !!python/object:os.system {}\n",
    "unknown alias": "mode: *nobody\n",
    "anchor that contains itself": "mode: &a [*a]\n",
    "nested too deeply": f"mode: {'[' * 3000}\n",
    "aliases that expand without end": "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(
        f"{new}: &{new} [{', '.join(['*' + old] * 10)}]\n"
        for old, new in zip("abcdefg", "bcdefgh", strict=True)
    ),
    "missing section": f"{PRIVACY}\n",
    "experiment twice": "experiments:\n  a: {}\n  a: {fit: {against: mu}}\n",
    "experiment name is a number": "experiments: {2024: {}}\n",
}


@pytest.fixture(name="here", autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("there").touch()
    Path("leads_into_results").symlink_to("results/private")


def message_of(*files: Path, **overrides: object) -> str:
    with pytest.raises(BadInput) as caught:
        load(files, overrides)
    assert caught.value.exit_code == 2
    return str(caught.value)


def config_of(case: str) -> str:
    """The config of an approved case: its lines that are no message, below the good ones that it
    does not give itself."""
    text = re.sub(r"^  - .*\n", "", case, flags=re.MULTILINE)
    good = {"dataset": DATASET, "privacy": PRIVACY}
    own = set(re.findall(r"^\w+(?=:)", text, re.MULTILINE))
    return "".join(f"{line}\n" for key, line in good.items() if key not in own) + text


CASES = approval.read("bad_configs")


@pytest.mark.parametrize("name", CASES)
def test_a_bad_config_is_told_in_one_readable_message(name, approved):
    Path("bad.yaml").write_text(config_of(CASES[name]), "utf-8")
    count, *problems = message_of(Path("bad.yaml")).splitlines()
    assert count == f"config: {len(problems)} problem{'s' if len(problems) > 1 else ''}"
    assert all(len(line) < 500 and line.isprintable() for line in problems), problems
    own = re.sub(r"^  - .*\n", "", CASES[name], flags=re.MULTILINE)
    approved(own + "\n".join(problems), "bad_configs", name)


SLOW = {"nested too deeply"}


def write_file(name: str) -> Path:
    text, path = FILES[name], Path.cwd() / "bad.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.long] * (each in SLOW)) for each in FILES]
)
def test_a_file_that_is_no_config_is_told(name, approved):
    message = message_of(write_file(name))
    assert all(len(line) < 500 and line.isprintable() for line in message.splitlines()), message
    approved(message, "bad_configs_files")


@pytest.mark.parametrize("name", ["empty", "tabs", "missing section"])
def test_dpladder_plan_says_the_same_and_exits_with_2(name, capsys):
    file = write_file(name)
    assert cli.main(["plan", str(file)]) == 2
    printed = capsys.readouterr()
    assert printed.err == f"dpladder: {message_of(file)}\n"
    assert printed.out == ""


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["missing section", "tabs", "not UTF-8"])
def test_the_installed_command_exits_with_2_and_one_message(name):
    file = write_file(name)
    command = [Path(sys.executable).with_name("dpladder"), "plan", file]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr == f"dpladder: {message_of(file)}\n"
    assert ended.stdout == ""


@pytest.mark.parametrize("folder", ["/etc", "open"])
def test_a_private_folder_that_everybody_may_enter_is_refused(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("open").mkdir(mode=0o755)
    Path("closed").mkdir(mode=0o700)
    for path in (folder, "closed"):
        text = f"{DATASET}\n{PRIVACY}\npaths: {{private: {path}}}\n"
        Path("one.yaml").write_text(text)
        if path == "closed":
            load([Path("one.yaml")])
            continue
        with pytest.raises(BadInput, match=r"paths\.private.*open to everybody \(mode 755\)"):
            load([Path("one.yaml")])


def test_the_table_is_built_on_a_config_that_is_good(tmp_path):
    file = tmp_path / "good.yaml"
    file.write_text(f"{DATASET}\n{PRIVACY}\n", "utf-8")
    assert load([file]).main.dataset.source == "digits"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, ("not found", "copy config/config.yaml")),
        (lambda path: path.mkdir(), ("is a folder", "name the YAML file in it")),
        (lambda path: path.symlink_to(path), ("cannot be read", "check its path")),
    ],
    ids=["missing", "folder", "link to itself"],
)
def test_a_config_path_without_a_file_is_told(make, says, tmp_path):
    path = tmp_path / "config.yaml"
    make(path)
    message = message_of(path)
    assert message.startswith(f"config file {path}: ")
    assert all(part in message for part in says)


def test_an_unreadable_config_is_told(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(DATASET, "utf-8")
    path.chmod(0)
    assert "cannot be read (Permission denied); check its path and permissions" in as_nobody(
        lambda: load([path])
    )


def test_an_unreadable_source_is_told(tmp_path):
    source = tmp_path / "features.npz"
    source.touch(mode=0)
    values = {
        "dataset": {"lineage": "x", "source": f"npz:{source}", "nominal_size": 100, "classes": 2},
        "features": {"model": "none"},
        "privacy": {"epsilon": 1.0, "delta": 1e-5},
    }
    message = as_nobody(lambda: resolve(values))
    assert "dataset.source" in message
    assert "permissions" in message


def as_nobody(action) -> str:
    """The message of a BadInput raised in a child that is not root, because root can read
    everything."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            action()
        except BadInput as error:
            os.write(writing, str(error).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        message = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "no BadInput was raised"
    return message


def test_all_problems_of_a_file_are_told_at_once(tmp_path):
    file = tmp_path / "many.yaml"
    file.write_text(
        "mode: reserch\n"
        "dataset: {lineage: digits, source: digit, nominal_size: 1400}\n"
        "privacy: {epsilon: -1, delta: 0.1}\n"
        "fit: {degre: 1}\n"
        "sweep: {search: {eta: [5, 1]}}\n"
        "experiments: {a: {learner: {momentum: 2}}, B: {mode: research}}\n",
        "utf-8",
    )
    lines = message_of(file).splitlines()
    assert lines[0] == "config: 9 problems"
    for key in (
        "mode",
        "dataset.source",  # found by a check between keys, though other keys are wrong
        "privacy.epsilon",
        "privacy.delta",
        "fit.degre",
        "sweep.search.eta",
        "experiments.a.learner.momentum",
        "experiments.B",
        "experiments.B.mode",
    ):
        assert sum(line.startswith(f"  - {key} ({file}:") for line in lines) == 1, key


def test_all_keys_given_twice_are_told_at_once(tmp_path):
    file = tmp_path / "twice.yaml"
    file.write_text("mode: release\nmode: release\nfit: {degree: 1, degree: 1}\n", "utf-8")
    assert [line.count("stands twice") for line in message_of(file).splitlines()] == [1, 1]


def test_a_problem_of_the_base_is_not_repeated_for_each_experiment(tmp_path):
    file = tmp_path / "base.yaml"
    file.write_text(
        f"{DATASET}\nprivacy: {{epsilon: -1, delta: 0.5}}\nexperiments: {{a: , b: {{fit: "
        "{}}}\n",
        "utf-8",
    )
    assert message_of(file).startswith("config: 2 problems")


def test_an_experiment_that_repeats_a_mistake_of_the_base_is_told_too(tmp_path):
    file = tmp_path / "base.yaml"
    file.write_text(
        f"{DATASET}\n{PRIVACY}\nfit: {{degre: 1}}\nexperiments: {{a: {{fit: {{degre: 1}}}}}}\n",
        "utf-8",
    )
    message = message_of(file)
    assert f"fit.degre ({file}:3)" in message
    assert f"experiments.a.fit.degre ({file}:4)" in message


@pytest.mark.parametrize(
    "more",
    [
        "mode: reserch\nresearch: {repeats: 3}",  # might be research, where repeats are fine
        "fit: {degree: three}\nsweep: {rungs: [{epsilon: 0.1, trials: 3}]}",
        # a search that climbs no ladder was meant
        "hpo: {name: random_serch}\nsweep: {rungs: [{epsilon: 0.1, trials: 3}]}\n"
        "fit: {using: best, against: mu}",
        # no cut was meant
        "features: {modl: none, until: blocks.5}\nlearner: {name: dp_finetune}",
        # classes were meant
        "dataset: {lineage: x, source: 'folder:/', nominal_size: 100, clases: 2}",
    ],
)
def test_one_mistake_is_not_told_twice_through_its_echo(more, tmp_path):
    file = tmp_path / "echo.yaml"
    file.write_text(
        "\n".join([*([] if more.startswith("dataset") else [DATASET]), PRIVACY, more]), "utf-8"
    )
    assert message_of(file).startswith("config: 1 problem\n")


def test_a_mistake_stands_where_the_last_file_put_it(tmp_path):
    base, over = tmp_path / "base.yaml", tmp_path / "over.yaml"
    base.write_text(f"{DATASET}\n{PRIVACY}\n", "utf-8")
    over.write_text("\nprivacy: {epsilon: 0}\n", "utf-8")
    assert f"privacy.epsilon ({over}:2)" in message_of(base, over)


def test_a_mistake_in_an_override_is_named_without_a_place(tmp_path):
    base = tmp_path / "base.yaml"
    base.write_text(f"{DATASET}\n{PRIVACY}\n", "utf-8")
    assert "  - fit.degre: given 2; unknown key" in message_of(base, fit={"degre": 2})
    assert "  - privacy.epsilon: given 0" in message_of(base, privacy={"epsilon": 0})
    assert "write it out plainly" in message_of(base, fit={(1, 2): 2})


def checkpoints(folder: Path) -> dict[str, Path]:
    """Files under a checkpoint's name that hold none, and sound ones: of safetensors, and of
    torch's two forms."""
    tensors = {"layer.weight": torch.arange(6.0).view(2, 3)}
    made = {name: folder / f"{name}.pth" for name in ("pointer", "torn", "sound", "old")}
    made |= {name: folder / f"{name}.safetensors" for name in ("short", "cut", "list", "whole")}
    save_file(tensors, made["whole"])
    torch.save(tensors, made["sound"])
    torch.save(tensors, made["old"], _use_new_zipfile_serialization=False)
    made["pointer"].write_text("version https://git-lfs.github.com/spec/v1\n")
    made["torn"].write_bytes(made["sound"].read_bytes()[:-30])
    made["short"].write_bytes(b"abc")
    made["cut"].write_bytes(made["whole"].read_bytes()[:-1])
    made["list"].write_bytes((2).to_bytes(8, "little") + b"[]")
    made["pipe"] = folder / "pipe.bin"
    os.mkfifo(made["pipe"])
    made["name"] = folder / "weights.npz"
    made["name"].touch()
    return made


def test_a_checkpoint_is_looked_at_from_outside_before_anything_is_planned_on_it(tmp_path):
    wrong = {name: wrong_with_checkpoint(path) for name, path in checkpoints(tmp_path).items()}
    assert [name for name, said in wrong.items() if said is None] == ["sound", "old", "whole"]
    assert "ordinary file" in wrong["pipe"]
    assert "must end in .safetensors" in wrong["name"]
    assert "git lfs pull" in wrong["pointer"]
