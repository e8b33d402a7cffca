"""The examples, run as users run them: with fewer trials, and with what is installed here."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dp_accounting import dp_event

from dpladder import Ledger
from dpladder.errors import Refused

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str, place: Path, *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        cwd=place,
        env=os.environ | {"DPLADDER_HOME": str(place / "home")},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.long
def test_opacus_is_told_one_true_epsilon_by_ten_lines(tmp_path):
    said = example("opacus_search.py", tmp_path, "--trials", "2")
    alone, together = map(float, re.findall(r"epsilon = (\d+\.\d+)", said))
    assert 1.0 < alone < 1.5  # Opacus' own figure, by Renyi
    assert 1.2 < together < 4.0
    assert "(4, 1e-05)" in (tmp_path / "results" / "privacy.md").read_text("utf-8")
    lines = (EXAMPLES / "opacus_search.py").read_text("utf-8").splitlines()
    assert sum(line.endswith("# books") for line in lines) <= 10


@pytest.mark.ci
def test_optuna_stops_when_the_budget_is_spent(tmp_path):
    trials = int(re.search(r"(\d+) trials", example("optuna_search.py", tmp_path))[1])
    assert 5 < trials < 100
    assert "trial-0" in (tmp_path / "results" / "privacy.md").read_text("utf-8")


@pytest.mark.ci
def test_sites_train_by_rounds_until_their_limits_though_one_is_killed(tmp_path):
    said = example("federated_rounds.py", tmp_path, "--kill", "south", "3")
    assert "south died" in said
    rounds, right = re.search(r"(\d+) rounds; ([\d.]+)%", said).groups()
    assert float(right) > 60.0
    spent = {
        name: float(epsilon) for name, epsilon in re.findall(r"(\w+): epsilon = (.+) of", said)
    }
    limits = {"north": 2.0, "south": 2.0, "east": 1.0}
    for site, limit in limits.items():
        assert 0.9 * limit < spent[site] <= limit
        page = (tmp_path / "sites" / site / "results/privacy.md").read_text("utf-8")
        assert "round-3" in page
        assert (f"round-{rounds}" in page) == (limit == 2.0)
    # the round in which it died is charged, so it took part in one less
    assert spent["south"] == pytest.approx(spent["north"], abs=1e-9)


@pytest.mark.long
def test_sites_that_all_died_go_on_to_their_limits(tmp_path):
    begun = subprocess.Popen(
        [sys.executable, str(EXAMPLES / "federated_rounds.py")],
        cwd=tmp_path,
        start_new_session=True,
    )
    while sum(1 for _ in (tmp_path / "sites").glob("north/home/ledger/north/*")) < 15:
        assert begun.poll() is None, "it ended before it was killed"
        time.sleep(0.005)
    os.killpg(begun.pid, signal.SIGKILL)
    said = example("federated_rounds.py", tmp_path)
    assert 20 < int(re.search(r"(\d+) rounds", said)[1]) < 35
    for epsilon, limit in re.findall(r"epsilon = (.+) of (\d)", said):
        assert 0.9 * float(limit) < float(epsilon) <= float(limit)


class Study:
    """What Optuna's own does with its callbacks, as far as a callback sees it."""

    stopped = False

    def stop(self) -> None:
        self.stopped = True


def test_a_search_is_stopped_before_the_trial_that_would_be_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger, event, study = (
        Ledger("x", epsilon=0.5, delta=1e-5, home=tmp_path / "home"),
        dp_event.GaussianDpEvent(20.0),
        Study(),
    )
    ledger.reserve("final", dp_event.GaussianDpEvent(9.0))
    callback, trials = ledger.stop_when_spent(event), 0
    while not study.stopped:
        ledger.spend(f"trial-{trials}", event).finish(trials)
        trials += 1
        callback(study, None)
    assert trials > 1
    with pytest.raises(Refused):
        ledger.spend("one-more", event)


def test_opacus_steps_beyond_what_was_reserved_move_nothing(tmp_path):
    """The real optimiser: a refused step leaves the weights as they were."""
    import torch
    from opacus import PrivacyEngine

    charge = Ledger(
        "x", epsilon=8.0, delta=1e-5, home=tmp_path / "home", results=tmp_path / "results"
    ).spend("a", [(1.0, 0.5, 2)])
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    data = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
    engine = PrivacyEngine(accountant="rdp")
    engine.accountant = charge.accountant()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=torch.utils.data.DataLoader(data, batch_size=32),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    steps = 0
    while True:
        for inputs, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), labels).backward()
            before = [parameter.detach().clone() for parameter in model.parameters()]
            if steps == 2:
                with pytest.raises(Refused, match="no room for a step"):
                    optimizer.step()
                assert all(map(torch.equal, before, model.parameters()))
                return
            optimizer.step()
            assert not all(map(torch.equal, before, model.parameters()))
            steps += 1
