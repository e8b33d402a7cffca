"""What a GPU computes, checked against a CPU and measured: run by tools/gpu.sh.

Each check runs in a process of its own, so that one that fails or hangs leaves the others alone.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

CPU_ONLY = os.environ.get("DEVICE") == "cpu"
Check = Callable[[], None]


def use_gpu() -> Any:
    """The device that is checked; from here on jobs ask for a GPU."""
    from dpladder.config.model import Resources
    from dpladder.learn.records import prepare

    if not CPU_ONLY:
        Resources.model_fields["gpu"].default = 1
        Resources.model_rebuild(force=True)
    device = prepare(Resources(threads=4))
    assert CPU_ONLY or device.type == "cuda", "no GPU is here"
    return device


def seconds(run: Callable[[], object], rounds: int = 7) -> float:
    """The median time of a run, after one that warms up."""
    import torch

    times = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        run()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return median(times[1:])


def machine() -> None:
    import torch

    card = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    print(f"{card}; PyTorch {torch.__version__}; Python {sys.version.split()[0]}")


# Places: whether a record is rounded in one way wherever it stands.


def places() -> None:
    """Every product that a gradient hangs on, with one record in every place."""
    device = use_gpu()
    for kind, cases in (
        ("head's logits", logits_cases(device)),
        ("float64 logits", exact_cases(device)),
        ("steady layer", steady_cases(device)),
        ("attention", attention_cases(device)),
        ("convolution", convolution_cases(device)),
    ):
        found = [unlike(*case) for case in cases]
        for line in filter(None, found):
            print(f"  {kind}, {line}")
        print(f"{kind}: {found.count('')} of {len(found)} cases alike in every place")


Case = tuple[str, Callable[[Any], Any], Any, Any]
"""A name, a map of rows, one row, and the rows among which it is put."""


def unlike(name: str, rows_of: Callable[[Any], Any], one: Any, others: Any) -> str:
    """In how many places `one` comes out otherwise than in the first; nothing where in none."""
    import torch

    count = len(others)
    tried = range(0, count, max(1, count // 127))
    wanted, bad, worst = None, 0, 0.0
    for place in tried:
        rows = others.clone()
        rows[place] = one
        with torch.no_grad():
            found = rows_of(rows)[place]
        wanted = found if wanted is None else wanted
        if not torch.equal(found, wanted):
            bad += 1
            worst = max(worst, float((found - wanted).abs().max() / wanted.abs().max()))
    return f"{name}, {count} rows: {bad} of {len(tried)} places, by {worst:.1e}" if bad else ""


def draw(device: Any, *shape: int) -> Any:
    import torch

    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(device)


def logits_cases(device: Any) -> Iterator[Case]:
    from dpladder.learn import linear

    for width, outputs in ((1280, 10), (1280, 320), (1281, 10), (64, 3), (769, 2)):
        for chunk in (64, 1024, linear.CHUNK[device.type]):
            product = linear.logits_by(draw(device, outputs, width), chunk)

            def rows_of(x: Any, product: Any = product) -> Any:
                return product(x).T

            one, others = draw(device, 1, width)[0], draw(device, chunk, width)
            yield f"{width} to {outputs}", rows_of, one, others


def exact_cases(device: Any) -> Iterator[Case]:
    for width, outputs in ((1280, 10), (1281, 3)):
        head = draw(device, outputs, width).double()

        def rows_of(x: Any, head: Any = head) -> Any:
            return x @ head.T

        one, others = draw(device, 1, width)[0].double(), draw(device, 192, width).double()
        yield f"{width} to {outputs}", rows_of, one, others


def steady_cases(device: Any) -> Iterator[Case]:
    from dpladder.network.layers import Steady

    for width in (3, 7, 66, 97, 192, 769, 1281):
        for outputs in (1, 2, 3, 10, 64, 192):
            layer = Steady(width, outputs).to(device)
            for count in (8, 24, 40, 56, 64, 72, 104, 192, 256):
                one, others = draw(device, 1, width)[0], draw(device, count, width)
                yield f"{width} to {outputs}", layer, one, others


def attention_cases(device: Any) -> Iterator[Case]:
    from torch.nn.functional import scaled_dot_product_attention

    def rows_of(x: Any) -> Any:
        return scaled_dot_product_attention(x, x, x)

    for size in (8, 16, 64):
        for count in (8, 24, 40, 64):
            shape = (3, 37, size)
            yield f"heads of {size}", rows_of, draw(device, *shape), draw(device, count, *shape)


def convolution_cases(device: Any) -> Iterator[Case]:
    import torch

    for channels, size in ((32, 12), (112, 6), (320, 3)):
        layer = torch.nn.Conv2d(channels, channels, 3, padding=1).to(device)
        for count in (8, 24, 64):
            shape = (channels, size, size)
            yield f"{channels} channels", layer, draw(device, *shape), draw(device, count, *shape)


def neighbours_sums() -> None:
    """By how many bounds one record more moves a clipped sum, with huge tied logits."""
    import torch

    from dpladder.learn import linear
    from dpladder.learn.data import Data
    from dpladder.learn.interface import Constants
    from dpladder.learn.records import load

    device = use_gpu()
    random, worst = np.random.default_rng(1), 0.0
    for width, classes, count in ((1280, 10, 3000), (97, 3, 40_000), (769, 10, 3000)):
        features = random.normal(size=(count + 1, width)).astype(np.float32)
        features[:, 0] = 1e6
        labels = random.integers(0, classes, count + 1)
        constants = Constants(n0=count, classes=classes, dimension=width)
        chunk = linear.CHUNK[device.type]
        weights = np.repeat(random.normal(size=(1, 1, width)), classes, axis=1) * 1e4
        weights[..., 1:] += random.normal(size=(1, classes, width - 1)) * 1e-6
        found = []
        for rows in (slice(1, None), slice(None)):
            records = load(
                Data(features[rows], labels[rows]), constants, device, chunk=chunk, memory_mb=4000
            )
            head = torch.from_numpy(weights).to(device)
            found.append(linear.clipped_sum(records, head, 1.0, records.chunks()))
        worst = max(worst, float((found[1] - found[0]).norm()))
    print(f"one record more moves a sum of gradients by {worst:.6f} bounds at most (at most 1.001)")


# Learners: against the CPU's golden record.


def golden() -> None:
    from golden import record
    from golden.cases import of_learners

    use_gpu()
    kept, count, worst = record.load()["cases"], 0, []
    for case in of_learners():
        if "kappa" in case.name or "price" in case.name or case.long:
            continue
        found = record.computed(case)
        count += 1
        differ = list(record.differences(kept[case.name], found))
        if differ and differ != ["output"]:
            print(f"  {case.name}: {', '.join(differ)} differ")
        if "output" in differ:
            pairs = zip(kept[case.name]["output"], found["output"], strict=True)
            sizes = [(np.abs(np.subtract(a, b)).max(), np.abs(a).max()) for a, b in pairs]
            worst.append((max(apart / max(most, 1e-300) for apart, most in sizes), case.name))
    for apart, name in sorted(worst, reverse=True)[:8]:
        print(f"  {name}: weights differ by {apart:.1e} of the largest")
    print(f"golden record: {count - len(worst)} of {count} cases within 1e-5 of the CPU's")


WORKERS = min(8, len(os.sched_getaffinity(0)))
ATTACKED = ("network", "gradients", "perceptron", "curvatures", "losses")


def attacks() -> None:
    """`dpladder audit` of kinds of queries, by several processes.

    What a GPU may do otherwise than a CPU, such as adding up, needs few runs to be seen. Noise is
    drawn by the CPU, whose audits have more.
    """
    from dpladder_audit import kinds

    each = [
        (name, attack, number)
        for name in ATTACKED
        for attack, one in enumerate(kinds.ATTACKS[name])
        for number, _ in enumerate(one.mechanisms(name))
    ]
    began = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(WORKERS, use_gpu) as pool:
        for done, problems in enumerate(pool.imap_unordered(run_attack, each), 1):
            if problems or done % 20 == 0:
                print(f"  {done} after {time.monotonic() - began:.0f} s {problems}", flush=True)
    print(f"audit: {len(each)} attacks in {time.monotonic() - began:.0f} s")


def run_attack(which: tuple[str, int, int]) -> str:
    """A table of one attack's findings where one is bad."""
    from dpladder_audit import kinds
    from dpladder_audit.engine.attack import run_audit
    from dpladder_audit.engine.findings import table

    name, attack, number = which
    mechanism = list(kinds.ATTACKS[name][attack].mechanisms(name))[number]
    if not mechanism.tight:
        mechanism = replace(mechanism, effort=0.05)
    try:
        report = run_audit((mechanism,), b"a public key for audits on a GPU", among=200)
    except Exception:  # what fails is a finding, and others go on
        return f"{mechanism.name}: {traceback.format_exc(limit=-3)}"
    return "" if report.ok else table(report)


# Speed.


def step() -> None:
    """A private step of heads, its floor, and Opacus."""
    import torch
    from bench_learn import opacus_ghost

    from dpladder.learn import linear
    from dpladder.learn.data import Data
    from dpladder.learn.interface import Constants
    from dpladder.learn.records import load

    device = use_gpu()
    count, width, classes = (50_000, 1280, 10) if not CPU_ONLY else (4096, 1280, 10)
    random = np.random.default_rng(0)
    features = random.standard_normal((count, width), dtype=np.float32) / width**0.5
    data = Data(features, random.integers(0, classes, count))
    constants = Constants(n0=count, classes=classes, dimension=width)
    chunk = linear.CHUNK[device.type]
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    records = load(data, constants, device, chunk=chunk, memory_mb=4000)
    x, y = records.features[:, 0], records.labels
    for trials in (1, 32):
        weights = torch.zeros(trials, classes, width, dtype=torch.float64, device=device)
        flat = weights.float().view(-1, width)
        residual = torch.randn(trials * classes, len(x), device=device)

        def products(kind: Any, flat: Any = flat, residual: Any = residual) -> None:
            flat, residual, exact = flat.to(kind), residual.to(kind), x.to(kind)
            flat @ exact.T
            residual @ exact

        ours = partial(linear.clipped_sum, records, weights, 1.0, records.chunks())
        taken, floor = seconds(ours), seconds(partial(products, torch.float32))
        exact = seconds(partial(products, torch.float64))
        print(
            f"{count} x {width} x {classes}, {trials} together: a step {1e3 * taken:.2f} ms, its "
            f"products in float32 {1e3 * floor:.2f} ms, in float64 {1e3 * exact:.2f} ms: "
            f"{taken / floor:.2f} floors"
        )
    peer = seconds(partial(opacus_ghost, x, y))
    ours = partial(linear.clipped_sum, records, weights[:1], 1.0, records.chunks())
    print(f"Opacus, ghost clipping: {1e3 * peer:.2f} ms, {peer / seconds(ours):.1f} times ours")
    if device.type == "cuda":
        print(f"peak memory: {torch.cuda.max_memory_allocated() / 1e9:.2f} GB")


def finetuning() -> None:
    import bench_finetune

    sys.argv = ["bench_finetune", "--records", "64" if CPU_ONLY else "4096", "--rounds", "1"]
    sys.argv += ["--gpu", "0" if CPU_ONLY else "1", "--threads", "4", "--cases"]
    sys.argv += ["ViT tiny, adapters", "ViT tiny, norm and bias", "ViT tiny, last block"]
    sys.argv += ["Lite0, last block", "Lite0, norm and bias", "Lite0, adapters"]
    bench_finetune.main()


def extraction() -> None:
    """Values against the CPU's, speed against a plain loop, and the whole rule with its file."""
    import bench_extract

    multiprocessing.set_start_method("fork", force=True)  # of the plain loop's workers
    use_gpu()
    bench_extract.compare(256 if CPU_ONLY else 19_968, 1 if CPU_ONLY else 3)
    rule()


def rule() -> None:
    """Extract JPEGs of a folder by the rule's own function, its HDF5 file included."""
    from PIL import Image

    from dpladder.config.dataset_sections import Dataset
    from dpladder.config.features_sections import Features
    from dpladder.data.cache import open_cache
    from dpladder.data.datasets import open_source
    from dpladder.data.extract import extract
    from dpladder.data.prepare import Keys, prepare

    count = 256 if CPU_ONLY else 20_000
    keys = Keys(*(bytes([purpose]) * 32 for purpose in range(4)))
    digits, random = open_source("mnist5k"), np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(count):
            place = folder / "images" / str(int(digits.labels[number % 5000]))
            place.mkdir(parents=True, exist_ok=True)
            pixels = np.asarray(digits.read(number % 5000)).copy()
            pixels[0, :4] = random.integers(0, 256, 4)
            image = Image.fromarray(pixels).convert("RGB").resize((96, 96))
            image.save(place / f"{number}.jpg")
        dataset = Dataset(
            lineage="bench",
            source=f"folder:{folder / 'images'}",
            classes=tuple(str(digit) for digit in range(10)),
            nominal_size=count,
        )
        prepare(dataset, keys, folder / "manifest.h5", folder / "prepare.jsonl")
        for turn in ("first", "again"):
            began = time.perf_counter()
            extract(
                folder / "manifest.h5",
                Features(image_size=96),
                "train",
                folder / f"{turn}.h5",
                folder / f"{turn}.jsonl",
                root=folder / turn,
                units_key=keys.units,
                cache_key=keys.cache,
                threads=len(os.sched_getaffinity(0)),
            )
            taken = time.perf_counter() - began
            rows = len(open_cache(folder / f"{turn}.h5", keys.cache).labels)
            print(
                f"rule extract_features, {turn}: {rows} JPEGs in {taken:.1f} s: "
                f"{rows / taken:.0f} a second, network, file and seal included"
            )


def demo() -> None:
    """The demo, from data to statement."""
    import subprocess

    root = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory() as name:
        began = time.perf_counter()
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile")]
        cores = str(len(os.sched_getaffinity(0)))
        command += ["--directory", name, "--cores", cores, "--configfile"]
        command += [str(root / "config" / "config.yaml"), "--resources", "gpu=1"]
        if not CPU_ONLY:
            command += ["--config", 'resources={"gpu": 1}']
        done = subprocess.run(command, capture_output=True, text=True, cwd=root)
        print(
            f"make demo's workflow: exit {done.returncode} in {time.perf_counter() - began:.0f} s"
        )
        summary = Path(name) / "results" / "main" / "summary.csv"
        print(
            summary.read_text() if summary.exists() else done.stdout[-1500:] + done.stderr[-3000:]
        )


CHECKS: dict[str, tuple[Check, int]] = {
    "machine": (machine, 60),
    "places": (places, 60),
    "sums": (neighbours_sums, 45),
    "golden": (golden, 60),
    "step": (step, 45),
    "extraction": (extraction, 60),
    "finetuning": (finetuning, 60),
    "demo": (demo, 600 if CPU_ONLY else 100),
    "attacks": (attacks, 900 if CPU_ONLY else 150),
}


def run_check(name: str) -> None:
    try:
        CHECKS[name][0]()
    except BaseException:  # a check that fails is a finding, and others go on
        traceback.print_exc()


def chosen(names: list[str]) -> Iterator[str]:
    for name in names or CHECKS:
        if name not in CHECKS:
            raise SystemExit(f"gpu_checks: no check {name!r}. There are: {', '.join(CHECKS)}.")
        yield name


def main() -> None:
    context = multiprocessing.get_context("spawn")
    for name in [*chosen(sys.argv[1:])]:
        print(f"\n## {name}", flush=True)
        began = time.monotonic()
        process = context.Process(target=run_check, args=(name,))
        process.start()
        process.join(CHECKS[name][1])
        if process.is_alive():
            process.kill()
            print(f"stopped after {CHECKS[name][1]} s")
        print(f"({time.monotonic() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
