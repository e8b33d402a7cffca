"""Projects: folders of their own, outside a clone, that share an installation and one home.

The paths of a config are relative to its folder, and so are results/, logs/ and .snakemake. A run
therefore changes into that folder first.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from dpladder.commands.arguments import DRY, SLURM, VERBOSE
from dpladder.commands.follow import WORDS, follow, follows, wait
from dpladder.errors import BadInput
from dpladder.plan.installation import DEMO, INSTALLED, ROOT

CONFIG = "config.yaml"
PROFILES = ROOT / "workflow" / "profiles"
ENVIRONMENT = Path(sys.prefix) if INSTALLED else ROOT / ".venv"

RUN_HELP = f"""usage: dpladder run [CONFIG ...] [{SLURM}] [--] [arguments of snakemake ...]

Start the workflow on a project. CONFIG: config files, later ones over earlier ones, or a folder
with a {CONFIG}; none: {CONFIG} here, else the demo's. Everything is read and written in
the folder of the first config; for a config of the clone's own, here.

  {SLURM}      submit the jobs to a SLURM cluster (docs/cluster.md)
  {VERBOSE}    show all that Snakemake says; else one line, and {WORDS} holds the rest
  -n           say what would run, and run nothing
  plan         write the price to results/plan.json, and run nothing else
  --report FILE  Snakemake's own account of a finished run, with run times: keep it to yourself
  -h, --help   this text; for the rest: snakemake --help"""

NO_CORES = re.compile(r"(?<!\S)(--cores|--jobs|-c|-j)[ =]?0+(?!\S)")
NEW = {"config.yaml.jinja": CONFIG, "gitignore.jinja": ".gitignore", "README.md.jinja": "README.md"}
"""What a new project holds, each from a template in new_project/."""


def init(folder: Path, task: str = "classification", table: Path | None = None) -> None:
    """Make a project that needs nothing but its own data and public figures.

    Args:
        folder: a new or empty one, whose name becomes the project's and the lineage's.
        task: `regression` predicts a number, of a table.
        table: the one to learn from, of which the names of its columns are read; None where it is
            not there yet, or where folders or features are learned from.

    Raises:
        BadInput: something is there already, or the table cannot be read.
    """
    from dpladder.config.model import DELTA
    from dpladder.privacy.statement.templates import fill

    number = task == "regression"
    label = "label" if table is None else _label_of(table)
    path = Path(os.path.relpath(table or folder / "data" / "table.csv", folder))
    kind = "parquet" if path.suffix == ".parquet" else "csv"
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} is there already. Name a new folder.")
    name = folder.absolute().name
    lineage = lineage_of(name)
    folder.mkdir(parents=True, exist_ok=True)
    # Private from the start: the operator is about to put records into it.
    (folder / "data").mkdir(mode=0o700)
    facts = {
        "name": name,
        "lineage": lineage,
        "delta": f"{DELTA:.1e}",
        "reference": ROOT / "config" / "README.md",
        "environment": ENVIRONMENT,
        "source": json.dumps(f"{kind}:{path}") if number or table else "",
        "number": number,
        "label": json.dumps(label, ensure_ascii=False),
    }
    for template, file in NEW.items():
        (folder / file).write_text(fill(f"commands/new_project/{template}", facts), "utf-8")
    data = "" if table else "put your data into data/, "
    print(f"{folder} is a project: {data}edit config.yaml, then `dpladder check` there")


def _label_of(table: Path) -> str:
    """The column that is learned: `label`, or else the last one.

    Raises:
        BadInput: the table cannot be read, or its first line is no header: a number there is a
            record's.
    """
    from dpladder.config.level_texts import number_in
    from dpladder.data.csv_rows import header_of
    from dpladder.data.tables import ParquetTable

    if table.suffix == ".parquet":
        read = ParquetTable(table)
        names = [name for name in read.names if name not in read.index]
    else:
        names = [name for name in header_of(table) if name]
    if not names or any(number_in(name) is not None for name in names):
        raise BadInput(f"{table} names no columns in its first line. Write their names there.")
    return "label" if "label" in names else names[-1]


def lineage_of(name: str) -> str:
    """A lineage for the data in a folder: its name, letters without their accents; `my-data` where
    letters would be lost.

    A lineage's name is for life. A name with letters lost could be that of another project's
    lineage.
    """
    from dpladder.section import NAME_PATTERN

    letters = "".join(
        one
        for one in unicodedata.normalize("NFKD", name.casefold())
        if not unicodedata.combining(one)
    )
    lineage = re.sub(r"[^a-z0-9_-]+", "-", letters).strip("-_")
    lost = any(one.isalnum() and not one.isascii() for one in letters)
    return lineage if re.fullmatch(NAME_PATTERN, lineage) and not lost else "my-data"


@contextlib.contextmanager
def enter_project_folder(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """The config files that were named, in the folder that their paths are relative to."""
    folder, configs = project_of(paths)
    with contextlib.chdir(folder):
        yield configs


def project_of(paths: Sequence[Path]) -> tuple[Path, list[Path]]:
    """The working directory of a project, and its config files.

    Args:
        paths: config files, or folders that hold a config.yaml; none: config.yaml here, else the
            demo's.

    Returns:
        The folder of the first config, and all configs by absolute paths. For the clone's own
        configs it is the folder that the command was started in.

    Raises:
        BadInput: a path does not exist.
    """
    if not paths and not Path(CONFIG).is_file():
        print(f"no {CONFIG} in {Path.cwd()}, so this is the demo's: {DEMO}", file=sys.stderr)
        paths = [DEMO]
    configs = [_config(path).absolute() for path in paths or [Path(CONFIG)]]
    first = configs[0].resolve()
    return Path.cwd() if first.is_relative_to(DEMO.parent) else first.parent, configs


def _config(path: Path) -> Path:
    file = path / CONFIG if path.is_dir() else path
    if not file.is_file():
        raise BadInput(
            f"{file} does not exist. Name a config file, or a folder that `dpladder init` made."
        )
    return file


def run(arguments: Sequence[str]) -> int:
    """Run Snakemake, told in one line; or let it speak itself, where it has more to say.

    Args:
        arguments: configs first, then Snakemake's options (`RUN_HELP`).

    Returns:
        Snakemake's exit code.

    Raises:
        BadInput: a config does not exist, or SLURM is asked for and is not there.
    """
    if {"-h", "--help"} & set(arguments):
        print(RUN_HELP)
        return 0
    # Snakemake would wait for ever for a core that never comes
    if no_cores := NO_CORES.search(" ".join(arguments)):
        raise BadInput(
            f"{no_cores[0].strip()}: a run needs at least one core. Give --cores 1 or more."
        )
    if SLURM in arguments and not DRY & set(arguments):
        from dpladder.plan.startup import need_submission

        need_submission("slurm")
    quiet = follows(arguments)
    folder, command = command_of([word for word in arguments if word != VERBOSE])
    os.chdir(folder)
    return follow(command, folder) if quiet else wait(command)


def command_of(arguments: Sequence[str]) -> tuple[Path, list[str]]:
    """Where Snakemake is to run, and how it is called.

    Args:
        arguments: of `dpladder run`, without `--verbose`.

    Returns:
        The folder to run in, and the command as a list, which no shell ever sees.

    Raises:
        BadInput: a config does not exist, or the installation lacks its Snakefile.
    """
    snakefile = ROOT / "Snakefile"
    if not snakefile.is_file():
        raise BadInput(
            f"{snakefile} does not exist: dpladder runs from a clone, or as it was installed by "
            "its wheel. Install it again."
        )
    config_files = [Path(argument) for argument in _leading(arguments)]
    folder, configs = project_of(config_files)
    options = [argument for argument in arguments[len(config_files) :] if argument != SLURM]
    # Right behind the configs it says where Snakemake's arguments begin.
    options = options[1:] if options[:1] == ["--"] else options
    profile = PROFILES / ("slurm" if SLURM in arguments else "default")
    # With other options Snakemake may start no job at all.
    local = SLURM not in arguments and follows([word for word in options if word not in DRY])
    module = "dpladder.commands.worker" if local and sys.platform == "linux" else "snakemake"
    return folder, [
        *(sys.executable, "-m", module, "--snakefile", str(snakefile)),
        # Before what the user says, which may end options by --; and before an option that ends the
        # list of configs.
        *("--configfile", *map(str, configs), "--workflow-profile", str(profile), *options),
    ]


def _leading(arguments: Sequence[str]) -> Iterator[str]:
    """The configs stand before the first argument that is none."""
    for argument in arguments:
        if not (argument.endswith((".yaml", ".yml")) or Path(argument).is_dir()):
            return
        yield argument
