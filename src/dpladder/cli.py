"""`dpladder`: ask what a plan costs, read and check the ledger, check a finished run, audit the noise."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpladder.config import load
from dpladder.errors import DpladderError
from dpladder.parse import known_states
from dpladder.privacy import ledger as ledgers
from dpladder.privacy.compose import compose
from dpladder.privacy.home import open_home
from dpladder.privacy.ledger import Ledger, State
from dpladder.privacy.plan import make_plan
from dpladder.privacy.show import plan_document, plan_table
from dpladder.privacy.statement import up


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
    return parser


def _plan(given: argparse.Namespace) -> int:
    project = load(given.configfile)
    states = known_states(project)
    document = plan_document(make_plan(project, states), states)
    print(json.dumps(document, indent=2) if given.json else plan_table(document))
    return 0 if document["feasible"] else 1


def _ledger_show(given: argparse.Namespace) -> int:
    home = open_home(create=False)
    shown = {name: _shown(ledgers.load(Ledger(home, name))) for name in ledgers.lineages(home)}
    if given.json:
        print(json.dumps(shown, indent=2))
        return 0
    for name, lineage in shown.items():
        limit = lineage["lifetime_epsilon"]
        print(
            f"lineage {name}: epsilon = {up(lineage['epsilon'])} spent or reserved at delta = {lineage['delta']:g}, "
            + (f"lifetime limit {limit:g}" if limit is not None else "no lifetime limit declared")
        )
        for item in lineage["items"]:
            print(f"  {item['state']:<10} {item['job']:<48} epsilon alone {up(item['epsilon'])}")
    return 0


def _shown(state: State) -> dict[str, Any]:
    terms = state.terms
    assert terms is not None
    return {
        "epsilon": compose(state.charged(), terms.delta, adaptive=True).epsilon,
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
    bad = 0
    for name in ledgers.lineages(home):
        for problem in ledgers.verify(Ledger(home, name)):
            print(f"lineage {name}: {problem}", file=sys.stderr)
            bad = 1
    if not bad:
        print("every entry of every ledger is as it was written")
    return bad


if __name__ == "__main__":
    raise SystemExit(main())
