"""What the papers behind dpladder ask, a command each, and those of them made whose needs are met
here.

python tools/papers.py [KEY ...] [--list] [--all] [--cores 2] [--folder papers] [--data data]
                       [--pictures docs/papers]

Rows are those of docs/reproductions.md. Without keys those are made that no page shows a figure of
yet, with `--all` the others too. `--pictures docs/papers` renews that page's pictures from what was
made. Each is made in a folder and a home of its own, in turn; one that
fails stops none of the others. `--data`: where the folders of images or texts lie that cannot be
fetched. What was made, what was left out and why, and where it lies: papers/papers.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
OWN = Path("tools")
EXAMPLES = Path("config") / "examples"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


MEASURED, REHEARSED, NOT_RUN = "measured", "rehearsed", "not run"


@dataclass(frozen=True)
class Need:
    """`met`: whether it is there, given the folder of data that cannot be fetched."""

    about: str
    met: Callable[[Path], bool]


@dataclass(frozen=True)
class Row:
    """`asks`: the rows of docs/reproductions.md that it answers, by their first cell. `shown`: the
    page and the heading that have its figures, with its command beside them. `rehearsed`:
    tests/workflow/test_rehearsals.py runs it at a small size. `pictures`: what docs/papers shows of
    it, by name, and where in the row's folder it is made."""

    key: str
    asks: tuple[str, ...]
    command: tuple[str, ...]
    needs: tuple[Need, ...] = ()
    shown: str = ""
    rehearsed: bool = False
    pictures: Mapping[str, str] = field(default_factory=dict)

    @property
    def status(self) -> str:
        if self.shown:
            return MEASURED
        return REHEARSED if self.rehearsed else NOT_RUN

    @property
    def configs(self) -> list[Path]:
        return [ROOT / word for word in self.command if word.endswith(".yaml")]

    @property
    def written(self) -> str:
        return " ".join(self.command)


@dataclass(frozen=True)
class Outcome:
    row: Row
    state: str  # made, failed, left out
    about: str


def has_gpu(_: Path) -> bool:
    import torch

    return torch.cuda.is_available()


@cache
def reached(address: str) -> bool:
    try:
        urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=10).close()
    except urllib.error.HTTPError:
        return True  # whoever refuses is there
    except OSError:
        return False
    return True


def fetched(address: str, folder: Path, _: Path) -> bool:
    """Whether it lies here since an earlier run, or can be had."""
    return (folder.is_dir() and any(folder.iterdir())) or reached(address)


def lies(name: str, data: Path) -> bool:
    return (data / name).is_dir()


def published(name: str, address: str) -> Need:
    """A data set that torchvision fetches."""
    host = address.split("/")[2]
    return Need(f"{name} (from {host})", partial(fetched, address, CACHE / "dpladder" / name))


def weights(name: str) -> Need:
    folder = CACHE / "huggingface" / "hub" / f"models--{name.replace('/', '--')}"
    return Need(
        f"weights {name} (from huggingface.co)", partial(fetched, "https://huggingface.co", folder)
    )


def by_hand(name: str) -> Need:
    return Need(f"data/{name}", partial(lies, name))


GPU = Need("a GPU", has_gpu)
TORONTO = "https://www.cs.toronto.edu/~kriz/cifar.html"
CIFAR10, CIFAR100 = published("CIFAR10", TORONTO), published("CIFAR100", TORONTO)
STL10 = published("STL10", "https://ai.stanford.edu/~acoates/stl10/")
MNIST = published("MNIST", "https://ossci-datasets.s3.amazonaws.com/mnist/")
VIT_LARGE = weights("timm/vit_large_patch16_224.augreg_in21k")
VIT_BASE = weights("timm/vit_base_patch16_224.augreg_in21k")
LARGE = (
    VIT_LARGE,
    weights("timm/beit_large_patch16_224.in22k_ft_in22k"),
    weights("timm/beitv2_large_patch16_224.in1k_ft_in22k"),
    weights("timm/convnext_xlarge.fb_in22k"),
)


def config(*names: str) -> tuple[str, ...]:
    """The workflow on an example, on an overlay beside this file, or for a target."""
    folder = {True: OWN, False: EXAMPLES}
    words = (
        str(folder[name.startswith("on_")] / name) if name.endswith(".yaml") else name
        for name in names
    )
    return "dpladder", "run", *words


def script(name: str, *options: str) -> tuple[str, ...]:
    return "python", str(OWN / name), *options


GAP = "the gap to the oracle that the search closes, against random search (its RERR)"
SEVERAL = "accuracy of CIFAR-10 and CIFAR-100 at several totals"
BACKBONES = "backbones × data sets × totals (its tables 4, 9, 17)"
SHIFT = "distribution shift"
GROUPS = "training on some domains or regions, tested on others; the worst group"
TEXTS = "fine-tuning language models, several tasks"
ORDERS = "DP-Adam, DP-LS, DP-Newton, DP-FC at several ε"
SQUARES = "the same at large ε, against non-private least squares"
PARTS = "momentum, averages, free step, bias, clip, clipping, schedule, one at a time"
FREE = "HyFreeDP against a grid search and against D-Adaptation and Prodigy"
VISION = "vision transformers, all weights or norms and biases"
SUBSETS = "their two methods against Papernot & Steinke"
WHOLE = "MNIST, CIFAR-10, IMDB"
ROUNDS = (
    "the privacy cost of their test against the number of candidates; rounds, with the step halved "
    "at a miss and no cap"
)

# As they stand in docs/reproductions.md. With `dpladder run`, `snakemake --configfile` does the
# same from the clone.
ROWS: Sequence[Row] = (
    Row(
        "paper",
        ("the method as printed, Algorithms 1 to 3",),
        config("paper.yaml"),
        shown="measurements/reproductions.md#the-method-as-printed",
    ),
    Row(
        "earlier",
        ("binary search in two sweeps, the second from (ε₂/ε₁)·r₁ on",),
        script(
            "compare_hpo.py",
            *("mnist5k", "--no-ablations", "--epsilons", "1", "4", "--methods"),
            *("linear_scaling_line", "linear_scaling_binary"),
        ),
        shown="measurements/reproductions.md#the-method-as-printed",
    ),
    Row(
        "scaling",
        ("r against ε with its line, accuracy over η and T, accuracy over ε, in one picture",),
        script("scaling.py", "digits", "--figure", "scaling.svg"),
        pictures={"scaling.svg": "scaling.svg"},
        shown="measurements/reproductions.md#the-line-at-cpu-size",
    ),
    Row(
        "searches",
        (GAP, FREE, SUBSETS),
        script("compare_hpo.py", "--no-ablations"),
        shown="measurements/searches.md#what-it-is-worth",
    ),
    Row(
        "searches-cifar10-laptop",
        (GAP,),
        script(
            "compare_hpo.py",
            *("cifar10-auto", "--centre", "bought", "--no-ablations", "--repeats", "2"),
            *("--epsilons", "0.1", "1", "4", "--methods", "prior", "ladder", "random_search"),
            *("random_search_uniform", "linear_scaling_line", "linear_scaling_binary"),
        ),
        (by_hand("cifar10"),),
        shown="measurements/searches.md#cifar-10-whole",
    ),
    Row(
        "searches-cifar10",
        (GAP,),
        config("compare_hpo.yaml", "on_cifar10.yaml", "compare_hpo"),
        (GPU, CIFAR10, VIT_LARGE),
        rehearsed=True,
    ),
    Row(
        "searches-cifar100",
        (GAP,),
        config("compare_hpo.yaml", "on_cifar10.yaml", "on_cifar100.yaml", "compare_hpo"),
        (GPU, CIFAR100, VIT_LARGE),
        rehearsed=True,
    ),
    Row(
        "searches-imagenet",
        (GAP,),
        config(
            "compare_hpo.yaml",
            "on_cifar10.yaml",
            "on_imagenet.yaml",
            "on_imagenet_searches.yaml",
            "compare_hpo",
        ),
        (GPU, by_hand("imagenet"), VIT_LARGE),
        rehearsed=True,
    ),
    Row(
        "ablations",
        ("degree of the fit, points, draws, decompositions",),
        script("compare_hpo.py", "mnist5k", "--epsilons", "1", "--methods", "prior", "ladder"),
        shown="measurements/searches.md#the-ladders-parts",
    ),
    Row("cifar10", (SEVERAL,), config("cifar10.yaml"), (GPU, CIFAR10, VIT_LARGE), rehearsed=True),
    Row(
        "cifar10-laptop",
        (SEVERAL,),
        config("cifar10_laptop.yaml"),
        (by_hand("cifar10"),),
        shown="measurements/reproductions.md#cifar-10-on-a-laptop",
    ),
    Row(
        "cifar100",
        (SEVERAL,),
        config("cifar100.yaml"),
        (GPU, CIFAR100, VIT_LARGE),
        rehearsed=True,
    ),
    Row(
        "grid",
        (BACKBONES,),
        config("grid.yaml"),
        shown="measurements/reproductions.md#networks-data-sets-totals-and-no-privacy",
    ),
    Row(
        "grid-cifar",
        (BACKBONES,),
        config("cifar_grid.yaml"),
        (GPU, CIFAR10, CIFAR100, *LARGE),
        rehearsed=True,
    ),
    Row(
        "figures",
        (
            "the best r, and accuracy, over η and T",
            "the gap between an r and the best one against accuracy; r against ε with the frontier "
            "of good ones",
            "r against ε, and the line through it",
            "distance of the weights from where they start",
        ),
        config("research.yaml", "on_figures.yaml"),
        pictures={"frontier.svg": "results/uniform/figures/gap.svg"},
        shown="measurements/reproductions.md#the-line-at-cpu-size",
    ),
    Row(
        "open",
        ("accuracy against ε, with the gap to ε = ∞", "distribution shift"),
        script("shift.py", "--records", "1800", "--size", "64"),
        shown="measurements/reproductions.md#networks-data-sets-totals-and-no-privacy",
    ),
    Row(
        "batches",
        ("batch size at equal ε",),
        script("batch_size.py", "mnist5k"),
        shown="measurements/learners.md#batch-sizes",
    ),
    Row(
        "parts",
        (PARTS,),
        script("parts.py", "mnist5k", "digits"),
        shown="measurements/reproductions.md#one-part-at-a-time",
    ),
    Row(
        "shift",
        (SHIFT,),
        config("shift.yaml"),
        shown="measurements/reproductions.md#networks-data-sets-totals-and-no-privacy",
        pictures={"shift.svg": "results/main/figures/shift.svg"},
    ),
    Row(
        "shift-private",
        (SHIFT,),
        config("other_people.yaml"),
        shown="measurements/reproductions.md#networks-data-sets-totals-and-no-privacy",
    ),
    Row(
        "shift-cifar",
        (SHIFT,),
        config("cifar_shift.yaml"),
        (GPU, CIFAR10, STL10, VIT_LARGE),
        rehearsed=True,
    ),
    Row(
        "domains",
        (GROUPS,),
        script("domains.py"),
        shown="measurements/reproductions.md#training-on-one-domain",
    ),
    Row(
        "hospitals",
        (GROUPS,),
        config("hospitals.yaml"),
        (GPU, by_hand("hospitals"), VIT_LARGE),
        rehearsed=True,
    ),
    Row(
        "texts-workflow",
        (TEXTS,),
        config("text.yaml"),
        shown="measurements/reproductions.md#networks-data-sets-totals-and-no-privacy",
    ),
    Row(
        "texts",
        (TEXTS,),
        script("compare_hpo.py", "bible", "--no-ablations"),
        shown="measurements/searches.md#what-it-is-worth",
    ),
    Row(
        "texts-sst2",
        (TEXTS,),
        script("depths.py", "sst2", "--repeats", "1"),
        (by_hand("glue"),),
        shown="measurements/reproductions.md#sst-2-on-a-laptop",
    ),
    Row(
        "reviews",
        (TEXTS, WHOLE),
        config("reviews.yaml"),
        (GPU, by_hand("reviews"), weights("FacebookAI/roberta-base")),
        rehearsed=True,
    ),
    Row(
        "texts-glue",
        (TEXTS,),
        config("glue.yaml"),
        (GPU, by_hand("glue"), weights("FacebookAI/roberta-base")),
        rehearsed=True,
    ),
    Row(
        "texts-squad",
        (TEXTS,),
        config("squad.yaml"),
        (GPU, by_hand("squad"), weights("FacebookAI/roberta-base")),
        rehearsed=True,
    ),
    Row(
        "subsets",
        ("training on subsets; models of disjoint parts combined (its appendix A.1)",),
        script("subsets.py", "mnist5k"),
        shown="measurements/reproductions.md#fewer-records-and-models-of-disjoint-parts",
    ),
    Row(
        "time",
        ("run time", "overhead in time"),
        script("overhead.py"),
        shown="measurements/reproductions.md#run-time",
    ),
    Row(
        "learners",
        (ORDERS, FREE, "features by the number of layers or channels"),
        script("compare_learners.py", "mnist5k-112"),
        shown="measurements/learners.md#learners-measured",
    ),
    Row(
        "learners-cifar100",
        (ORDERS, SQUARES),
        config("cifar_learners.yaml"),
        (GPU, CIFAR100, VIT_LARGE),
        rehearsed=True,
    ),
    Row(
        "learners-imagenet",
        (ORDERS, SQUARES),
        config("cifar_learners.yaml", "on_imagenet.yaml"),
        (GPU, by_hand("imagenet"), VIT_LARGE),
        rehearsed=True,
    ),
    Row(
        "squares",
        (SQUARES,),
        script("squares.py", "mnist5k-112", "digits"),
        shown="measurements/reproductions.md#least-squares-at-large-totals",
    ),
    Row(
        "several",
        ("several labels for each record",),
        script("several_labels.py"),
        shown="measurements/learners.md#records-of-several-classes",
    ),
    Row(
        "links",
        ("the sigmoid loss, its biases from -log(m - 1) on, and from -10",),
        script("links.py"),
        shown="measurements/learners.md#learners-measured",
    ),
    Row(
        "moments",
        ("1, 10 and 100 steps; α or η beside λ; ε below 0.5",),
        script("second_moments.py", "mnist5k-112", "--figure", "second_moments.svg"),
        pictures={"second_moments.svg": "second_moments.svg"},
        shown="measurements/reproductions.md#steps-two-parameters-at-once-and-small-totals",
    ),
    Row(
        "vision",
        (VISION,),
        script("finetune.py", "--kappas", "0.7"),
        shown="measurements/learners.md#training-the-network-itself",
    ),
    Row(
        "vision-free",
        (VISION,),
        script("finetune.py", "--learner", '{"name": "hyfree_finetune"}'),
        shown="measurements/learners.md#training-the-network-itself",
    ),
    Row(
        "vision-small",
        (VISION,),
        script("small_vit.py"),
        shown="measurements/reproductions.md#a-small-vision-transformer",
    ),
    Row(
        "vision-vit",
        (VISION,),
        config("finetune_vit.yaml"),
        (GPU, CIFAR10, VIT_BASE),
        rehearsed=True,
    ),
    Row(
        "dynamics",
        ("learning rate and losses over steps; noise split between gradient and losses",),
        script("dynamics.py", "mnist5k", "--figure", "dynamics.svg"),
        pictures={"dynamics.svg": "dynamics.svg"},
        shown="measurements/reproductions.md#hyfreedps-dynamics-and-its-noise",
    ),
    Row(
        "hyfree",
        ("the method as printed, and what each part is worth",),
        script("hyfree_parts.py", "mnist5k-112", "digits"),
        shown="measurements/reproductions.md#hyfreedp-as-published",
    ),
    Row(
        "joint",
        (FREE,),
        script("joint.py"),
        shown="measurements/searches.md#networks-and-clip-and-batch-with-κ",
    ),
    Row(
        "prices",
        ("ε of the whole by Rényi accounting",),
        script("price_searches.py"),
        shown="measurements/privacy.md#private-searches",
    ),
    Row("whole", (WHOLE,), config("subset_search.yaml"), (MNIST, CIFAR10), rehearsed=True),
    Row(
        "rounds",
        (ROUNDS,),
        script("count_rounds.py", "--figure", "rounds.svg"),
        pictures={"rounds.svg": "rounds.svg"},
        shown="measurements/reproductions.md#ding--wus-rounds-and-their-price",
    ),
    Row(
        "simulations",
        ("simulations with non-private training on disjoint parts",),
        script("simulate_tests.py", "digits"),
        shown="measurements/reproductions.md#ding--wus-tests-without-private-training",
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "keys", nargs="*", metavar="KEY", help="rows to make, by the names that --list shows"
    )
    parser.add_argument("--list", action="store_true", help="print every row, and make none")
    parser.add_argument("--all", action="store_true", help="also those whose figures a page shows")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "papers", help="where all of it is written"
    )
    parser.add_argument("--data", type=Path, default=ROOT / "data")
    parser.add_argument("--pictures", type=Path, help="where pictures of the page are renewed")
    asked = parser.parse_args()
    known = {row.key: row for row in ROWS}
    if unknown := [key for key in asked.keys if key not in known]:
        parser.error(f"no row is called {', '.join(unknown)}. They are {', '.join(known)}.")
    rows = [known[key] for key in asked.keys] or [
        row for row in ROWS if asked.all or row.status != MEASURED
    ]
    if asked.list:
        print("\n".join(listed(ROWS)))
        return 0
    outcomes = made(rows, asked.folder.absolute(), asked.data.absolute(), asked.cores)
    if asked.pictures:
        shown(outcomes, asked.folder, asked.pictures)
    return any(outcome.state == "failed" for outcome in outcomes)


def shown(outcomes: Sequence[Outcome], folder: Path, pictures: Path) -> None:
    """Copies the pictures of what was made."""
    for row in (outcome.row for outcome in outcomes if outcome.state == "made"):
        for name, made_at in row.pictures.items():
            shutil.copyfile(folder / row.key / made_at, pictures / name)


def listed(rows: Sequence[Row]) -> list[str]:
    """One row's lines after the other's: what it asks, what it needs, its command."""
    lines = []
    for row in rows:
        needs = ", ".join(need.about for need in row.needs) or "PyPI alone"
        lines += [f"{row.key} ({row.status}): {'; '.join(row.asks)}"]
        lines += [f"    needs {needs}", f"    {row.written}"]
    return lines


def made(rows: Sequence[Row], folder: Path, data: Path, cores: int) -> list[Outcome]:
    """All of them in turn; the table is written after each, so that whoever looks sees how far it
    is."""
    outcomes = []
    for number, row in enumerate(rows, 1):
        print(f"{number} of {len(rows)}: {row.key}", flush=True)
        missing = [need.about for need in row.needs if not need.met(data)]
        if missing:
            outcomes.append(Outcome(row, "left out", f"not here: {', '.join(missing)}"))
        else:
            outcomes.append(one(row, folder / row.key, data, cores))
        print(f"    {outcomes[-1].state}: {outcomes[-1].about}", flush=True)
        told(outcomes, folder)
    print(f"{folder / 'papers.md'} has them all")
    return outcomes


def one(row: Row, place: Path, data: Path, cores: int) -> Outcome:
    place.mkdir(parents=True, exist_ok=True)
    if data.is_dir() and not (place / "data").exists():
        (place / "data").symlink_to(data)
    log, start = place / "log.txt", time.monotonic()
    with log.open("w", encoding="utf-8") as file:
        found = subprocess.run(
            command_of(row, cores),
            cwd=place,
            env=environment(place),
            stdout=file,
            stderr=file,
            check=False,
        )
    spent = f"after {time.monotonic() - start:.0f} s"
    if found.returncode:
        return Outcome(row, "failed", f"{spent} with exit code {found.returncode}; {log} says why")
    return Outcome(row, "made", f"{spent}, in {place}")


def command_of(row: Row, cores: int) -> list[str]:
    program, first, *others = row.command
    whole = [
        str(ROOT / word) if word.endswith((".yaml", ".py")) else word for word in (first, *others)
    ]
    if program == "dpladder":
        return [sys.executable, "-m", "dpladder.cli", *whole, "--cores", str(cores)]
    return [sys.executable, *whole]


def environment(place: Path) -> Mapping[str, str]:
    """A home of its own: what one row declares public may be private to another, and limits are for
    life."""
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "DPLADDER_HOME": str(place / "home"),
        "PYTHONPATH": os.pathsep.join(paths),
    }


def told(outcomes: Sequence[Outcome], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["| row | what it asks | state | where, or why |", "|---|---|---|---|"]
    for outcome in outcomes:
        lines += [
            f"| {outcome.row.key} | {'; '.join(outcome.row.asks)} | {outcome.state} | "
            f"{outcome.about} |"
        ]
    (folder / "papers.md").write_text("\n".join([*lines, ""]), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
