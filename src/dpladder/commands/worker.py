"""Snakemake, and a worker beside it: a process that has imported what jobs need, and forks them.

    python -m dpladder.commands.worker [arguments of snakemake ...]

Most of a small job is imports. So the worker imports while Snakemake still parses, and each job is
a fork of it: a process with an exit code, logs and noise of its own. The worker reads no config and
no data, and what a job writes to memory is that job's copy. So nothing private passes from one job
to another. It has no thread either, which a fork would lose; libraries start theirs in the jobs.

Snakemake knows nothing of this: for each job it starts `hand_over.py`, and whoever kills that kills
the job. Linux ends the worker with Snakemake, and the job with the worker. Elsewhere, and where
there is no worker, jobs are started as ever.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import os
import secrets
import select
import shlex
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, cast

from threadpoolctl import ThreadpoolController

from dpladder.commands.arguments import DRY
from dpladder.commands.hand_over import is_same_user
from dpladder.plan.installation import SAY

HAND_OVER = Path(__file__).with_name("hand_over.py")
# What jobs import, as far as it serves most of them, in the order in which jobs come: the first
# begin before torch is there.
FOR_TABLES = (
    *(f"dpladder.jobs.{name}" for name in ("run", "release", "prepare_dataset", "merge_features")),
    *(f"dpladder.jobs.{name}" for name in ("extract_features", "count_units", "estimate_mean")),
    *("dpladder.data.tables", "pyarrow.pandas_compat", "pandas", "snakemake.script"),
)
FOR_TRAINING = (
    *("torch", "dpladder.methods.dp_gd.train", "dpladder.learn.curator", "dpladder.learn.moments"),
    *(f"dpladder.jobs.{name}" for name in ("train_final", "run_trial", "fit_radius", "evaluate")),
)
FOR_REPORT = (
    *(f"dpladder.jobs.{name}" for name in ("compose_privacy", "summarise", "write_report")),
    *("dpladder.report.budget_figure", "dpladder.report.curves_figure", "matplotlib.pyplot"),
)
THREADS = "OMP_NUM_THREADS"  # Snakemake sets it, as others, to the threads of a job
WITHOUT_THREADS = {
    **dict.fromkeys((THREADS, "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # of pyarrow's memory
}
AT_START = frozenset(os.environb)  # Snakemake may leave some of these out later on
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


def main() -> None:
    """Run Snakemake to its end, its jobs as forks of a worker."""
    command = "" if DRY & set(sys.argv) else shlex.join(start_worker())
    _leave_out_what_is_not_used()
    gc.set_threshold(50_000)  # what Snakemake makes stays: to look through it is in vain
    atexit.register(gc.freeze)
    from snakemake.cli import main as run_snakemake
    from snakemake.shell import shell

    # Snakemake fills in what stands in braces
    shell.prefix(f"set -euo pipefail; exec {command.replace('{', '{{').replace('}', '}}')} ")
    run_snakemake(sys.argv[1:])


def start_worker() -> list[str]:
    """Start a worker that ends with this process.

    Returns:
        What stands before a command, `python script`, for the worker to run it.
    """
    name = f"dpladder-{secrets.token_hex(16)}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")  # known to the kernel alone, so no file is left behind
        listener.listen(socket.SOMAXCONN)
        listener.setblocking(False)
        parent = os.getpid()
        if os.fork() == 0:
            _work(listener, parent)
    return [sys.executable, "-IS", str(HAND_OVER), name]


def _leave_out_what_is_not_used() -> None:
    """Keep Snakemake from loading what takes half of its start: clients of the web, for paths that
    are addresses; and pandas, for a report on SLURM, where no worker is, and to see whether params
    are tables. That comes after the parse, in which a plug-in may load what it likes."""
    from dpladder.plan import startup

    report = ModuleType("snakemake_executor_plugin_slurm.efficiency_report")
    vars(report)["create_efficiency_report"] = no_such_module = cast(ModuleType, None)
    sys.modules |= {report.__name__: report, "smart_open.http": no_such_module}
    open_project = startup.open_project

    def open_and_leave_out(*arguments: Any) -> startup.Parsed:
        parsed = open_project(*arguments)
        for name in ("numpy", "pandas"):
            sys.modules.setdefault(name, no_such_module)
        return parsed

    startup.open_project = open_and_leave_out  # type: ignore[assignment]


def _work(listener: socket.socket, parent: int) -> NoReturn:
    """Be the worker: for the first jobs with what those of tables need, then forks with more.

    Args:
        listener: where jobs are handed over.
        parent: Snakemake, with which it ends.
    """
    _end_with(parent)
    # A terminal interrupts a group of processes. Jobs heed that, each by itself.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    _keep_open(listener)
    os.environ |= WITHOUT_THREADS
    os.environ.pop(SAY, None)
    gc.disable()  # each job enables it
    _load(FOR_TABLES)
    _serve(listener, FOR_TRAINING, FOR_REPORT)


def _start_successor(
    listener: socket.socket, modules: Sequence[str], *later: Sequence[str]
) -> socket.socket:
    """Fork a worker that imports more, and then takes all further jobs.

    Returns:
        A socket, closed once it takes them.
    """
    done, ready = socket.socketpair()
    first = os.getpid()
    if os.fork() == 0:
        _end_with(first)
        _keep_open(listener, ready)
        _load(modules)
        ready.close()
        _serve(listener, *later)
    ready.close()
    return done


def _keep_open(*sockets: socket.socket) -> None:
    """Close all that a fork has open but its standard streams and these."""
    signal.set_wakeup_fd(-1)
    to_keep = {0, 1, 2, *(one.fileno() for one in sockets)}
    for descriptor in {*map(int, os.listdir("/proc/self/fd"))} - to_keep:
        with contextlib.suppress(OSError):  # it listed them
            os.close(descriptor)


def _load(modules: Sequence[str]) -> None:
    """Import what jobs need; end this process where something of it has a thread."""
    for module in modules:
        import_module(module)
    if len(os.listdir("/proc/self/task")) > 1:
        os._exit(1)
    gc.freeze()  # so that collecting garbage in a job copies no page of memory


def _serve(listener: socket.socket, *later: Sequence[str]) -> NoReturn:
    """Fork a job for each command that is handed over, and answer with its exit code.

    Args:
        listener: where jobs are handed over.
        *later: what a successor imports meanwhile, and what its own one does.
    """
    libraries = ThreadpoolController()  # to find them takes as long as a small job
    woken, wakes = socket.socketpair()
    wakes.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes.fileno())
    clients: dict[int, socket.socket] = {}
    successor = _start_successor(listener, *later) if later else None
    open_doors = [listener, successor] if successor else [listener]
    while True:
        ready, _, _ = select.select([woken, *open_doors, *clients.values()], [], [])
        if woken in ready:
            woken.recv(4096)
        for job, client in [*clients.items()]:
            ended, status = os.waitpid(job, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                with contextlib.suppress(OSError), clients.pop(job):
                    client.send(bytes([128 - code if code < 0 else code]))
            elif client in ready:  # it has nothing more to say, so it was killed
                os.kill(job, signal.SIGKILL)
        if successor in ready:
            for door in open_doors:
                door.close()
            open_doors.clear()
        elif listener in ready:
            try:
                client, _ = listener.accept()
            except BlockingIOError:  # the other process took it
                continue
            if not (command := _command_of(client)):
                client.close()
                continue
            worker = os.getpid()
            if job := os.fork():
                clients[job] = client
                with contextlib.suppress(OSError):
                    client.send(b"\0")
                continue
            _keep_open()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _end_with(worker)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
            _run(libraries, *command)


def _command_of(client: socket.socket) -> list[bytes]:
    """A script, its working directory and its environment, as `hand_over.py` sends them; empty
    where it was killed, or another user's process is at the door."""
    if not is_same_user(client):
        return []
    try:
        size = int.from_bytes(client.recv(8, socket.MSG_WAITALL), "big")
        message = client.recv(size, socket.MSG_WAITALL)
    except OSError:
        return []
    return message.split(b"\0") if message and len(message) == size else []


def _run(
    libraries: ThreadpoolController, script: bytes, folder: bytes, *environment: bytes
) -> NoReturn:
    """Run a script in this process as a new Python would."""
    code = 1
    try:
        os.chdir(folder)
        for name in {*AT_START, *map(os.fsencode, WITHOUT_THREADS)}:
            os.environb.pop(name, None)
        # libraries have set others
        os.environb.update(pair.partition(b"=")[::2] for pair in environment)
        tempfile.tempdir = None  # the environment may name another
        _start_libraries(libraries, int(os.environ[THREADS]))
        gc.enable()
        path = os.fsdecode(script)
        module = ModuleType("__main__")
        module.__file__ = path
        sys.modules["__main__"] = module
        sys.argv, sys.path[0] = [path], os.path.dirname(path)
        exec(compile(Path(path).read_bytes(), path, "exec"), vars(module))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _start_libraries(libraries: ThreadpoolController, threads: int) -> None:
    """Give the libraries that were imported this job's threads, and randomness from the system, as
    each has in a new process. Python's own generator starts anew by itself, and noise is drawn from
    none of them."""
    import numpy as np

    libraries.limit(limits=threads)
    np.random.seed()
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(threads)
        torch.seed()


def _end_with(parent: int) -> None:
    """Have Linux kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


if __name__ == "__main__":
    main()
