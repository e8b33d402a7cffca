"""`dpladder`: ask what a plan costs, read and check the ledger, check a finished run, audit the noise."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dpladder import stages
from dpladder.config import Config, Project, load
from dpladder.errors import BadInput, DpladderError, Refused
from dpladder.parse import known_states
from dpladder.privacy import ledger as ledgers
from dpladder.privacy.compose import compose
from dpladder.privacy.home import open_home, subkey
from dpladder.privacy.ledger import Ledger, State
from dpladder.privacy.plan import make_plan
from dpladder.privacy.show import plan_document, plan_table
from dpladder.privacy.statement import anchors_of, check, read_statement, up

NO_LEDGER = "nothing was ever spent, or DPLADDER_HOME names another place: no ledger in"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        return int(given.run(given))
    except BrokenPipeError:  # the reader, a pager or head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except DpladderError as error:
        print(f"dpladder: {error}", file=sys.stderr)
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dpladder", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")

    plan = commands.add_parser("plan", help="what a config would spend, before anything is read")
    plan.add_argument("--configfile", type=Path, nargs="+", default=[Path("config/config.yaml")])
    plan.add_argument("--json", action="store_true")
    plan.add_argument(
        "--suggest", action="store_true", help="propose rungs, trials and score share for the config's total"
    )
    plan.set_defaults(run=_plan)

    ledger = commands.add_parser("ledger", help="what was ever spent on each lineage")
    actions = ledger.add_subparsers(required=True, metavar="action")
    show = actions.add_parser("show", help="every lineage: lifetime, and each entry with its state")
    show.add_argument("--json", action="store_true")
    show.set_defaults(run=_ledger_show)
    verify = actions.add_parser("verify", help="whether every entry is as it was written")
    verify.add_argument(
        "results", type=Path, nargs="*", help="results folders whose statements anchor the ledger"
    )
    verify.set_defaults(run=_ledger_verify)

    check = commands.add_parser(
        "verify", help="recompose a finished run from its records; needs no private data"
    )
    check.add_argument("results", type=Path)
    check.set_defaults(run=_verify)

    audit = commands.add_parser(
        "audit", help="check the noise really drawn, and bound epsilon from below by attack"
    )
    audit.add_argument("--learner", help="one learner only")
    audit.add_argument("--json", action="store_true")
    audit.set_defaults(run=_audit)

    caches = commands.add_parser("cache", help="the feature caches of a cache root")
    caches.add_argument("action", choices=["ls", "verify"])
    caches.add_argument("root", type=Path, nargs="?", default=Path("private/cache"))
    caches.set_defaults(run=_cache)
    return parser


def _plan(given: argparse.Namespace) -> int:
    project = load(given.configfile)
    if given.suggest:
        return _suggest(project, given.json)
    states = known_states(project)
    try:
        document = plan_document(make_plan(project, states), states)
    except Refused as refused:
        if given.json:
            print(json.dumps({"feasible": False, "problems": [str(refused)]}, indent=2))
        raise
    print(json.dumps(document, indent=2) if given.json else plan_table(document))
    return 0 if document["feasible"] else 1


def _suggest(project: Project, as_json: bool) -> int:
    """A ladder for each experiment's smallest total, which has to pay for the sweep too."""
    from dpladder.search.suggest import suggest, text

    for name, config in project.experiments.items():
        if config.learner.searches is None:
            raise Refused(
                f"experiment {name}: {config.learner.name} searches nothing, so there is no ladder to suggest. Its "
                "training spends the whole total."
            )
        if stages.final_rule(config) == "private_search":
            raise Refused(
                f"experiment {name}: {config.hpo.name} climbs no ladder, so there is none to suggest. It spends the whole "
                "total in one job."
            )
    proposed = {
        name: suggest(min(stages.targets(config)), config.privacy.delta, _signal(config))
        for name, config in project.experiments.items()
    }
    if as_json:
        print(json.dumps({name: asdict(ladder) for name, ladder in proposed.items()}, indent=2))
    else:
        print("\n\n".join(f"experiment {name}\n{text(ladder)}" for name, ladder in proposed.items()))
    return 0


def _signal(config: Config) -> float:
    """How many records' gradients stand beside one unit's noise: a unit's records share its bound."""
    return config.dataset.nominal_size / (2 if config.privacy.relation == "replace_one" else 1)


def _ledger_show(given: argparse.Namespace) -> int:
    home = open_home(create=False)
    found = {name: _shown(ledgers.load(Ledger(home, name))) for name in ledgers.lineages(home)}
    shown = {name: lineage for name, lineage in found.items() if lineage is not None}
    if given.json:
        print(json.dumps(shown, indent=2))
        return 0
    if not shown:
        print(f"{NO_LEDGER} {home.path}")
    for name, lineage in shown.items():
        limit = lineage["lifetime_epsilon"]
        print(
            f"lineage {name}: epsilon = {up(lineage['epsilon'])} spent or reserved at delta = {lineage['delta']:g}, "
            + (f"lifetime limit {limit:g}" if limit is not None else "no lifetime limit declared")
        )
        for item in lineage["items"]:
            print(f"  {item['state']:<10} {item['job']:<48} epsilon alone {up(item['epsilon'])}")
    return 0


def _shown(state: State) -> dict[str, Any] | None:
    """A lineage for the reader; None where its first entry was never written."""
    terms = state.terms
    if terms is None:
        return None
    return {
        "epsilon": ledgers.ever(terms, state.charged()).epsilon,
        "delta": terms.delta,
        "relation": terms.relation,
        "lifetime_epsilon": terms.lifetime_epsilon,
        "items": [
            {"job": ledgers.name(h.job), "state": h.status, "epsilon": compose(h.spends, terms.delta).epsilon}
            for h in state.items.values()
        ],
    }


def _ledger_verify(given: argparse.Namespace) -> int:
    home = open_home(create=False)
    anchors = [anchor for results in given.results for anchor in anchors_of(read_statement(results))]
    names = dict.fromkeys([*ledgers.lineages(home), *(anchor.lineage for anchor in anchors)])
    problems = [
        f"lineage {name}: {problem}"
        for name in names
        for problem in ledgers.verify(Ledger(home, name), anchors)
    ]
    fine = "every entry is as it was written in the ledgers of" if names else NO_LEDGER
    return _report(problems, f"{fine} {', '.join(names) or home.path}")


def _verify(given: argparse.Namespace) -> int:
    statement = read_statement(given.results)
    home = open_home(create=False)
    known = set(ledgers.lineages(home))
    key = subkey(home, "ledger") if known.issuperset(statement["datasets"]) else None
    problems = check(statement, given.results.resolve(), key)
    anchors = anchors_of(statement)
    for anchor in anchors:
        if anchor.lineage in known:
            problems += [
                f"ledger of {anchor.lineage}: {p}"
                for p in ledgers.verify(Ledger(home, anchor.lineage), anchors)
            ]
        else:
            print(f"lineage {anchor.lineage} has no ledger in {home.path}: checked against the records alone")
    return _report(problems, "the statement follows from the records: " + "; ".join(_totals(statement)))


def _totals(statement: Mapping[str, Any]) -> list[str]:
    return [
        f"{lineage} epsilon = {up(dataset['epsilon'])} at delta = {statement['delta']:g}"
        for lineage, dataset in statement["datasets"].items()
    ]


def _report(problems: Sequence[str], fine: str) -> int:
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print(fine)
    return 1 if problems else 0


def _audit(given: argparse.Namespace) -> int:
    from dpladder.learn.audit import mechanisms
    from dpladder.privacy.audit import run_audit, table, to_json

    report = run_audit(mechanisms(given.learner), subkey(open_home(), "audit"))
    print(json.dumps(to_json(report), indent=2) if given.json else table(report))
    return 0 if report.ok else 1


def _cache(given: argparse.Namespace) -> int:
    from dpladder.data.cache import list_caches, verify_cache

    if not given.root.is_dir():
        raise BadInput(f"{given.root}: no such folder; give the cache root, paths.cache of the config")
    if given.action == "ls":
        for cache in list_caches(given.root):
            facts = " ".join(
                f"{key}={value}" for key, value in cache.attrs.items() if key in ("part", "model", "dtype")
            )
            print(f"{cache.path}  {cache.size / 1e6:.1f} MB  {facts}")
        return 0
    key = subkey(open_home(create=False), "cache")
    problems = [p for cache in list_caches(given.root) if (p := verify_cache(cache.path, key))]
    return _report(problems, "every cache is as it was sealed")


if __name__ == "__main__":
    raise SystemExit(main())
