"""The DAG on a real cluster, and everything that befalls jobs there: whatever it is, each is
charged and released once.

The tests of disasters share one project, a trial of its own for each. The last test runs it to the
end.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support import LOCALLY, ROOT, Workspace, enter, wait_until

from dpladder.cli import main
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.ledger.state import LedgerCharge

pytestmark = pytest.mark.timeout(600)

# The shipped profile, made impatient: jobs take seconds here, and squeue may be asked as often as
# one likes. While no job ends, the plugin asks ten seconds later each time than Snakemake's own
# pause between two looks.
ON_SLURM = (
    *("--workflow-profile", str(ROOT / "profiles/slurm")),
    *("--slurm-init-seconds-before-status-checks", "9", "--seconds-between-status-checks", "1"),
    *("--latency-wait", "10"),
)
PATIENCE = 560  # seconds for a run, on a machine that is busy with other things
TWO_SHARDS = {
    "dataset": {"nominal_size": 20_001},
    "features": {"shards": "auto"},
    "sweep": {"rungs": [{"epsilon": 0.1, "trials": 2}, {"epsilon": 0.2, "trials": 1}]},
    "resources": {"gpu": 1, "mem_mb": 2000, "runtime": 5},
}
STRUCK = {
    "sweep": {
        "rungs": [{"epsilon": 0.05, "trials": 9}, {"epsilon": 0.1, "trials": 1}],
        "together": False,  # each trial a job, to be struck alone
        "search": {"steps": [8_000, 8_001]},  # seconds to strike in
    },
    "resources": {"mem_mb": 2000, "runtime": 5},
}
FEATURES = [f"results/main/features/{part}/privacy.json" for part in ("train", "test")]


def submitted(project: Workspace) -> dict[str, str]:
    """Every job that went to SLURM from a project, by number: the folder of its log says what it
    ran."""
    logs = project.folder / ".snakemake" / "slurm_logs"
    return {log.stem: str(log.parent.relative_to(logs)) for log in logs.rglob("*.log")}


def jobs(project: Workspace, cluster, about: str = "") -> list:
    """The jobs of a project that are over, oldest first. SLURM may log an end after Snakemake has
    seen it."""
    wait_until(cluster.is_idle)
    mine = {number for number, ran in submitted(project).items() if ran.startswith(about)}
    return [job for job in cluster.ended() if job.number in mine]


def assert_sound(project: Workspace, capsys) -> None:
    """The whole ledger is as it was written, and the statement follows from it and from the
    records."""
    assert main(["ledger", "verify", "results"]) == 0
    assert main(["verify", "results"]) == 0
    assert "epsilon = 1.0000 at delta = 1e-05" in capsys.readouterr().out
    jobs = Counter(held.job for held in project.held())
    assert set(jobs.values()) == {1}
    assert {held.status for held in project.held()} == {"DONE"}


def test_the_tiny_dag_runs_on_the_cluster(cluster, tmp_path, monkeypatch, capsys):
    project = Workspace(tmp_path / "project", tmp_path / "home", TWO_SHARDS, ON_SLURM, PATIENCE)
    project.create()
    enter(project, monkeypatch)
    project.finish()
    ended, ran = jobs(project, cluster), submitted(project)
    assert {job.state for job in ended} == {"COMPLETED"}
    about = {job.number: ran[job.number].partition("/")[0] for job in ended}
    assert Counter(about.values()) == {
        "group_data_prepare_dataset": 1,
        "rule_extract_features": 4,  # two shards of each part
        "group_merged_merge_features": 2,
        "rule_run_rung_main_0": 1,
        "rule_run_rung_main_1": 1,
        "group_final_evaluate_train_final": 1,
    }
    with_gpu = {about[job.number] for job in ended if cluster.gpus(job.number) == "gres:gpu:1"}
    assert with_gpu == {*about.values()} - {
        "group_data_prepare_dataset",
        "group_merged_merge_features",
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
        yield replace(made, options=ON_SLURM, patience=PATIENCE)


@pytest.fixture(autouse=True)
def _in_project(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a user of its own (tests/conftest.py). Those of the shared project are in its
    folder and home all the same, as what the module's fixtures did was."""
    if "project" in request.fixturenames:
        enter(request.getfixturevalue("project"), monkeypatch)


def score(trial: int) -> str:
    return f"results/main/rungs/0/trials/{trial}/score.json"


def held(project: Workspace, trial: int) -> list[LedgerCharge]:
    wildcards = (("rung", "0"), ("trial", str(trial)))
    return [held for held in project.held() if held.job.wildcards == wildcards]


def start(project: Workspace, *trials: int) -> subprocess.Popen:
    return subprocess.Popen(
        project.command(*map(score, trials)),
        cwd=project.folder,
        env=project.environment(),
        start_new_session=True,
        # A shell's background jobs ignore Ctrl-C, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def begun(project: Workspace, trial: int) -> LedgerCharge:
    """The charge of a trial that has begun to read private data."""
    wait_until(lambda: [each for each in held(project, trial) if each.status == "COMMITTED"])
    (charge,) = held(project, trial)
    return charge


def numbers(cluster, trial: int) -> list[str]:
    return cluster.numbers(f"rule_run_trial_wildcards_main_0_{trial}")


def attempts(project: Workspace, cluster, trial: int) -> list:
    """The jobs of a trial. On a busy machine there may be more of them than a test asks for."""
    return jobs(project, cluster, f"rule_run_trial/main_0_{trial}")


def fates(project: Workspace, cluster, trial: int) -> list[str]:
    """How the attempts at a trial ended."""
    return [job.state for job in attempts(project, cluster, trial)]


def assert_once(project: Workspace, trial: int, charge: LedgerCharge) -> None:
    """What had begun came to its end under the same charge and nonce; its one release is what was
    published."""
    (done,) = held(project, trial)
    assert done.status == "DONE"
    assert (done.token, done.nonce, done.query) == (charge.token, charge.nonce, charge.query)
    (kept,) = (open_home().releases / "tiny" / done.query).iterdir()
    assert (project.folder / score(trial)).read_bytes() == (kept / "score.json").read_bytes()


def requeue(cluster, number: str) -> None:
    """What a preemption does."""
    cluster.tell("scontrol", "requeue", number)
    cluster.run_again_at_once(number)


STRIKES = {
    0: lambda cluster, number: cluster.tell("scancel", number),
    1: lambda cluster, number: cluster.send(number, signal.SIGKILL),
    2: lambda cluster, number: cluster.send(number, signal.SIGSTOP),
    3: lambda cluster, number: requeue(cluster, number),
}


@pytest.fixture(scope="module")
def charges(project, cluster) -> dict[int, LedgerCharge]:
    """One run in which every job is struck after it began, and which mends them all by itself.
    Their charges then."""
    project.configure({"resources": {"runtime": 3}})
    driver = start(project, *STRIKES)
    found = {}
    for trial, strike in STRIKES.items():
        found[trial] = begun(project, trial)
        (number,) = numbers(cluster, trial)
        strike(cluster, number)
    assert driver.wait(PATIENCE) == 0
    return found


def test_a_cancelled_job_is_resumed(project, cluster, charges):
    assert fates(project, cluster, 0)[0] == "CANCELLED"
    assert_once(project, 0, charges[0])


def test_a_killed_job_is_resumed(project, cluster, charges):
    assert fates(project, cluster, 1)[0] == "FAILED"
    assert_once(project, 1, charges[1])


def test_a_job_that_hangs_times_out_and_is_resumed(project, cluster, charges):
    assert fates(project, cluster, 2)[0] == "TIMEOUT"
    assert_once(project, 2, charges[2])


def test_a_job_that_goes_back_to_the_queue_is_resumed(project, cluster, charges):
    assert fates(project, cluster, 3)[0] == "PENDING"
    assert_once(project, 3, charges[3])


@pytest.mark.long
def test_a_job_out_of_memory_runs_again_with_more(project, cluster):
    project.configure({"resources": {"mem_mb": 400, "threads": 4}})
    project.finish(score(4))
    first, *_, last = tried = attempts(project, cluster, 4)
    assert (first.state, last.state) == ("FAILED", "COMPLETED")
    for place, job in enumerate(tried, 1):
        assert job.resources.startswith(f"cpu=4,mem={place * 400}M,")
    assert [each.status for each in held(project, 4)] == ["DONE"]


@pytest.mark.long
def test_a_killed_driver_leaves_a_job_that_ends_beside_its_second_attempt(project, cluster):
    """Both answer one query, so they publish one release."""
    project.configure()
    driver = start(project, 5)
    charge = begun(project, 5)
    (first,) = numbers(cluster, 5)
    cluster.send(first, signal.SIGSTOP)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    assert "locked" in project.run(score(5)).stderr
    project.finish("--unlock")
    driver = start(project, 5)
    wait_until(lambda: len(numbers(cluster, 5)) == 2)
    cluster.send(first, signal.SIGCONT)
    assert driver.wait(PATIENCE) == 0
    wait_until(cluster.is_idle)
    assert len(fates(project, cluster, 5)) > 1
    assert_once(project, 5, charge)


@pytest.mark.long
def test_an_interrupted_run_takes_its_jobs_along_and_the_next_one_resumes_them(project, cluster):
    driver = start(project, 6)
    charge = begun(project, 6)
    driver.send_signal(signal.SIGINT)
    assert driver.wait(PATIENCE) != 0
    wait_until(cluster.is_idle)
    assert fates(project, cluster, 6) == ["CANCELLED"]
    project.finish(score(6))
    assert_once(project, 6, charge)


def test_a_job_whose_node_died_is_resumed_when_a_node_is_back(project, cluster):
    driver = start(project, 7)
    charge = begun(project, 7)
    (number,) = numbers(cluster, 7)
    node = cluster.lose_node(number)
    cluster.bring_node_back(node)
    cluster.run_again_at_once(number)
    assert driver.wait(PATIENCE) == 0
    assert fates(project, cluster, 7)[0] == "NODE_FAIL"
    assert_once(project, 7, charge)


def test_a_job_on_a_node_without_home_fails_before_it_reads(project, cluster, tmp_path):
    said = run_with_another_home(project, cluster, tmp_path / "missing", score(8))
    assert "mounted on this node" in said
    assert not (tmp_path / "missing").exists()
    assert [each.status for each in held(project, 8)] == ["RESERVED"]
    assert not (project.folder / score(8)).exists()


def test_trials_that_run_on_several_nodes_are_charged_once_each_on_one_ledger(
    cluster, tmp_path, monkeypatch
):
    spread = {
        "sweep": {"rungs": [{"epsilon": 0.1, "trials": 3}], "together": False},
        "resources": {"threads": 4},  # a whole node each
    }
    project = Workspace(
        tmp_path / "project", tmp_path / "home", STRUCK | spread, ON_SLURM, PATIENCE
    )
    project.create()
    enter(project, monkeypatch)
    replace(project, options=LOCALLY).finish(*FEATURES)
    project.finish(*map(score, range(3)))
    ran = jobs(project, cluster)
    assert {(job.node, job.state) for job in ran} == {
        (node, "COMPLETED") for node in ("n1", "n2", "n3")
    }
    scored = [each for each in project.held() if each.job.rule == "run_trial"]
    assert [each.status for each in scored] == ["DONE"] * 3
    assert len({each.nonce for each in scored}) == 3
    assert main(["ledger", "verify", "results"]) == 0


@pytest.mark.long
def test_a_job_on_a_node_with_a_home_of_its_own_prepares_no_data(cluster, tmp_path, monkeypatch):
    project = Workspace(
        tmp_path / "project", tmp_path / "home", options=ON_SLURM, patience=PATIENCE
    )
    project.create()
    enter(project, monkeypatch)
    # with a key, as a run on that node would have made it
    foreign = open_home(tmp_path / "foreign")
    said = run_with_another_home(project, cluster, foreign.path, *FEATURES)
    assert "mounted on this node" in said
    assert not list(project.folder.rglob("manifest.h5"))


def run_with_another_home(project: Workspace, cluster, home: Path, *targets: str) -> str:
    """What a run says when the nodes have another home than the machine that started it."""
    cluster.set_environment(DPLADDER_HOME=str(home))
    ended = project.run(*targets, "--retries", "0")
    cluster.set_environment()
    assert ended.returncode == 1
    assert str(home) in ended.stderr
    return ended.stderr


def test_after_all_that_the_run_ends_with_a_sound_ledger_and_a_true_statement(project, capsys):
    replace(project, options=LOCALLY).finish("results/privacy.json")
    assert len(project.held()) == 12
    assert_sound(project, capsys)
