"""Nothing private leaves without a mechanism: from different private data, the same public files.

Whole workflows run on two datasets that differ in all that is private, with a noise so large that
it swallows every sum it is added to and the same in both. What the mechanisms release is then the
same, to the last bit, whatever the data is. All else that anyone outside the private folder and
home can see must be the same too: what differs went around the noise. What cannot be the same
between any two runs is masked below, each with its reason.
"""

from __future__ import annotations

import base64
import compileall
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import yaml
from PIL import Image

import dpladder

ROOT = Path(__file__).parents[2]
SOURCES = Path(dpladder.__file__).parents[1]  # a planted bug lies in a copy of them
CLASSES = ["cat", "dog", "owl"]
RECORDS, BAD = 7919, 1013  # of the second dataset: unlike any number that a run has reason to print
CANARY = "canary"

# float64 carries 53 bits: a sum of a few thousand vanishes beside noise of this size. The stream of
# a draw follows its name alone, and not home's secret key. (What one noised step leaves swallows a
# later step as well: that every step gets its noise is for the engine's own tests to hold.) No
# noise is below zero, and such counts are all equal: that stops no run whose classes may be rare.
SWALLOW = """

def _stream(self, name, index):
    return hmac.digest(b"public", encode([name, index]), "sha256")


SecretNoise.stream = _stream
_gaussian = gaussian


def gaussian(stream, shape):
    return abs(_gaussian(stream, shape)) * 2.0**90
"""

MASKS = {
    # Dates, durations, the names of log files. Run time is outside the guarantee, and listed there.
    rb"\d{4}-\d\d-\d\d[T ]\d\d:?\d\d:?\d\d(\.\d+)?"
    rb"|\[\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}\]": b"<time>",
    rb"(Elapsed time: )[\d:.]+|(\"(start|end|run)time\": )[\d.]+": rb"\1\2<time>",
    # How often Snakemake looked for work while jobs ran.
    rb"Select jobs to execute\.\.\.\n": b"",
    # Snakemake draws a random id for each run and a random name for each job's script, and notes a
    # job's place in memory.
    rb"(Workflow ID: )[0-9a-f-]{36}|(\"job_hash\": )\d+"
    rb"|(scripts/tmp)\w{8}(?=\.)": rb"\1\2\3<random>",
}
# In the statement and the anchors: the ledger's newest entry holds a random nonce behind its
# digest, and id and seal follow from it.
ANCHORS = rb"(\"(sha256|id|seal)\": \")[0-9a-f]{64}"

OUT_OF_SIGHT = ("private", "home", "source")
Write = Callable[[Path], None]


@dataclass(frozen=True)
class Run:
    """One run of the workflow, and all that it leaves in sight."""

    folder: Path
    exit_code: int

    def sight(self) -> dict[str, bytes]:
        """Everything outside the private folder and home by its name, folders included."""
        public = [
            path
            for path in self.folder.rglob("*")
            if path.relative_to(self.folder).parts[0] not in OUT_OF_SIGHT
        ]
        return {
            str(path.relative_to(self.folder)): path.read_bytes() if path.is_file() else b""
            for path in public
        }

    def masked(self) -> dict[str, bytes]:
        seen = {
            self._mask(name.encode()): (name, content) for name, content in self.sight().items()
        }
        return {masked.decode(): self._comparable(*file) for masked, file in seen.items()}

    def _comparable(self, name: str, content: bytes) -> bytes:
        masked = self._mask(content)
        if name == "results/report.html":  # the statement's id stands on it
            return re.sub(rb"<code>[0-9a-f]{64}</code>", b"<anchor>", masked)
        if name == "results/privacy.md":  # and its seal
            return re.sub(rb"(\| (id|seal) \| )`[0-9a-f]{64}`", rb"\1<anchor>", masked)
        if name in ("results/privacy.json", "results/ledger.json"):
            return re.sub(ANCHORS, rb"\1<anchor>", masked)
        if name == "results/report.privacy.json":  # digests of these, its own id and seal
            return re.sub(rb"[0-9a-f]{64}", b"<anchor>", masked)
        if name == "report.html":  # it holds the page twice, as it opens and as it may be saved
            pages = rb"(?<=filename=report\.html;base64,)[\w+/=]+"
            masked = re.sub(
                pages,
                lambda page: self._comparable("results/report.html", base64.b64decode(page[0])),
                re.sub(rb"(&lt;code&gt;)[0-9a-f]{64}", rb"\1<anchor>", masked),
            )
            return self._without_links(masked)
        return masked

    def _without_links(self, report: bytes) -> bytes:
        """Snakemake's own report, its rules sorted and its graph without links.

        Rules are listed, and one job of a rule is taken for all to draw its links, in the order of
        places in memory.
        """
        linked = re.sub(rb'\{"target": \d+, "source": \d+, [^{}]*\}(, )?', b"", report)
        return b"".join(sorted(re.split(rb'(?=\{"rule")|(?<=\})', linked)))

    def _mask(self, content: bytes) -> bytes:
        content = content.replace(str(self.folder).encode(), b"<here>")
        for pattern, instead in MASKS.items():
            content = re.sub(pattern, instead, content)
        return content


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workflow with a noise that swallows the data."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copy(ROOT / "Snakefile", folder)
    for source in (ROOT / "workflow", ROOT / "envs", SOURCES):
        shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    with (folder / "src/dpladder/privacy/release/noise.py").open("a") as file:
        file.write(SWALLOW)
    compileall.compile_dir(folder / "src", quiet=1)
    return folder


# One job at a time, and always the same next. Of jobs that it ranks the same, Snakemake starts the
# one at the lower place in memory: they are sorted here before it ranks them.
IN_ORDER = ("--cores", "1")
SNAKEMAKE = """
from snakemake.cli import main
from snakemake.scheduling.greedy import Scheduler


def select_jobs(self, jobs, *others):
    return _select(self, sorted(jobs, key=lambda job: [*map(str, job.output)]), *others)


_select, Scheduler.select_jobs = Scheduler.select_jobs, select_jobs
main()
"""


def run_both(
    clone: Path, folder: Path, config: dict[str, Any], sources: tuple[Write, Write], *args: str
) -> list[Run]:
    """The same config on two private datasets, side by side."""

    def run(name: str, write: Write) -> Run:
        own = folder / name
        (own / "source").mkdir(parents=True)
        write(own / "source")
        for path in (*(own / "source").rglob("*"), own / "source"):
            os.utime(path, (1e9, 1e9))  # when data was written is public: it decides what is due
        (own / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
        profile = ("--workflow-profile", clone / "workflow/profiles/default")
        workflow = ("--snakefile", clone / "Snakefile", "--configfile", "config.yaml", *profile)
        settings = {
            "DPLADDER_HOME": str(own / "home"),
            "PYTHONPATH": str(clone / "src"),
            # Snakemake's sets, and with them the report, in the same order: what lies at places in
            # memory lies elsewhere where one run compiles what the other finds compiled.
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        with (own / "stdout").open("wb") as out, (own / "stderr").open("wb") as err:
            ended = subprocess.run(
                [sys.executable, "-c", SNAKEMAKE, *workflow, *IN_ORDER, *args],
                cwd=own,
                env=os.environ | settings,
                stdout=out,
                stderr=err,
                start_new_session=True,  # no terminal, so no progress bar on it
                timeout=900,
                check=False,
            )
        return Run(own, ended.returncode)

    with ThreadPoolExecutor(2) as pool:
        return [*pool.map(run, ("plain", "other"), sources)]


def config_of(source: str) -> dict[str, Any]:
    return {
        "dataset": {
            "lineage": "tiny",
            "source": source,
            "nominal_size": 240,
            "classes": CLASSES,
            "rare": 0.01,
        },
        "features": {"model": "none", "dtype": "float32"},
        "privacy": {"epsilon": 1.0, "delta": 1e-5, "lifetime": {"epsilon": 8.0}},
        "sweep": {
            "rungs": [{"epsilon": 0.1, "trials": 2}, {"epsilon": 0.2, "trials": 2}],
            "search": {"steps": [2, 8]},
        },
        "resources": {"threads": 1},
    }


def assert_same_sight(runs: list[Run]) -> None:
    plain, other = (run.masked() for run in runs)
    differing = {name for name in plain.keys() | other.keys() if plain.get(name) != other.get(name)}
    assert not differing, "\n".join(
        f"{name}: {first_difference(plain, other, name)}" for name in sorted(differing)
    )
    assert runs[0].exit_code == runs[1].exit_code


def first_difference(plain: dict[str, bytes], other: dict[str, bytes], name: str) -> str:
    if name not in plain or name not in other:
        return "is there only once"
    both = plain[name], other[name]
    at = next(
        (at for at, (a, b) in enumerate(zip(*both, strict=False)) if a != b), min(map(len, both))
    )
    return " | ".join(repr(content[max(at - 40, 0) : at + 40]) for content in both)


def assert_no_canary(run: Run) -> None:
    """As it is, masks off: a canary shows in no name and no byte, nor does a count."""
    counts = rb"(?<![\w.])(%d|%d)(?![\w.])" % (RECORDS, BAD)
    for name, content in run.sight().items():
        assert CANARY not in name + named_in_base64(name)
        assert CANARY.encode() not in content, name
        assert not re.search(counts, content), name


def named_in_base64(name: str) -> str:
    """What a file of Snakemake's metadata is about."""
    if not name.startswith(".snakemake/metadata/"):
        return ""
    return base64.b64decode(Path(name).name).decode()


def plain_matrix(folder: Path) -> None:
    """A few well-formed records that are easy to learn."""
    rng = np.random.default_rng(0)
    places = rng.integers(0, 3, 300)
    features = np.eye(3, 16)[places] * 4 + rng.normal(size=(300, 16))
    ids = [f"id {index}" for index in range(300)]
    np.savez(
        folder / "data.npz", features=features, labels=np.array(CLASSES)[places], ids=ids, users=ids
    )


def other_matrix(folder: Path) -> None:
    """Many more, mostly of one class, impossible to learn; broken ones, copies, users of many
    records, odd names."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(RECORDS, 16))
    features[0:BAD:4], features[1:BAD:4], features[2:BAD:4] = np.nan, np.inf, 1e300
    labels = np.array([*CLASSES, *["owl"] * 17])[rng.integers(0, 20, RECORDS)].astype("U20")
    labels[3:BAD:4] = f"{CANARY}-label"
    ids = [f"{CANARY}-id-{index % (RECORDS - 100)}" for index in range(RECORDS)]
    users = [f"{CANARY}-user-{index % 1000}" for index in range(RECORDS)]
    np.savez(folder / "data.npz", features=features, labels=labels, ids=ids, users=users)


@pytest.fixture(scope="module")
def whole(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Two whole runs, from the data to the report."""
    config = config_of("npz:source/data.npz")
    config["dataset"]["unit"] = {"by": "user", "cap": 3}
    runs = run_both(
        clone,
        tmp_path_factory.mktemp("whole"),
        config,
        (plain_matrix, other_matrix),
        *("--report-after-run", "--report", "report.html"),
    )
    for run in runs:
        assert run.exit_code == 0, (run.folder / "stderr").read_text()
    return runs


@pytest.mark.ci
def test_a_run_shows_the_same_whatever_the_private_data_is(whole: list[Run]) -> None:
    assert {"results/privacy.json", "results/report.html", "report.html"} <= whole[0].sight().keys()
    assert_same_sight(whole)


def nothing_that_counts(folder: Path) -> None:
    """Not one label is a class: whoever counts without noise would stop here."""
    plain_matrix(folder)
    arrays = dict(np.load(folder / "data.npz"))
    np.savez(folder / "data.npz", **arrays | {"labels": np.array(["cow"] * 300)})


def nobody(folder: Path) -> None:
    """The last record has left."""
    plain_matrix(folder)
    arrays = dict(np.load(folder / "data.npz"))
    np.savez(folder / "data.npz", **{name: rows[:0] for name, rows in arrays.items()})


@pytest.mark.ci
@pytest.mark.parametrize("other", [nothing_that_counts, nobody])
def test_whether_a_run_stops_follows_from_noised_counts_alone(
    clone: Path, tmp_path: Path, other: Write
) -> None:
    """Somebody who may choose configs can put the data on any line, where one person decides."""
    config = config_of("npz:source/data.npz")
    config["features"]["mean"] = {"epsilon": 0.1, "radius": 10.0}
    runs = run_both(
        clone,
        tmp_path,
        config,
        (plain_matrix, other),
        *("results/main/mean/mean.safetensors", "results/main/census/census.json"),
    )
    assert [run.exit_code for run in runs] == [0, 0], (runs[1].folder / "stderr").read_text()
    assert_same_sight(runs)


def people(number: int) -> Write:
    """The first of two thousand people; and a public test source, the same for all."""

    def write(folder: Path) -> None:
        places = np.random.default_rng(0).integers(0, 3, 2000)
        features = np.eye(3, 16)[places] * 4 + np.random.default_rng(1).normal(size=(2000, 16))
        arrays = {
            "features": features,
            "labels": np.array(CLASSES)[places],
            "ids": np.array([f"person {index}" for index in range(2000)]),
        }
        np.savez(folder / "data.npz", **{name: rows[:number] for name, rows in arrays.items()})
        arrays["features"] = -features  # of nobody who is private
        np.savez(folder / "public.npz", **{name: rows[:60] for name, rows in arrays.items()})

    return write


@pytest.mark.ci
def test_no_exit_code_tells_whether_one_more_person_is_there(clone: Path, tmp_path: Path) -> None:
    """Each config lays the line a little higher, across 2,000 people: without noise 1,999 would be
    stopped where nominal_size is 4,049 or 4,050, and 2,000 would not (data/stops.py: fewer than
    half of it, less 25)."""
    config = config_of("npz:source/data.npz")
    config["dataset"] |= {"split": {"test": 0.0}, "public_test": "npz:source/public.npz"}
    names = [f"line_{nominal}" for nominal in range(4046, 4055)]
    config["experiments"] = {
        name: {"dataset": {"nominal_size": int(name.removeprefix("line_"))}} for name in names
    }
    targets = [f"results/{name}/census/census.json" for name in names]
    runs = run_both(clone, tmp_path, config, (people(2000), people(1999)), "--keep-going", *targets)
    assert [run.exit_code for run in runs] == [0, 0], (runs[1].folder / "stderr").read_text()
    assert_same_sight(runs)


@pytest.mark.ci
def test_no_name_and_no_count_of_private_records_shows(whole: list[Run]) -> None:
    assert_no_canary(whole[1])


@pytest.mark.ci
def test_private_files_are_closed_to_others(whole: list[Run]) -> None:
    for run in whole:
        private = run.folder / "private"
        modes = {
            path.lstat().st_mode & 0o077
            for path in (private, *private.rglob("*"))
            if not path.is_symlink()
        }
        assert modes == {0}


# As many folders in both: a digest of their times stands in the job's params.
COLOURS = {"cat": "red", "dog": "green", "owl": "blue", "more": "white"}


def plain_images(folder: Path) -> None:
    for name, colour in COLOURS.items():
        (folder / name).mkdir()
        Image.new("RGB", (40, 30), colour).save(folder / name / "picture.png")


def other_images(folder: Path) -> None:
    """More of them, some cut short or damaged, so that decoders have something to say; a class that
    is none."""
    plain_images(folder)
    (folder / "more").rename(folder / f"{CANARY}-class")
    (folder / "dog" / f"{CANARY}.png").write_bytes((folder / "dog/picture.png").read_bytes()[:60])
    for number, compression in enumerate(("tiff_lzw", "tiff_deflate", "jpeg")):
        path = folder / "cat" / f"{CANARY}-{number}.tif"
        pixels = np.random.default_rng(number).integers(0, 256, (40, 30, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path, compression=compression)
        sound = path.read_bytes()
        path.write_bytes(sound[:40] + b"\xff" * 20 + sound[60:])
        path.with_stem(f"{CANARY}-{number}-sound").write_bytes(sound)


@pytest.mark.long
def test_images_that_cannot_be_read_show_nowhere(clone: Path, tmp_path: Path) -> None:
    config = config_of("folder:source")
    config["dataset"]["split"] = {"test": 0.001}
    config["features"] = {"model": "efficientnet_lite0", "weights": "bundled", "image_size": 32}
    config["features"]["mean"] = {"epsilon": 0.1, "radius": 10.0}
    runs = run_both(
        clone, tmp_path, config, (plain_images, other_images), "results/main/mean/mean.safetensors"
    )
    assert [run.exit_code for run in runs] == [0, 0], (runs[1].folder / "stderr").read_text()
    assert_same_sight(runs)
    assert_no_canary(runs[1])
    said = [
        run.folder / "private/tiny/diagnostics/extract_features-main-train-0-1.txt" for run in runs
    ]
    assert [path.stat().st_size > 0 for path in said] == [False, True], (
        "libtiff spoke of the other images"
    )


def broken_file(records: int, broken: int) -> Write:
    """Of many records, one that cannot be read from the disk."""

    def write(folder: Path) -> None:
        rng = np.random.default_rng(records)
        path = folder / "data.h5"
        with h5py.File(path, "w") as file:
            features = file.create_dataset(
                "features", data=rng.normal(size=(records, 16)), chunks=(1, 16), fletcher32=True
            )
            file["labels"] = rng.integers(0, 3, records)
            file["ids"] = [f"{CANARY}-{index}" for index in range(records)]
            place = features.id.get_chunk_info_by_coord((broken, 0)).byte_offset
        content = bytearray(path.read_bytes())
        content[place] ^= 1
        path.write_bytes(content)

    return write


LEAK = """

def prepare_dataset(task):
    raise OSError(open("source/data.h5", "rb").read()[-200:])
"""


def uneven_columns(records: int, labels: int) -> Write:
    def write(folder: Path) -> None:
        with h5py.File(folder / "data.h5", "w") as file:
            file["features"] = np.random.default_rng(0).normal(size=(records, 16))
            file["labels"] = np.zeros(labels, np.int64)

    return write


@pytest.mark.ci
@pytest.mark.parametrize(
    ("sources", "planted", "reason"),
    [
        (
            (broken_file(40, 7), broken_file(RECORDS, BAD)),
            LEAK,
            "an error that nobody foresaw; details are in private/tiny/diagnostics/",
        ),
        (
            (uneven_columns(40, 41), uneven_columns(RECORDS, BAD)),
            "",
            "Give every record one value in each.",
        ),
    ],
    ids=["unforeseen", "foreseen"],
)
def test_a_failed_run_shows_the_same_whatever_made_it_fail(
    sources: tuple[Write, Write], planted: str, reason: str, clone: Path, tmp_path: Path
) -> None:
    failing = shutil.copytree(clone, tmp_path / "clone")
    with (failing / "src/dpladder/jobs/prepare_dataset.py").open("a") as file:
        file.write(planted)
    runs = run_both(failing, tmp_path, config_of("hdf5:source/data.h5"), sources)
    assert [run.exit_code for run in runs] == [1, 1]
    assert_same_sight(runs)
    assert_no_canary(runs[1])
    assert reason in (runs[0].folder / "logs/main/prepare_dataset.log").read_text()
