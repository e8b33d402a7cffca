"""A real SLURM cluster of three nodes on one machine, from the distribution's packages, for as long
as the tests of this folder run."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support import wait_until

# jobs unset SLURM_CONF, so it must lie where SLURM looks by itself
CONFIG = Path("/etc/slurm/slurm.conf")
GPUS = Path("/etc/slurm/gres.conf")
NODES = ("n1", "n2", "n3")
NODE = (
    "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=16000 "
    "Gres=gpu:4 State=UNKNOWN"
)
FIRST_PORT = 16818
MARK = "# written by dpladder's tests"
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged")
CLUSTER = """{mark}
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
MailProg=/bin/true
SlurmctldPort=16817
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog={folder}/prolog
SwitchType=switch/none
MpiDefault=none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
GresTypes=gpu
EnforcePartLimits=ALL
ReturnToService=2
MinJobAge=3600
KillWait=3
SlurmdTimeout=30
PropagateResourceLimits=NONE
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill,UsePss
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobcomp.txt
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=01:00:00 State=UP
"""


@dataclass(frozen=True)
class Ended:
    """What SLURM remembers of a job that is over."""

    number: str
    state: str
    resources: str  # as cpu=1,mem=1000M,node=1,billing=1
    node: str


@dataclass(frozen=True)
class Cluster:
    """Daemons are children of this process, and die with it however that ends."""

    folder: Path
    daemons: dict[str, subprocess.Popen] = field(default_factory=dict)

    def start(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as out:
            started = ["setpriv", "--pdeathsig", "TERM", *arguments]
            self.daemons[name] = subprocess.Popen(
                started, stdout=out, stderr=out, start_new_session=True
            )

    def stop(self, name: str, how: int = signal.SIGTERM) -> None:
        daemon = self.daemons.pop(name)
        daemon.send_signal(how)
        try:
            daemon.wait(timeout=120)
        except subprocess.TimeoutExpired:
            daemon.kill()

    def tell(self, *words: str) -> str:
        """Run one of SLURM's commands."""
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=300).stdout

    def ended(self) -> list[Ended]:
        """The completion log: one line for each time a job ended, oldest first."""
        log = self.folder / "jobcomp.txt"
        lines = log.read_text("utf-8").splitlines() if log.is_file() else []
        said = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines]
        return [
            Ended(line["JobId"], line["JobState"], line["Tres"], line["NodeList"]) for line in said
        ]

    def numbers(self, about: str) -> list[str]:
        """The jobs that wait or run for something, by the comment that they were submitted with."""
        listed = self.tell("squeue", "--noheader", "--states=PD,R", "--format=%i %k").splitlines()
        return [number for number, comment in map(str.split, listed) if comment == about]

    def state(self, number: str) -> str:
        return self.tell("squeue", "--noheader", f"--job={number}", "--format=%t").strip()

    def run_again_at_once(self, number: str) -> None:
        """SLURM lets a job that went back to the queue wait for two minutes."""
        wait_until(lambda: self.state(number) == "PD")
        self.tell("scontrol", "update", f"jobid={number}", "starttime=now")

    def send(self, number: str, how: int) -> None:
        """A signal to every process of a job."""
        kill(processes("environ", f"SLURM_JOB_ID={number}\0"), how)

    def node_of(self, number: str) -> str:
        return self.tell("squeue", "--noheader", f"--job={number}", "--format=%N").strip()

    def lose_node(self, number: str) -> str:
        """The node that a job runs on dies, and the job with it."""
        node = self.node_of(number)
        self.stop(node, signal.SIGKILL)
        kill(processes("cmdline", f"slurmstepd: [{number}."), signal.SIGKILL)
        self.tell("scontrol", "update", f"nodename={node}", "state=down", "reason=died")
        self.send(number, signal.SIGKILL)
        return node

    def bring_node_back(self, node: str) -> None:
        """It takes jobs again once it has registered (ReturnToService)."""
        self.start(node, "slurmd", "-D", "-N", node)
        told = ("sinfo", "--noheader", f"--nodes={node}", "--format=%t")
        wait_until(lambda: not self.tell(*told).startswith("down"))

    def set_environment(self, *nodes: str, **variables: str) -> None:
        """What these nodes, or all, put into the environment of every job from now on."""
        lines = [f"export {name}={value}\n" for name, value in variables.items()]
        for node in nodes or NODES:
            (self.folder / f"environment.{node}").write_text("".join(lines), "utf-8")

    def is_idle(self) -> bool:
        said = subprocess.run(
            ["sinfo", "--noheader", "--format=%t"], capture_output=True, text=True, check=False
        )
        return said.stdout.strip() == "idle"

    def gpus(self, number: str) -> str:
        """What a job asked for beside processors and memory."""
        listed = self.tell(
            "squeue", "--noheader", "--states=all", f"--job={number}", "--Format=tres-per-job"
        )
        return listed.strip()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    if reason := unfit():
        pytest.skip(reason)
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        configure(made)
        try:
            start_daemons(made)
        except (AssertionError, OSError) as error:
            pytest.skip(f"SLURM's daemons do not come up on this machine: {error}")
        yield made
        made.tell("scancel", "--user=root")
        wait_until(made.is_idle)
    finally:
        for name in reversed(list(made.daemons)):
            made.stop(name)
        for path in (CONFIG, GPUS):
            path.unlink(missing_ok=True)


def start_daemons(made: Cluster) -> None:
    if not answers("munge", "--no-input"):
        Path("/run/munge").mkdir(exist_ok=True)
        shutil.chown("/run/munge", "munge", "munge")
        made.start("munged", "--reuid=munge", "--regid=munge", "--clear-groups", "munged", "-F")
        wait_until(lambda: answers("munge", "--no-input"), 60)
    made.start("slurmctld", "slurmctld", "-D")
    for node in NODES:
        made.start(node, "slurmd", "-D", "-N", node)
    wait_until(made.is_idle, 60)


def unfit() -> str | None:
    """Why no cluster can be started here."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return "a machine has one SLURM: make test-slurm"
    if os.geteuid() != 0:
        return "SLURM's daemons must be started by root"
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        return (
            f"SLURM is not installed ({', '.join(missing)} missing): apt-get install slurm-wlm "
            "munge"
        )
    if CONFIG.exists() and (
        not CONFIG.read_text("utf-8").startswith(MARK) or answers("scontrol", "ping")
    ):
        return f"{CONFIG} belongs to another cluster"
    return None


def configure(cluster: Cluster) -> None:
    for name in ("state", *(f"spool/{node}" for node in NODES)):
        (cluster.folder / name).mkdir(parents=True)
    cluster.set_environment()
    prolog = cluster.folder / "prolog"
    prolog.write_text(f"#!/bin/sh\ncat {cluster.folder}/environment.$SLURMD_NODENAME\n", "utf-8")
    prolog.chmod(0o755)
    CONFIG.parent.mkdir(exist_ok=True)
    host = socket.gethostname().partition(".")[0]
    nodes = "\n".join(
        NODE.format(name=name, host=host, port=FIRST_PORT + place)
        for place, name in enumerate(NODES)
    )
    CONFIG.write_text(
        CLUSTER.format(mark=MARK, host=host, folder=cluster.folder, nodes=nodes), "utf-8"
    )
    # Devices that every machine has: they are counted and handed out, and nobody opens them.
    GPUS.write_text(
        "".join(f"Name=gpu File=/dev/{name}\n" for name in ("null", "zero", "full", "random"))
    )


def processes(kind: str, mark: str) -> list[int]:
    """The processes of which /proc says something."""
    return [
        int(process.name)
        for process in Path("/proc").glob("[0-9]*")
        if mark.encode() in content(process / kind)
    ]


def kill(these: list[int], how: int) -> None:
    for process in these:
        with contextlib.suppress(ProcessLookupError):  # ended with the one before it
            os.kill(process, how)


def content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # ended since it was listed
        return b""


def answers(*words: str) -> bool:
    return subprocess.run(words, capture_output=True, check=False, timeout=300).returncode == 0
