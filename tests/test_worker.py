"""Jobs as forks of a worker: each is what a process of its own would be, and ends with whoever
waits for it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support import ROOT, wait_until

from dpladder.commands.hand_over import hand_over
from dpladder.commands.worker import FOR_TABLES, FOR_TRAINING

LITTLE = ("numpy",)
START = """
import sys
from dpladder.commands import worker
worker.FOR_TABLES, worker.FOR_TRAINING, worker.FOR_REPORT = {tables}, {training}, ()
print(*worker.start_worker(), sep="\\n", flush=True)
sys.stdin.read()
"""


class Worker:
    """A worker, and the process that takes Snakemake's place as its parent."""

    def __init__(self, tables: Sequence[str], training: Sequence[str] = ()) -> None:
        self.parent = subprocess.Popen(
            [sys.executable, "-c", START.format(tables=tables, training=training)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"LEFT_OUT": "1"},
        )
        assert self.parent.stdout
        self.prefix = [self.parent.stdout.readline().strip() for _ in range(4)]

    def start(self, script: Path, threads: int = 1) -> subprocess.Popen[str]:
        command = [*self.prefix, sys.executable, str(script)]
        environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        return subprocess.Popen(command, text=True, cwd=script.parent, env=environment)

    def said(self, script: Path, threads: int = 1) -> str:
        """What a job writes to the file `said` beside its script."""
        assert self.start(script, threads).wait() == 0
        return script.with_name("said").read_text()


@pytest.fixture(scope="module")
def whole() -> Iterator[Worker]:
    made = Worker(FOR_TABLES, FOR_TRAINING)
    yield made
    made.parent.kill()


@pytest.fixture
def light() -> Iterator[Worker]:
    """It has imported little, and may be killed."""
    made = Worker(LITTLE)
    yield made
    made.parent.kill()


def script_in(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    script = folder / "job.py"
    script.write_text(text)
    return script


LOOK = """
import gc, os, signal, sys, threading, tempfile
import numpy, torch, threadpoolctl, snakemake.script, sklearn
print(
    __name__, __file__, sys.argv, sys.path, os.getcwd(), vars(sys.modules["__main__"]) is globals(),
    sorted(os.environ.items()), tempfile.gettempdir(), os.umask(0), threading.active_count(),
    sorted(os.listdir("/proc/self/fd"))[:-1],
    [signal.getsignal(number) for number in (2, 15, 1, 17)], signal.pthread_sigmask(0, []),
    torch.get_num_threads(), gc.isenabled(), gc.get_threshold(),
    sorted((one["filepath"], one["num_threads"]) for one in threadpoolctl.threadpool_info()
           if "torch" in one["filepath"] or "numpy" in one["filepath"]),
    sep="\\n", file=open("said", "w"),
)
"""


@pytest.mark.ci
def test_a_job_finds_what_it_finds_in_a_new_python(
    whole: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # that an earlier test's run has set
        monkeypatch.delenv(name, raising=False)
    script = script_in(tmp_path, LOOK)
    by_worker = whole.said(script, threads=2)
    environment = os.environ | {"OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, script], env=environment, cwd=tmp_path, check=True)
    assert by_worker == (tmp_path / "said").read_text()


DRAW = """
import os, random, secrets, sys, tempfile
from pathlib import Path
import numpy as np
import torch
from dpladder.privacy.accounting.draws import gaussian
from dpladder.privacy.accounting.events import Gaussian, Job, Partition, Spend
from dpladder.privacy.ledger.book import open_ledger, reserve
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.ledger.state import Item, Terms
from dpladder.privacy.release.meter import Meter
sys.path.append({tests!r})
from support import release

terms = Terms("toy", "add_remove", "record", 1, 1e-5, "hash", lifetime_epsilon=1.0)
ledger = open_ledger(open_home(Path("home").resolve()), terms)
spend = Spend("toy", "add_remove", Partition("hash", ("train",)), Gaussian(20.0))
item = Item(Job("main", "run_trial", ()), "question", (spend,))
reserve(ledger, [item])
def noise(meter, folder):
    (folder / "weights").write_bytes(meter.publish("noise", np.zeros(4)).tobytes())
draws = (gaussian("noise", 20.0, 1.0, (4,)),)
outputs = {{"weights": Path("weights")}}
release(ledger, item.job, item.question, "query", item.spends, draws, noise, outputs)
said = [Path("weights").read_bytes().hex(), os.urandom(8).hex(), secrets.token_hex(8)]
said += [str(random.random()), str(np.random.random()), str(torch.rand(1))]
Path("said").write_text("\\n".join(said))
"""


@pytest.mark.ci
def test_the_worker_has_no_thread_but_its_first(whole: Worker, tmp_path: Path) -> None:
    """A fork would lose the others, and wait for ever for what they held. Torch is in it."""
    count = "import os; tasks = os.listdir(f'/proc/{os.getppid()}/task')\n"
    count += "import sys; print(len(tasks), 'torch' in sys.modules, file=open('said', 'w'))"
    script = script_in(tmp_path, count)
    wait_until(lambda: whole.said(script) == "1 True\n")


@pytest.mark.ci
def test_jobs_of_one_worker_draw_different_noise(whole: Worker, tmp_path: Path) -> None:
    """Also where key, question and ledger are the same: two jobs in copies of one home."""
    script_in(tmp_path / "one", DRAW.format(tests=str(ROOT / "tests")))
    prepare = "from pathlib import Path; from dpladder.privacy.ledger.home import open_home; "
    prepare += "open_home(Path('home').resolve())"
    subprocess.run([sys.executable, "-c", prepare], cwd=tmp_path / "one", check=True)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    one, two = (whole.said(tmp_path / name / "job.py").split("\n") for name in ("one", "two"))
    assert len(one) == 6
    assert [first == second for first, second in zip(one, two, strict=True)] == [False] * 6


LEAVE_OUT = """
from dpladder.commands import worker
from dpladder.plan import startup
startup.open_project = lambda: __import__("numpy")
worker._leave_out_what_is_not_used()
startup.open_project()
import numpy
try:
    import pandas
except ImportError:
    print("no pandas")
"""


def test_snakemake_finds_no_pandas_but_a_plug_in_finds_what_it_imports_at_the_parse() -> None:
    said = subprocess.run([sys.executable, "-c", LEAVE_OUT], stdout=subprocess.PIPE, text=True)
    assert (said.returncode, said.stdout) == (0, "no pandas\n")


SLEEP = """
import os, time
from pathlib import Path
Path("begun").write_text(str(os.getpid()))
{body}
time.sleep(60)
Path("done").touch()
"""


def job_of(worker: Worker, folder: Path, body: str = "") -> tuple[subprocess.Popen[str], int]:
    """A job that has begun: what stands for it, and itself."""
    started = worker.start(script_in(folder, SLEEP.format(body=body)))
    begun = folder / "begun"
    wait_until(lambda: begun.exists() and begun.read_text())
    return started, int(begun.read_text())


def has_ended(process: int) -> bool:
    """Whether no such process runs; one that nobody waited for has ended too."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


def worker_of(job: int) -> int:
    return int(Path(f"/proc/{job}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("killed", ["stand-in", "job", "worker", "snakemake"])
def test_who_kills_any_of_them_kills_the_job(light: Worker, tmp_path: Path, killed: str) -> None:
    started, job = job_of(light, tmp_path)
    of = {"stand-in": started.pid, "job": job, "worker": worker_of(job)}
    os.kill(of.get(killed, light.parent.pid), signal.SIGKILL)
    assert started.wait(30) == -signal.SIGKILL
    wait_until(lambda: has_ended(job), 30)
    assert not (tmp_path / "done").exists()


def test_a_worker_goes_on_after_a_job_was_killed(light: Worker, tmp_path: Path) -> None:
    started, job = job_of(light, tmp_path / "one")
    worker = worker_of(job)
    os.kill(job, signal.SIGTERM)
    assert started.wait(30) == -signal.SIGTERM
    assert not has_ended(worker)
    following, job = job_of(light, tmp_path / "two")
    assert job != following.pid


def test_an_interrupt_reaches_the_job_which_ends_as_it_likes(tmp_path: Path, light: Worker) -> None:
    """A terminal interrupts all of its processes at once."""
    body = "import signal; signal.signal(signal.SIGINT, lambda *_: os._exit(7))"
    started, job = job_of(light, tmp_path / "one", body)
    for process in (worker_of(job), started.pid, job):
        os.kill(process, signal.SIGINT)
    assert started.wait(30) == 7
    assert light.start(script_in(tmp_path / "two", "import os; os._exit(3)")).wait(30) == 3


@pytest.mark.parametrize(
    ("ends", "code"),
    [("", 0), ("raise ValueError", 1), ("import os; os._exit(5)", 5), ("print('said')", 0)],
)
def test_a_job_ends_with_its_own_code(light: Worker, tmp_path: Path, ends: str, code: int) -> None:
    assert light.start(script_in(tmp_path, ends)).wait(30) == code


def test_without_a_worker_a_command_runs_by_itself(light: Worker, tmp_path: Path) -> None:
    script = script_in(tmp_path, "import os; open('parent', 'w').write(str(os.getppid()))")
    light.parent.kill()
    light.parent.wait()
    assert light.start(script).wait(30) == 0
    assert (tmp_path / "parent").read_text() == str(os.getpid())


def test_a_job_does_not_get_what_snakemake_has_left_out_of_its_environment(
    light: Worker, tmp_path: Path
) -> None:
    """The worker began with what Snakemake began with, such as the name of a module around it."""
    script = script_in(
        tmp_path, "import os; print('LEFT_OUT' in os.environ, file=open('said', 'w'))"
    )
    assert light.said(script) == "False\n"


def test_no_process_of_another_user_is_handed_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a worker has ended anybody may listen by its name, and environments hold secrets."""
    with socket.socket(socket.AF_UNIX) as listener, ThreadPoolExecutor(1) as pool:
        listener.bind("\0dpladder-of-another-user")
        listener.listen()
        heard = pool.submit(lambda: listener.accept()[0].recv(1))
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert hand_over("dpladder-of-another-user", "job.py") is None
        assert heard.result(30) == b""


def test_a_worker_that_cannot_import_leaves_jobs_to_themselves(tmp_path: Path) -> None:
    without = Worker(["no_such_module"])
    script = script_in(tmp_path, "import os; open('parent', 'w').write(str(os.getppid()))")
    assert without.start(script).wait(30) == 0
    assert (tmp_path / "parent").read_text() == str(os.getpid())
    without.parent.kill()
