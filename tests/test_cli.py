"""The commands: formats and exit codes that others script against (docs/design.md)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import dpladder
from dpladder import cli
from dpladder.commands import project
from dpladder.config.docs import described_keys
from dpladder.config.learners import METHODS as LEARNERS
from dpladder.config.load import load
from dpladder.plan.dag import build_dag
from dpladder.plan.mechanisms import METHODS
from dpladder.plan.plan import make_plan
from dpladder.plan.resolve import resolve_defaults
from dpladder.privacy.ledger.book import open_ledger, reserve
from dpladder.privacy.ledger.home import open_home
from dpladder.section import described_fields

DEMO = Path(__file__).parents[1] / "config" / "config.yaml"


DEAR = "sweep: {rungs: [{epsilon: 0.1, trials: 3}, {epsilon: 0.2, trials: 3}]}"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def config(tmp_path: Path, text: str) -> str:
    path = tmp_path / "config.yaml"
    path.write_text("dataset: {lineage: mnist5k, source: mnist5k, nominal_size: 4000}\n" + text)
    return str(path)


@pytest.fixture(autouse=True)
def _beside_no_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `make demo` ran in the clone, its results are of another home than these tests'."""
    monkeypatch.chdir(tmp_path)


def test_a_plan_is_shown_without_making_a_home(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["plan", str(DEMO), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    wanted = {"feasible", "epsilon", "delta", "mu", "target_epsilon", "lifetime_epsilon", "spends"}
    assert wanted <= document.keys()
    assert document["feasible"]
    assert not home.exists()


def test_the_table_names_every_rule_that_spends(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", str(DEMO)]) == 0
    shown = capsys.readouterr().out
    assert all(
        rule in shown
        for rule in ("run_trial", "train_final", "evaluate", "epsilon = 1.0000", "lifetime limit 8")
    )


def test_an_infeasible_plan_exits_1_with_the_nearest_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = config(tmp_path, f"privacy: {{epsilon: 0.3, delta: 1e-5}}\n{DEAR}")
    assert cli.main(["plan", given]) == 1
    assert "raise the total to" in capsys.readouterr().err


def test_an_infeasible_plan_is_json_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = config(tmp_path, f"privacy: {{epsilon: 0.3, delta: 1e-5}}\n{DEAR}")
    assert cli.main(["plan", given, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["feasible"] is False
    assert "infeasible" in document["problems"][0]


def test_a_bad_config_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", config(tmp_path, "privacy: {epsilon: -1, delta: 1e-5}")]) == 2
    assert "privacy.epsilon" in capsys.readouterr().err


def test_configs_may_stand_behind_an_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = config(tmp_path, "privacy: {epsilon: 1, delta: 1.0e-5}")
    more = tmp_path / "more.yaml"
    more.write_text("privacy: {epsilon: 2}")
    assert cli.main(["plan", own, "--json", str(more)]) == 0
    assert json.loads(capsys.readouterr().out)["target_epsilon"] == 2
    assert cli.main(["tune", "x.safetensors", "--until", "blocks.3", own]) == 2
    assert "needs dataset.public_sample" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["plan", "a.yaml", "--jsn"], ["audit", "x"]])
def test_what_no_command_takes_is_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(words)


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (KeyboardInterrupt(), 130, "dpladder: interrupted\n"),
        (PermissionError(13, "", "up/new"), 2, "dpladder: up/new: Permission denied. Check"),
        (OSError(28, "", "up/new"), 2, "dpladder: up/new: No space left on device. Check"),
        (OSError(28, ""), 2, "dpladder: a file cannot be written: No space left on device. Check"),
    ],
)
def test_where_nothing_can_be_written_one_line_says_so(
    error: BaseException,
    code: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stopped(**_: object) -> None:
        raise error

    monkeypatch.setattr(project, "init", stopped)
    assert cli.main(["init", "up/new"]) == code
    assert capsys.readouterr().err.startswith(told)


def test_an_error_of_dpladders_own_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(**_: object) -> None:
        raise FileNotFoundError(2, "", "up/new")

    monkeypatch.setattr(project, "init", lost)
    with pytest.raises(FileNotFoundError):
        cli.main(["init", "up/new"])


def test_the_ledger_lists_every_entry_with_its_state(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = make_plan(build_dag(resolve_defaults(load([DEMO]))), {})
    reserve(open_ledger(open_home(), plan.terms["mnist5k"]), plan.items.values())
    assert cli.main(["ledger", "show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["mnist5k"]
    assert shown["lifetime_epsilon"] == 8.0
    assert shown["epsilon"] == pytest.approx(1.0, abs=1e-6)
    assert {item["state"] for item in shown["items"]} == {"RESERVED"}
    assert len(shown["items"]) == 10


def test_an_edited_ledger_exits_1_and_names_the_entry(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = make_plan(build_dag(resolve_defaults(load([DEMO]))), {})
    ledger = open_ledger(open_home(), plan.terms["mnist5k"])
    reserve(ledger, plan.items.values())
    assert cli.main(["ledger", "verify"]) == 0
    entry = ledger.folder / "00000002.json"
    entry.write_bytes(entry.read_bytes().replace(b"sigma", b"sigmA", 1))
    assert cli.main(["ledger", "verify"]) == 1
    assert "entry 2" in capsys.readouterr().err


@pytest.mark.parametrize("action", ["show", "verify"])
def test_a_home_without_a_ledger_is_named(
    home: Path, action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["ledger", action]) == 0
    assert f"no ledger in {home}" in capsys.readouterr().out


def test_verifying_something_else_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["verify", str(tmp_path)]) == 2
    assert "results folder of a finished run" in capsys.readouterr().err


def test_an_audit_of_an_unknown_learner_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["audit", "--learner", "dp_magic"]) == 2
    assert "dp_gd" in capsys.readouterr().err


SMALL = "data.npz"


def looked_at(folder: Path, monkeypatch: pytest.MonkeyPatch, classes: str) -> list[str]:
    """A project of 60 rows of two labels in the working directory, and its config."""
    monkeypatch.chdir(folder)
    np.savez(SMALL, features=np.eye(60), labels=np.array(["cat", "dog"])[np.arange(60) % 2])
    Path("config.yaml").write_text(
        f"dataset: {{lineage: pets, source: 'npz:{SMALL}', nominal_size: 50, classes: {classes}}}\n"
        "features: {model: none}\nprivacy: {epsilon: 1.0, delta: 1e-5}\nsweep: {rungs: []}\n"
    )
    return ["check"]


@pytest.mark.parametrize("classes", ["[cat, dog]", "[retina, histology]"])
def test_a_check_shows_what_would_be_read_and_its_exit_code_tells_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    classes: str,
) -> None:
    assert cli.main(looked_at(tmp_path, monkeypatch, classes)) == 0
    shown = capsys.readouterr().out
    assert "rows     60" in shown
    assert ("'cat' is not in dataset.classes: 30 rows" in shown) == (classes != "[cat, dog]")
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made == ["config.yaml", SMALL, "home", "private"]


def test_a_check_shows_a_further_tests_classes_by_the_names_that_they_count_as(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = looked_at(tmp_path, monkeypatch, "[cat, dog]")
    np.savez(
        "other.npz",
        features=np.eye(60)[:50],
        labels=np.array(["hound", "tabby"])[np.arange(50) % 5 // 4],
    )
    also = (
        "{name: other, source: 'npz:other.npz', declared_public: true, classes: {hound: dog, "
        "tabby: null}}"
    )
    with Path("config.yaml").open("a") as config:
        config.write(f"evaluate: {{also: [{also}]}}\n")
    assert cli.main(asked) == 0
    shown = capsys.readouterr().out.split("npz:other.npz")[1]
    assert "rows     50" in shown
    assert "cat 0, dog 40" in " ".join(shown.replace(":", "").split())
    assert "'tabby' is not in dataset.classes: 10 rows" in shown


def test_a_second_check_spares_files_that_have_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = looked_at(tmp_path, monkeypatch, "[cat, dog]")
    for place in range(3):
        for name in ("cat", "dog"):
            (tmp_path / "photos" / name).mkdir(parents=True, exist_ok=True)
            Image.new("L", (8, 8), place).save(tmp_path / "photos" / name / f"{place}.png")
    config = Path("config.yaml").read_text().replace(f"npz:{SMALL}", "folder:photos")
    Path("config.yaml").write_text(config.replace("features: {model: none}\n", ""))
    shown = []
    for _ in range(2):
        assert cli.main(asked) == 0
        shown.append(capsys.readouterr().out)
    assert "spared" not in shown[0]
    assert shown[1] == shown[0].replace(
        "source   folder",
        "spared   6 files have not changed since they were looked into\nsource   folder",
    )


def test_a_network_that_cannot_take_the_records_is_refused_by_a_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = looked_at(tmp_path, monkeypatch, "[cat, dog]")
    text = "height,label\n" + "".join(f"{i},{'cat' if i % 2 else 'dog'}\n" for i in range(120))
    Path("t.csv").write_text(text)
    config = Path("config.yaml").read_text().replace(f"npz:{SMALL}", "csv:t.csv")
    for model, code in {"none": 0, "efficientnet_lite0": 2}.items():
        Path("config.yaml").write_text(config.replace("model: none", f"model: {model}"))
        assert cli.main(asked) == code
        said = capsys.readouterr()
        assert "120 are kept" in said.out
        assert ("Set features.model: none" in said.err) == bool(code)


@pytest.mark.ci
def test_a_check_refuses_names_of_tensors_that_are_not_above_the_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A training would, once counts and means are paid for."""
    asked = looked_at(tmp_path, monkeypatch, "[cat, dog]")
    config = Path("config.yaml").read_text().replace(f"npz:{SMALL}", "folder:photos")
    network = "{model: test_efficientnet, weights: random, until: blocks.3, image_size: 64}"
    learner = "{name: dp_finetune, trains: lora, lora: {targets: [blocks.9.*]}}"
    config = config.replace("{model: none}", network)
    Path("config.yaml").write_text(f"{config}learner: {learner}\n")
    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        Image.new("L", (64, 64)).save(tmp_path / "photos" / name / "0.png")
    assert cli.main(asked) == 2
    assert "learner.lora.targets: blocks.9.* fits none of the layers" in capsys.readouterr().err


@pytest.mark.ci
def test_columns_of_words_are_refused_with_a_line_to_paste(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In parquet the type of a column says so; in CSV its records count as nothing."""
    asked = looked_at(tmp_path, monkeypatch, "[cat, dog]")
    rows = {"sex": ["F", "M"] * 60, "age": [float(age) for age in range(120)]}
    table = pd.DataFrame(rows | {"label": ["cat", "dog"] * 60})
    table.to_parquet("t.parquet")
    table.to_csv("t.csv", index=False)
    text = Path("config.yaml").read_text().replace("nominal_size: 50", "nominal_size: 100")
    for source, code in {"parquet:t.parquet": 2, "csv:t.csv": 0}.items():
        Path("config.yaml").write_text(text.replace(f"npz:{SMALL}", source))
        assert cli.main(asked) == code
        said = capsys.readouterr()
        assert "sex: words, 0.0% missing" in said.out
        assert "dataset.columns: [{name: sex, levels: [...]}, age]" in said.out
        assert ("this cannot be what the config means" in said.out) == (code == 0)
        assert ("sex (" in said.err) == (code == 2)


def test_keys_are_found_by_a_word_of_their_name_or_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["keys", "Patient"]) == 0
    shown = capsys.readouterr().out
    assert "dataset.user  (text, default empty)" in shown
    assert cli.main(["keys", "patiant"]) == 2
    assert "did you mean patient?" in capsys.readouterr().err


def test_a_key_of_several_meanings_is_shown_with_each_and_whose_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["keys", "learner.optimizer"]) == 0
    shown = capsys.readouterr().out
    assert "(sgd | momentum | adamw, default sgd)\n    hyfree_dp, hyfree_finetune: What " in shown
    assert "(momentum | adam, default momentum)\n    dp_finetune: What makes" in shown
    assert cli.main(["keys", "one_step"]) == 0
    assert "    one_step: The learning rate." in capsys.readouterr().out


def test_each_key_of_each_learner_and_search_is_described_as_its_section_has_it() -> None:
    keys = {(key.name, key.text, name) for key in described_keys() for name in key.methods}
    for name, method in METHODS.items():
        section = "learner" if name in LEARNERS else "hpo"
        for field, described in described_fields(method.section).items():
            text = " ".join((described.description or "").split())
            assert field == "name" or (f"{section}.{field}", text, name) in keys, (name, field)


def test_the_page_of_features_has_each_command_and_method_once() -> None:
    page = (DEMO.parents[1] / "docs" / "features.md").read_text("utf-8")
    names = re.findall(r"`([\w.]+|dpladder [\w ]+)`", page)
    assert len(names) == len(set(names))
    assert {*(f"dpladder {name}" for name in cli.COMMANDS), *METHODS} <= set(names)


def test_a_ledger_that_is_not_here_was_not_rolled_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An officer has results, and no home."""
    from dp_accounting import GaussianDpEvent

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    ledger = dpladder.Ledger("people", epsilon=1.0, delta=1e-5)
    assert cli.main(["ledger", "show"]) == 0
    assert "lineage people: nothing spent or reserved at delta" in capsys.readouterr().out
    with ledger.spend("count", GaussianDpEvent(20.0)) as charge:
        charge.finish(1)
    ledger.statement()
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "officers"))
    assert cli.main(["ledger", "verify", "results"]) == 1
    told = capsys.readouterr().err
    assert "officers has no ledger of it. Set DPLADDER_HOME" in told
    assert "rolled back" not in told


@pytest.mark.parametrize("name", ["privacy.json", "ledger.json"])
def test_a_document_that_says_a_key_twice_does_not_verify(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another reader may take the first, and read another epsilon than was verified."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    dpladder.Ledger("people", epsilon=1.0, delta=1e-5).count("n", [1], epsilon=0.5)
    ledger = dpladder.Ledger("people", epsilon=1.0, delta=1e-5)
    ledger.statement()
    path = Path("results") / name
    path.write_text(path.read_text().replace("{", '{"delta": 1e-9, "delta": 1e-9, ', 1))
    assert cli.main(["verify", "results"]) == 2
    assert "a name stands twice in an object" in capsys.readouterr().err


def test_what_numpy_and_pillow_warn_of_is_no_line_of_a_command() -> None:
    """It stood between the lines of `check`, with the place of a file of ours."""
    code = (
        "from dpladder.cli import main; import numpy, warnings; main(['keys', 'clip'])\n"
        "numpy.float64(1e300) * 1e300\n"
        "warnings.warn_explicit('odd', UserWarning, 'Image.py', 1, module='PIL.Image')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
