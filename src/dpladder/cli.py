"""`dpladder`: look at the data, ask what a plan costs, read and check the ledger, check a finished
run, audit the noise."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

# What a command imports stands in it: whoever asks for help waits for nothing else.
from dpladder.commands.arguments import SLURM, VERBOSE, Command, command, takes
from dpladder.errors import BadInput, DpladderError, full_disk, os_error_text

GROUPS = {
    "ledger": "what was ever spent on each lineage; nothing is ever removed",
    "home": "the folder with the ledgers, the key and the releases",
}
JSON = takes("--json", dest="as_json", action="store_true", help="as JSON, for programs")
CONFIGS = takes(
    "config",
    type=Path,
    nargs="*",
    help="config files, later ones over earlier ones, or a project's folder; none: config.yaml "
    "here, else the demo's",
)
RESULTS = takes("results", type=Path, help="the results folder of a finished run")
SEVERAL = takes("results", type=Path, nargs="+", help="results folders of finished runs")
MODEL = takes(
    "path",
    metavar="model",
    type=Path,
    help="weights.safetensors of a final model, or its folder",
)
NETWORK = takes(
    "--network", type=Path, help="the public network's checkpoint, where it is your own"
)
BACKUP = takes("file", type=Path, help="the backup")
PASSPHRASE = takes(
    "--passphrase-file", type=Path, help="a file with the passphrase; none: it is asked for"
)
INTERRUPTED = 130  # as shells have it
COMMANDS: dict[str, Command] = {
    "init": command(
        "make a project: a folder with a config, a .gitignore and a README",
        "dpladder.commands.project:init",
        takes("folder", type=Path, help="a new folder, best outside the clone"),
        takes(
            "--task",
            choices=["classification", "regression"],
            default="classification",
            help="what is predicted: a class, or of a table a number; none: %(default)s",
        ),
        takes("--table", type=Path, metavar="FILE", help="a csv or parquet table to learn from"),
    ),
    "run": command(
        "start the workflow on a project; takes Snakemake's arguments too",
        "dpladder.commands.project:run",
        CONFIGS,
        takes(SLURM, action="store_true", help="submit the jobs to a SLURM cluster"),
        takes(VERBOSE, action="store_true", help="show all that Snakemake says"),
    ),
    "plan": command(
        "what a config would spend, before anything is read",
        "dpladder.commands.plan:plan",
        CONFIGS,
        JSON,
    ),
    "keys": command(
        "the keys of the config whose name or text has a word",
        "dpladder.commands.keys:keys",
        takes("word", help="such as patient, group or onnx"),
    ),
    "check": command(
        "what a run would read: records, classes, parts, problems; for your eyes only",
        "dpladder.commands.check:check",
        CONFIGS,
    ),
    "ledger show": command(
        "every lineage: lifetime, and each entry with its state",
        "dpladder.commands.ledgers:show",
        JSON,
        takes("--by", choices=["user"], help="what each user asked for, in place of the entries"),
    ),
    "home init": command(
        "make a home for a group, or share your own: one ledger for all who work on the same data",
        "dpladder.commands.home:init",
        takes("--group", required=True, help="the Unix group whose members share it"),
    ),
    "home backup": command(
        "write the home to a new encrypted file; runs may go on",
        "dpladder.commands.home:back_up",
        BACKUP,
        PASSPHRASE,
    ),
    "home restore": command(
        "restore a home from a backup; refused if DPLADDER_HOME holds one already",
        "dpladder.commands.home:restore",
        BACKUP,
        PASSPHRASE,
        takes(
            "results",
            type=Path,
            nargs="*",
            default=[Path("results")],
            help="results that the ledgers must not be older than; none: results, here",
        ),
    ),
    "ledger verify": command(
        "whether every entry is as it was written",
        "dpladder.commands.ledgers:verify",
        takes(
            "results",
            type=Path,
            nargs="*",
            help="results folders whose statements anchor the ledger",
        ),
    ),
    "verify": command(
        "recompose a finished run from its records; needs no private data",
        "dpladder.commands.ledgers:verify_statement",
        RESULTS,
    ),
    "compare": command(
        "the final models of several results folders in one table",
        "dpladder.commands.compare:compare",
        SEVERAL,
        takes("--output", type=Path, help="a .csv, .md or .html file; none: on the terminal"),
    ),
    "mlflow": command(
        "final models as runs of an MLflow experiment",
        "dpladder.commands.mlflow:log",
        SEVERAL,
        takes("--experiment", default="dpladder", help="MLflow's experiment; none: %(default)s"),
    ),
    "register": command(
        "an entry for OpenDP's registry of deployments, NIST SP 800-226 hazard by hazard, and a "
        "data protection impact assessment (GDPR, Article 35) to be filled in",
        "dpladder.commands.register:register",
        RESULTS,
        takes(
            "--folder",
            type=Path,
            default=Path("register"),
            help="where they are written; none: %(default)s",
        ),
    ),
    "tune": command(
        "train the public network on dataset.public_sample, for private trainings to rest on",
        "dpladder.commands.tune:tune",
        takes(
            "file",
            metavar="network",
            type=Path,
            help="the new file, .safetensors, for features.weights",
        ),
        CONFIGS,
        takes("--until", help="the last layer that stays as it is; none: features.until"),
        takes("--epochs", type=int, default=20, help="at most so many; none: %(default)s"),
    ),
    "predict": command(
        "classes and probabilities of images, texts or features",
        "dpladder.commands.predict:predict",
        MODEL,
        takes(
            "inputs",
            metavar="input",
            type=Path,
            nargs="+",
            help="images, texts, folders of them, or tables: csv, jsonl, npz, hdf5, parquet",
        ),
        takes("--output", type=Path, help="a .csv or .parquet file; none: csv on the terminal"),
        takes(
            "--threshold",
            type=float,
            help="name the second of two classes, or a finding, from this probability on; none: "
            "whatever is most probable",
        ),
        takes("--explain", action="store_true", help="of a table, what each column adds"),
        NETWORK,
    ),
    "generate": command(
        "texts that a language model writes, after a prompt",
        "dpladder.commands.predict:generate",
        MODEL,
        takes("prompt", help="how each text begins"),
        takes("--tokens", type=int, default=40, help="written after the prompt, at most"),
        takes("--samples", type=int, default=1, help="how many texts"),
        takes("--temperature", type=float, default=1.0, help="0: the likeliest token each time"),
        takes("--seed", type=int, default=0, help="public: the same seed writes the same texts"),
    ),
    "export": command(
        "a model as a folder that needs no dpladder, with a model card",
        "dpladder.commands.predict:export_model",
        MODEL,
        takes("folder", type=Path, help="a new folder"),
        takes(
            "--to",
            choices=["torch", "huggingface", "onnx"],
            default="torch",
            help="huggingface: a card that its site reads; onnx: also the whole as one graph, "
            "model.onnx",
        ),
        NETWORK,
    ),
    "audit": command(
        "check the noise drawn, bound epsilon from below by attack; a learner: 18 minutes of CPU",
        "audit",
        takes("--learner", help="one learner only"),
        takes(
            "--canaries",
            action="store_true",
            help="instead bound epsilon by one real training with canaries in it",
        ),
        JSON,
    ),
    "completion": command(
        'what a shell completes `dpladder` with: eval "$(dpladder completion bash)"',
        "dpladder.cli:_completion",
        takes("shell", choices=["bash", "zsh", "fish"], help="whose script is written"),
    ),
}
"""Each by its name: a word, or a group of GROUPS and a word."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and turn each refusal into a sentence on stderr.

    Private words of an error go to the operator's terminal alone, never into a log or an exit code.

    Args:
        arguments: without the program's name; None takes them from the process.

    Returns:
        The exit code: 0, that of the error's class (errors.py), or 130 where a person interrupts.
        `run` has Snakemake's.
    """
    # the whole command is parsed here but for `run`, which hands its words on
    words = sys.argv[1:] if arguments is None else [*arguments]
    try:
        if words[:1] == ["run"]:  # its arguments are Snakemake's, whatever they are
            from dpladder.commands.project import run

            return run(words[1:])
        if not sys.warnoptions:  # what Pillow and NumPy say of a record is no message of ours
            warnings.filterwarnings("ignore", module="PIL|pydicom")
            warnings.filterwarnings("ignore", category=RuntimeWarning)
        # a command says False where what it looked at is not well; a refusal is an exception
        return 0 if _run(**vars(_parsed(words))) else 1
    except KeyboardInterrupt:
        print("dpladder: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader, a pager or head, has seen enough
        # else Python would complain once more when it flushes stdout at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except DpladderError as error:
        print(f"dpladder: {error}", file=sys.stderr)
        if error.private:
            from dpladder.wording import printable

            print(printable(error.private), file=sys.stderr)
        return error.exit_code
    except OSError as error:
        if not (full_disk(error) or (isinstance(error, PermissionError) and error.filename)):
            # a bug, whose traceback somebody must see; only what the operator can mend has one
            # sentence
            raise
        from dpladder.wording import printable

        where = printable(error.filename or "a file cannot be written")
        text = f"{where}: {os_error_text(error)}"
        do = "Check its permissions and its disk, or name another place"
        print(f"dpladder: {text}. {do}.", file=sys.stderr)
        return BadInput.exit_code


def _run(command: Command, **arguments: Any) -> bool:
    """Call a command's function, a project's in the folder of its configs; whether all is well.

    Paths of a project are relative to its config, so a command of it works from anywhere.
    """
    module, _, name = command.function.partition(":")
    # only now, so that `dpladder --help` loads no library
    if name:
        function = getattr(import_module(module), name)
    else:  # of a package beside dpladder
        from dpladder.config.plugins import load_command

        function = load_command(module)
    if CONFIGS not in command.takes:
        return function(**arguments) is not False
    from dpladder.commands.project import enter_project_folder

    with enter_project_folder(arguments.pop("config")) as configs:
        return function(configs, **arguments) is not False


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    """Configs may stand behind an option too: to argparse a list that may be empty has ended there.

    Args:
        words: of the command line, without the program's name.

    Returns:
        The command as `command`, and its function's arguments by name. argparse ends the process
        where a word is none of them.
    """
    parser = _parser()
    arguments, unknown = parser.parse_known_args(words)
    if unknown and ("config" not in arguments or any(word.startswith("-") for word in unknown)):
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if unknown:
        # argparse kept them in order, and later configs win over earlier ones
        arguments.config = [*arguments.config, *map(Path, unknown)]
    return arguments


def _parser(configs: Any = None) -> argparse.ArgumentParser:
    """The parser of all commands, built from `COMMANDS`.

    Args:
        configs: what shells complete a config by; None where nobody completes.
    """
    parser = argparse.ArgumentParser(prog="dpladder", description=__doc__)
    parser.add_argument("--version", action="version", version=f"dpladder {version('dpladder')}")
    inside = {"": parser.add_subparsers(required=True, metavar="command")}
    for name, one in COMMANDS.items():
        group, _, word = name.rpartition(" ")
        if group not in inside:
            actions = inside[""].add_parser(group, help=GROUPS[group])
            inside[group] = actions.add_subparsers(required=True, metavar="action")
        subparser = inside[group].add_parser(word, help=one.help, description=one.help)
        for argument in one.takes:
            entry = subparser.add_argument(*argument.names, **argument.options)
            if argument is CONFIGS and configs:
                entry.complete = configs  # type: ignore[attr-defined]
        subparser.set_defaults(command=one)
    return parser


def _completion(shell: str) -> None:
    """Print the script by which a shell completes the command line, for `eval`."""
    import shtab

    print(shtab.complete(_parser(shtab.glob("*.yaml", "*.yml")), shell))
