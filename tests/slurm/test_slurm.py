"""The DAG on a real cluster, and everything that befalls jobs there: whatever it is, each is charged and released once.

The tests of disasters share one project, a trial of its own for each. The last test runs it to the end.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from workspace import ROOT, Workspace, enter, wait_until

from dpladder.cli import main
from dpladder.privacy.home import open_home
from dpladder.privacy.ledger import Held

pytestmark = pytest.mark.timeout(400)

# The shipped profile, made impatient: jobs take seconds here, and squeue may be asked as often as one likes.
ON_SLURM = (
    *("--profile", str(ROOT / "profiles/slurm")),
    *("--slurm-init-seconds-before-status-checks", "3", "--latency-wait", "10"),
)
TWO_SHARDS = {
    "dataset": {"nominal_size": 20_001},
    "features": {"shards": "auto"},
    "sweep": {"rungs": [{"epsilon": 0.1, "trials": 2}, {"epsilon": 0.2, "trials": 1}]},
    "resources": {"gpu": 1, "mem_mb": 2000, "runtime": 5},
}
STRUCK = {
    "sweep": {
        "rungs": [{"epsilon": 0.05, "trials": 9}, {"epsilon": 0.1, "trials": 1}],
        "search": {"steps": [20_000, 20_001]},  # seconds to strike in
    },
    "resources": {"mem_mb": 2000, "runtime": 1},
}
FEATURES = [f"results/main/features/{part}/privacy.json" for part in ("train", "test")]


def submitted(project: Workspace) -> dict[str, str]:
    """Every job that went to SLURM from a project, by number: the folder of its log says what it ran."""
    logs = project.folder / ".snakemake" / "slurm_logs"
    return {log.stem: str(log.parent.relative_to(logs)) for log in logs.rglob("*.log")}


def assert_sound(project: Workspace, capsys) -> None:
    """The whole ledger is as it was written, and the statement follows from it and from the records."""
    assert main(["ledger", "verify", "results"]) == 0
    assert main(["verify", "results"]) == 0
    assert "epsilon = 1.0000 at delta = 1e-05" in capsys.readouterr().out
    jobs = Counter(held.job for held in project.held())
    assert set(jobs.values()) == {1}
    assert {held.status for held in project.held()} == {"DONE"}


def test_the_tiny_dag_runs_on_the_cluster(cluster, tmp_path, monkeypatch, capsys):
    project = Workspace(tmp_path / "project", tmp_path / "home", TWO_SHARDS, ON_SLURM)
    project.create()
    enter(project, monkeypatch)
    before = len(cluster.ended())
    project.finish()
    ended = cluster.ended()[before:]
    ran = submitted(project)
    assert {job.state for job in ended} == {"COMPLETED"}
    assert Counter(ran[job.number].partition("/")[0] for job in ended) == {
        "group_data_prepare_dataset": 1,
        "rule_extract_features": 4,  # two shards of each part
        "group_merged_merge_features": 2,
        "rule_run_trial": 3,
        "group_final_evaluate_train_final": 1,
    }
    assert len(project.held()) == 5
    assert_sound(project, capsys)


@pytest.fixture(scope="module")
def project(cluster, tmp_path_factory) -> Iterator[Workspace]:
    """Features that are ready, and trials that take a while."""
    folder = tmp_path_factory.mktemp("struck")
    made = Workspace(folder / "project", folder / "home", STRUCK)
    made.create()
    with pytest.MonkeyPatch.context() as patch:
        enter(made, patch)
        made.finish(*FEATURES)
        yield replace(made, options=ON_SLURM)


def score(trial: int) -> str:
    return f"results/main/rungs/0/trials/{trial}/score.json"


def held(project: Workspace, trial: int) -> list[Held]:
    wildcards = (("rung", "0"), ("trial", str(trial)))
    return [held for held in project.held() if held.job.wildcards == wildcards]


def start(project: Workspace, *trials: int) -> subprocess.Popen:
    return subprocess.Popen(
        project.command(*map(score, trials)),
        cwd=project.folder,
        env=project.environment(),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def begun(project: Workspace, trial: int) -> Held:
    """The charge of a trial that has begun to read private data."""
    wait_until(lambda: [each for each in held(project, trial) if each.status == "COMMITTED"], seconds=120)
    (charge,) = held(project, trial)
    return charge


def number_of(cluster, trial: int) -> str:
    return cluster.jobs()[f"rule_run_trial_wildcards_main_0_{trial}"]


def fates(project: Workspace, cluster, trial: int) -> list[str]:
    """How the jobs of a trial ended."""
    mine = {
        number for number, about in submitted(project).items() if about == f"rule_run_trial/main_0_{trial}"
    }
    return [job.state for job in cluster.ended() if job.number in mine]


def processes(number: str) -> list[int]:
    """The processes of a job."""
    mine = f"SLURM_JOB_ID={number}\0".encode()
    return [
        int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if mine in environment(path)
    ]


def environment(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # ended since it was listed
        return b""


def send(number: str, how: int) -> None:
    for process in processes(number):
        os.kill(process, how)


def assert_once(project: Workspace, trial: int, charge: Held) -> None:
    """What had begun came to its end under the same charge and nonce; its one release is what was published."""
    (done,) = held(project, trial)
    assert done.status == "DONE"
    assert (done.token, done.nonce, done.query) == (charge.token, charge.nonce, charge.query)
    (kept,) = (open_home().releases / "tiny" / done.query).iterdir()
    assert (project.folder / score(trial)).read_bytes() == (kept / "score.json").read_bytes()


STRIKES = {
    0: lambda cluster, number: cluster.tell("scancel", number),
    1: lambda cluster, number: send(number, signal.SIGKILL),
    2: lambda cluster, number: send(number, signal.SIGSTOP),
    3: lambda cluster, number: cluster.tell("scontrol", "requeue", number),
}


@pytest.fixture(scope="module")
def charges(project, cluster) -> dict[int, Held]:
    """One run in which every job is struck after it began, and which mends them all by itself. Their charges then."""
    driver = start(project, *STRIKES)
    found = {}
    for trial, strike in STRIKES.items():
        found[trial] = begun(project, trial)
        strike(cluster, number_of(cluster, trial))
    assert driver.wait(timeout=240) == 0
    return found


def test_a_cancelled_job_is_resumed(project, cluster, charges):
    assert fates(project, cluster, 0) == ["CANCELLED", "COMPLETED"]
    assert_once(project, 0, charges[0])


def test_a_killed_job_is_resumed(project, cluster, charges):
    assert fates(project, cluster, 1) == ["FAILED", "COMPLETED"]
    assert_once(project, 1, charges[1])


def test_a_job_that_hangs_times_out_and_is_resumed(project, cluster, charges):
    assert fates(project, cluster, 2) == ["TIMEOUT", "COMPLETED"]
    assert_once(project, 2, charges[2])


def test_a_job_that_goes_back_to_the_queue_is_resumed(project, cluster, charges):
    assert fates(project, cluster, 3)[-1] == "COMPLETED"
    assert_once(project, 3, charges[3])
