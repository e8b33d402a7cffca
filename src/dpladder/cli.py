"""`dpladder`: look at the data, ask what a plan costs, read and check the ledger, check a finished
run, audit the noise."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

# What a command imports stands in it: whoever asks for help waits for nothing else.
from dpladder.commands.arguments import SLURM, VERBOSE, Argument, Command, Run, takes
from dpladder.errors import BadInput, DpladderError, full_disk, os_error_text

GROUPS = {
    "ledger": "what was ever spent on each lineage",
    "home": "the folder with the ledgers, the key and the releases",
}
JSON = takes("--json", action="store_true", help="as JSON, for programs")
CONFIGS = takes(
    "config",
    type=Path,
    nargs="*",
    help="config files, later ones over earlier ones, or a project's folder; none: config.yaml "
    "here, else the demo's",
)
RESULTS = takes("results", type=Path, help="the results folder of a finished run")
SEVERAL = takes("results", type=Path, nargs="+", help="results folders of finished runs")
MODEL = takes("model", type=Path, help="weights.safetensors of a final model, or its folder")
NETWORK = takes(
    "--network", type=Path, help="the public network's checkpoint, where it is your own"
)
BACKUP = takes("file", type=Path, help="the backup")
PASSPHRASE = takes(
    "--passphrase-file", type=Path, help="a file with the passphrase; none: it is asked for"
)
COMMANDS: dict[str, Command] = {}
INTERRUPTED = 130  # as shells have it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and turn each refusal into a sentence on stderr.

    Private words of an error go to the operator's terminal alone, never into a log or an exit code.

    Args:
        arguments: without the program's name; None takes them from the process.

    Returns:
        The exit code: 0, that of the error's class (errors.py), or 130 where a person interrupts.
        `run` has Snakemake's.
    """
    words = sys.argv[1:] if arguments is None else [*arguments]
    try:
        if words[:1] == ["run"]:  # its arguments are Snakemake's, whatever they are
            from dpladder.commands.project import run

            return run(words[1:])
        parsed = _parsed(words)
        return int(parsed.run(parsed))
    except KeyboardInterrupt:
        print("dpladder: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader, a pager or head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except DpladderError as error:
        print(f"dpladder: {error}", file=sys.stderr)
        if error.private:
            from dpladder.config.wording import printable

            print(printable(error.private), file=sys.stderr)
        return error.exit_code
    except OSError as error:
        if error.filename is None or not (isinstance(error, PermissionError) or full_disk(error)):
            raise
        from dpladder.config.wording import printable

        text = f"{printable(error.filename)}: {os_error_text(error)}"
        do = "Check its permissions and its disk, or name another place"
        print(f"dpladder: {text}. {do}.", file=sys.stderr)
        return BadInput.exit_code


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    """Configs may stand behind an option too: to argparse a list that may be empty has ended
    there."""
    parser = _parser()
    arguments, unknown = parser.parse_known_args(words)
    if unknown and ("config" not in arguments or any(word.startswith("-") for word in unknown)):
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if unknown:
        arguments.config = [*arguments.config, *map(Path, unknown)]
    return arguments


def _parser(configs: Any = None) -> argparse.ArgumentParser:
    """`configs`: what shells complete a config by."""
    parser = argparse.ArgumentParser(prog="dpladder", description=__doc__)
    parser.add_argument("--version", action="version", version=f"dpladder {version('dpladder')}")
    inside = {"": parser.add_subparsers(required=True, metavar="command")}
    for name, command in COMMANDS.items():
        group, _, word = name.rpartition(" ")
        if group not in inside:
            actions = inside[""].add_parser(group, help=GROUPS[group])
            inside[group] = actions.add_subparsers(required=True, metavar="action")
        subparser = inside[group].add_parser(word, help=command.help)
        for argument in command.takes:
            entry = subparser.add_argument(*argument.names, **argument.options)
            if argument is CONFIGS and configs:
                entry.complete = configs  # type: ignore[attr-defined]
        subparser.set_defaults(run=command.run)
    return parser


def add_command(name: str, what: str, *taken: Argument) -> Callable[[Run], Run]:
    """Enter a function as `dpladder <name>`; its docstring is not shown, `what` is.

    Args:
        name: a word, or a group of GROUPS and a word.
        what: a line of help.
        taken: its arguments.
    """

    def entered_as(run: Run) -> Run:
        COMMANDS[name] = Command(what, taken, run)
        return run

    return entered_as


@add_command(
    "init",
    "make a project: a folder with a config, a .gitignore and a README",
    takes("folder", type=Path, help="a new folder, best outside the clone"),
)
def _init(arguments: argparse.Namespace) -> int:
    from dpladder.commands.project import init

    init(arguments.folder)
    print(
        f"{arguments.folder} is a project: put your data into data/, edit config.yaml, then "
        "`dpladder check` there"
    )
    return 0


@add_command(
    "run",
    "start the workflow on a project; takes Snakemake's arguments too",
    CONFIGS,
    takes(SLURM, action="store_true", help="submit the jobs to a SLURM cluster"),
    takes(VERBOSE, action="store_true", help="show all that Snakemake says"),
)
def _run(arguments: argparse.Namespace) -> int:
    raise AssertionError("main passes on every word of `run`")


@add_command(
    "plan",
    "what a config would spend, before anything is read",
    CONFIGS,
    takes("--configfile", type=Path, nargs="+", default=[], help="the same, in Snakemake's words"),
    JSON,
)
def _plan(arguments: argparse.Namespace) -> int:
    from dpladder.commands.plan import plan
    from dpladder.commands.project import enter_project_folder

    with enter_project_folder(arguments.config + arguments.configfile) as configs:
        return 0 if plan(configs, arguments.json) else 1


@add_command(
    "check",
    "what a run would read: records, classes, parts, problems; for your eyes only",
    CONFIGS,
    takes(
        "--contact-sheet",
        action="store_true",
        help="also write a picture of a few images of each class into the private folder",
    ),
)
def _check(arguments: argparse.Namespace) -> int:
    from dpladder.commands.check import check
    from dpladder.commands.project import enter_project_folder

    with enter_project_folder(arguments.config) as configs:
        check(configs, arguments.contact_sheet)
    return 0


@add_command(
    "ledger show",
    "every lineage: lifetime, and each entry with its state",
    JSON,
    takes("--by", choices=["user"], help="what each user asked for, in place of the entries"),
)
def _ledger_show(arguments: argparse.Namespace) -> int:
    from dpladder.commands.ledgers import show, table

    print(json.dumps(show(), indent=2) if arguments.json else table(show(), arguments.by == "user"))
    return 0


@add_command(
    "home init",
    "make a home, or one's own, a group's: one ledger for all who work on the same data",
    takes("--group", required=True, help="the Unix group whose members share it"),
)
def _home_init(arguments: argparse.Namespace) -> int:
    from dpladder.privacy.ledger.team import init

    home = init(arguments.group)
    print(
        f"{home.path} is a home of group {arguments.group}: each member sets DPLADDER_HOME to it. "
        f"{home.limits} limits what each may spend"
    )
    return 0


@add_command("home backup", "write it to a new encrypted file; runs may go on", BACKUP, PASSPHRASE)
def _home_backup(arguments: argparse.Namespace) -> int:
    from dpladder.commands.home import back_up

    print(back_up(arguments.file, arguments.passphrase_file))
    return 0


@add_command(
    "home restore",
    "make it of a backup, where DPLADDER_HOME names none",
    BACKUP,
    PASSPHRASE,
    takes(
        "results",
        type=Path,
        nargs="*",
        default=[Path("results")],
        help="results that the ledgers must not be older than; none: results, here",
    ),
)
def _home_restore(arguments: argparse.Namespace) -> int:
    from dpladder.commands.home import restore

    print(restore(arguments.file, arguments.passphrase_file, arguments.results))
    return 0


@add_command(
    "ledger verify",
    "whether every entry is as it was written",
    takes(
        "results", type=Path, nargs="*", help="results folders whose statements anchor the ledger"
    ),
)
def _ledger_verify(arguments: argparse.Namespace) -> int:
    from dpladder.commands.ledgers import verify

    problems, fine = verify(arguments.results)
    return _report(problems, fine)


@add_command("verify", "recompose a finished run from its records; needs no private data", RESULTS)
def _verify(arguments: argparse.Namespace) -> int:
    from dpladder.commands.ledgers import verify_statement

    problems, fine = verify_statement(arguments.results)
    return _report(problems, fine)


def _report(problems: Sequence[str], fine: str) -> int:
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print(fine)
    return 1 if problems else 0


@add_command(
    "compare",
    "the final models of several results folders in one table",
    SEVERAL,
    takes("--output", type=Path, help="a .csv, .md or .html file; none: on the terminal"),
)
def _compare(arguments: argparse.Namespace) -> int:
    from dpladder.commands.compare import compare

    compare(arguments.results, arguments.output)
    return 0


@add_command(
    "mlflow",
    "final models as runs of an MLflow experiment",
    SEVERAL,
    takes("--experiment", default="dpladder", help="MLflow's experiment; none: %(default)s"),
)
def _mlflow(arguments: argparse.Namespace) -> int:
    from dpladder.commands.mlflow import log

    runs = log(arguments.results, arguments.experiment)
    print(
        f"MLflow's experiment {arguments.experiment}: one run for each final model, {runs} in all"
    )
    return 0


@add_command(
    "register",
    "an entry for OpenDP's registry of deployments, NIST SP 800-226 hazard by hazard, and a data "
    "protection impact assessment (GDPR, Article 35) to be filled in",
    RESULTS,
    takes(
        "--folder",
        type=Path,
        default=Path("register"),
        help="where they are written; none: %(default)s",
    ),
)
def _register(arguments: argparse.Namespace) -> int:
    from dpladder.commands.register import register

    filed = register(arguments.results, arguments.folder)
    for path in filed.paths:
        print(f"wrote {path}")
    for path in filed.existing_files:
        print(f"kept {path}, which may hold your answers; move it away to have it anew")
    for lineage in filed.other_lineages:
        print(
            f"no entry for lineage {lineage}: what was published about it are counts of another "
            f"lineage's models, and an entry is about models. {arguments.results / 'privacy.md'} "
            "states what is guaranteed about it."
        )
    return 0


@add_command(
    "tune",
    "train the public network on dataset.public_sample, for private trainings to rest on",
    takes("network", type=Path, help="the new file, .safetensors, for features.weights"),
    CONFIGS,
    takes("--until", help="the last layer that stays as it is; none: features.until"),
    takes("--epochs", type=int, default=20, help="at most so many; none: %(default)s"),
)
def _tune(arguments: argparse.Namespace) -> int:
    # Before numpy loads: threads of small products wait on each other, for minutes.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from dpladder.commands.project import enter_project_folder
    from dpladder.commands.tune import tune

    with enter_project_folder(arguments.config) as configs:
        done = tune(configs, arguments.network, arguments.until, arguments.epochs)
    return 0 if done else 1


@add_command(
    "predict",
    "classes and probabilities of images, texts or features",
    MODEL,
    takes(
        "input",
        type=Path,
        nargs="+",
        help="images, texts, folders of them, or tables: csv, jsonl, npz, hdf5, parquet",
    ),
    takes("--output", type=Path, help="a .csv or .parquet file; none: csv on the terminal"),
    NETWORK,
)
def _predict(arguments: argparse.Namespace) -> int:
    from dpladder.commands.predict import predict

    predict(arguments.model, arguments.input, arguments.output, arguments.network)
    return 0


@add_command(
    "generate",
    "texts that a language model writes, after a prompt",
    MODEL,
    takes("prompt", help="how each text begins"),
    takes("--tokens", type=int, default=40, help="written after the prompt, at most"),
    takes("--samples", type=int, default=1, help="how many texts"),
    takes("--temperature", type=float, default=1.0, help="0: the likeliest token each time"),
    takes("--seed", type=int, default=0, help="public: the same seed writes the same texts"),
)
def _generate(arguments: argparse.Namespace) -> int:
    from dpladder.commands.predict import model_file
    from dpladder.use.generate import FREE, Writing, samples
    from dpladder.use.model import load

    for name, least in (("tokens", 1), ("samples", 1), ("temperature", 0)):
        if not getattr(arguments, name) >= least:
            raise BadInput(f"--{name} {getattr(arguments, name)}: it must be {least} or more.")
    writing = Writing(arguments.tokens, arguments.samples, arguments.temperature, arguments.seed)
    print("\n\n".join(samples(load(model_file(arguments.model)), arguments.prompt, writing)))
    print(FREE, file=sys.stderr)
    return 0


@add_command(
    "export",
    "a model as a folder that needs no dpladder, with a model card",
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
)
def _export(arguments: argparse.Namespace) -> int:
    from dpladder.commands.predict import model_file
    from dpladder.use.export import export
    from dpladder.use.model import load

    export(load(model_file(arguments.model), arguments.network), arguments.folder, arguments.to)
    names = ", ".join(sorted(path.name for path in arguments.folder.iterdir()))
    print(f"{arguments.folder} holds {names}: complete the card, README.md")
    return 0


@add_command(
    "audit",
    "check the noise really drawn, and bound epsilon from below by attack",
    takes("--learner", help="one learner only"),
    takes(
        "--canaries",
        action="store_true",
        help="instead bound epsilon by one real training with canaries in it",
    ),
    JSON,
)
def _audit(arguments: argparse.Namespace) -> int:
    if arguments.canaries:
        return _audit_canaries(arguments)
    from dpladder.audit.engine.findings import table, to_json
    from dpladder.audit.every import audit
    from dpladder.privacy.ledger.home import open_home, subkey

    report = audit(subkey(open_home(), "audit"), arguments.learner)
    print(json.dumps(to_json(report), indent=2) if arguments.json else table(report))
    return 0 if report.ok else 1


def _audit_canaries(arguments: argparse.Namespace) -> int:
    from dpladder.audit import canaries
    from dpladder.privacy.ledger.home import open_home, subkey

    bound = canaries.audit(subkey(open_home(), "audit"))
    print(canaries.to_json(bound) if arguments.json else canaries.sentence(bound))
    return 0 if bound.ok else 1


@add_command(
    "cache",
    "the feature caches of a cache root",
    takes(
        "action", choices=["ls", "verify"], help="list them, or check that each is as it was sealed"
    ),
    takes(
        "root",
        type=Path,
        nargs="?",
        default=Path("private/cache"),
        help="the cache root, paths.cache of the config; none: %(default)s",
    ),
)
def _cache(arguments: argparse.Namespace) -> int:
    from dpladder.data.cache import list_caches, verify_cache
    from dpladder.privacy.ledger.home import open_home, subkey

    if not arguments.root.is_dir():
        raise BadInput(
            f"{arguments.root}: no such folder; give the cache root, paths.cache of the config"
        )
    if arguments.action == "ls":
        for cache in list_caches(arguments.root):
            facts = " ".join(
                f"{key}={value}"
                for key, value in cache.attrs.items()
                if key in ("part", "model", "dtype")
            )
            print(f"{cache.path}  {cache.size / 1e6:.1f} MB  {facts}")
        return 0
    key = subkey(open_home(create=False), "cache")
    problems = [p for cache in list_caches(arguments.root) if (p := verify_cache(cache.path, key))]
    return _report(problems, "every cache is as it was sealed")


@add_command(
    "completion",
    'what a shell completes `dpladder` with: eval "$(dpladder completion bash)"',
    takes("shell", choices=["bash", "zsh", "fish"], help="whose script is written"),
)
def _completion(arguments: argparse.Namespace) -> int:
    import shtab

    print(shtab.complete(_parser(shtab.glob("*.yaml", "*.yml")), arguments.shell))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
