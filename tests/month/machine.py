"""A month of edits: whatever its owner does, no question is paid for twice, and the statement is
right throughout."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import hypothesis.strategies as st
import pytest
from hypothesis import assume, event, note
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from month import plain
from month.driver import Ended, ask, configure, in_process, killed_in_process, verified
from month.plain import Charge
from month.project import DELTA, LINEAGE, Data, Experiment, Key, Wish, questions

from dpladder.plan import package
from dpladder.plan.rules import RULES

RUNGS = (
    (),
    ((0.1, 1),),
    ((0.1, 1), (0.2, 2)),
    ((0.1, 2), (0.2, 2)),
    ((0.2, 2),),
    ((0.1, 1), (0.3, 1)),
)
TOTALS = (0.8, 1.0, 1.5, 2.0)
DIGEST = package.digest
INERT: tuple[dict[str, Any], ...] = (
    {},
    {"resources": {"threads": 2}},
    {"resources": {"mem_mb": 3000}},
    {"sweep": {"together": False}},
    {"features": {"batch_size": 32}},
    {"features": {"shards": 2}},
)
LOST = (
    "results/*/final/*/weights.safetensors",
    "results/*/rungs/*/trials/*/score.json",
    "results/*/final/*/fit.json",
    "results/*/final/*/metrics.json",
    "results/**/privacy.json",
    "results/privacy.json",
    "results/plan.json",
    "results",
    "private",
    ".snakemake",
)
CHANGED = re.compile(
    r"unless its folder \.snakemake was lost; then: dpladder run --forcerun "
    rf"((?:(?:{'|'.join(RULES)})\b ?)+)"
)
# these advise to pay, and dpladder plan says how much
PAYING = ("respend", "targets")
NO_ROOM = re.compile(r"has a lifetime limit|above its lifetime limit|are gone")
SAME = 1e-5  # what two ways to compose may differ by
MOST_STEPS = 650  # of a run that change what is on disk; a kill may come at any of them

Way = Callable[[], Ended]


class Month(RuleBasedStateMachine):
    """`run_project`, `kill_project`: how a project is run, and killed. `in_process`: whether that
    sees what is set in here."""

    run_project: ClassVar[Callable[..., Ended]] = staticmethod(in_process)
    kill_project: ClassVar[Callable[[Path, int, bool], int]] = staticmethod(killed_in_process)
    in_process: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="month-"))
        self.before = dict(os.environ)
        os.environ["DPLADDER_HOME"] = str(self.home)
        self.clones = [self.root / "clone0"]
        self.active = self.clones[0]
        self.active.mkdir()
        self.answered: dict[Key, list[str]] = {}  # tokens, oldest first
        self.contents: dict[str, Key] = {}  # what is asked, by the ledger's question
        self.gone: dict[str, Experiment] = {}  # by their last names
        self.seen: dict[str, str] = {}  # token: status
        self.labelled: set[str] = set()  # tokens whose label was looked at when it was new
        self.forgetful: set[Path] = set()  # clones that lost Snakemake's memory
        self.named = self.edits = 0

    def teardown(self) -> None:
        os.environ.clear()
        os.environ.update(self.before)
        package.digest = DIGEST
        shutil.rmtree(self.root)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @initialize(
        ids=st.booleans(),
        mode=st.sampled_from(["release", "release", "release", "research"]),
        rungs=st.sampled_from(RUNGS),
        lifetime=st.sampled_from([3.0, 8.0, 8.0]),
    )
    def begin(self, ids: bool, mode: str, rungs: Any, lifetime: float) -> None:
        self.data = Data(self.root / "data.npz", ids)
        self.wish = Wish({"main": Experiment(rungs=rungs)}, mode=mode, lifetime=lifetime)
        self.good = self.wish, self.data.version
        self.go(None)

    # --- edits ---

    @rule(
        data=st.data(),
        totals=st.lists(st.sampled_from(TOTALS), min_size=1, max_size=3, unique=True),
    )
    def totals(self, data: Any, totals: list[float]) -> None:
        self.edit(data, targets=tuple(totals))

    @rule(data=st.data(), total=st.sampled_from(TOTALS))
    def one_total_more(self, data: Any, total: float) -> None:
        name = self.one(data)
        known = self.wish.experiments[name].targets
        self.wish = self.wish.with_one(name, targets=tuple(dict.fromkeys([*known, total])))
        self.go(data)

    @rule(data=st.data(), rungs=st.sampled_from(RUNGS))
    def rungs(self, data: Any, rungs: Any) -> None:
        self.edit(data, rungs=rungs)

    @rule(data=st.data(), clip=st.sampled_from([1.0, 0.5]))
    def clip(self, data: Any, clip: float) -> None:
        self.edit(data, clip=clip)

    @rule(data=st.data(), like=st.booleans())
    def experiment_added(self, data: Any, like: bool) -> None:
        assume(len(self.wish.experiments) < 3)
        other = Experiment(rungs=((0.1, 1),), clip=0.25)
        one = self.wish.experiments[self.one(data)] if like else other
        self.wish = replace(self.wish, experiments={**self.wish.experiments, self.new_name(): one})
        self.go(data)

    @precondition(lambda self: len(self.wish.experiments) > 1)
    @rule(data=st.data())
    def experiment_removed(self, data: Any) -> None:
        name = self.one_of(data, [*self.wish.experiments][1:])
        left = {other: one for other, one in self.wish.experiments.items() if other != name}
        self.gone[name] = self.wish.experiments[name]
        self.named_anew(data, left)

    @precondition(lambda self: len(self.wish.experiments) > 1)
    @rule(data=st.data())
    def experiment_renamed(self, data: Any) -> None:
        old, new = self.one_of(data, [*self.wish.experiments][1:]), self.new_name()
        self.named_anew(
            data,
            {new if name == old else name: one for name, one in self.wish.experiments.items()},
        )

    @precondition(lambda self: len(self.wish.experiments) > 1)
    @rule(data=st.data())
    def names_swapped(self, data: Any) -> None:
        """Also main's."""
        one, other = self.one_of(data, [*self.wish.experiments][1:]), self.one(data)
        swapped = {one: other, other: one}
        experiments = self.wish.experiments
        self.named_anew(data, {name: experiments[swapped.get(name, name)] for name in experiments})

    @precondition(lambda self: self.gone and len(self.wish.experiments) < 3)
    @rule(data=st.data(), old=st.booleans())
    def experiment_brought_back(self, data: Any, old: bool) -> None:
        name = self.one_of(data, sorted(self.gone))
        back = self.gone.pop(name)
        free = old and name not in self.wish.experiments
        named = name if free else self.new_name()
        self.named_anew(data, {**self.wish.experiments, named: back})

    def named_anew(self, data: Any, experiments: dict[str, Experiment]) -> None:
        """Names are free: what was answered for the data as it is needs no consent and no
        charge."""
        self.wish = replace(self.wish, experiments=experiments)
        paid, new = set(self.seen), self.something_new()
        self.go(data)
        assert new or set(self.seen) == paid, "a name was paid for"

    @precondition(lambda self: len(self.wish.experiments) > 2)
    @rule(data=st.data())
    def experiments_in_another_order(self, data: Any) -> None:
        main, *others = self.wish.experiments.items()
        self.wish = replace(self.wish, experiments=dict([main, *reversed(others)]))
        self.go(data)

    @rule(data=st.data(), inert=st.sampled_from(INERT))
    def a_key_that_changes_no_answer(self, data: Any, inert: dict[str, Any]) -> None:
        self.wish = replace(self.wish, inert=inert)
        self.go(data)

    @rule(
        data=st.data(),
        respend=st.sampled_from([True, ("main",), ("dp_gd",), ("train_final",), ("run_trial",)]),
    )
    def respend(self, data: Any, respend: Any) -> None:
        """Said for one run, as all that a way says."""
        self.wish = replace(self.wish, respend=respend)
        self.go(data)

    # --- the data ---

    @rule(data=st.data())
    def records_appended(self, data: Any) -> None:
        self.data.append()
        self.go(data)

    @rule(data=st.data())
    def records_changed_under_their_number(self, data: Any) -> None:
        """Nothing is asked anew, and nobody sees it."""
        self.data.change()
        self.go(data)

    @rule(data=st.data())
    def records_touched(self, data: Any) -> None:
        self.data.touch()
        self.go(data)

    # --- the package ---

    @precondition(lambda self: self.in_process)
    @rule(data=st.data())
    def code_edited(self, data: Any) -> None:
        """All code is other code."""
        self.edits += 1
        package.digest = lambda: f"{DIGEST()} edit {self.edits}"
        self.go(data)

    # --- files, clones, kills ---

    @rule(data=st.data(), what=st.sampled_from(LOST))
    def files_lost(self, data: Any, what: str) -> None:
        found = sorted(self.active.glob(what))
        assume(found)
        path = data.draw(st.sampled_from(found), "lost")
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        if what == ".snakemake":
            self.forgetful.add(self.active)
        self.go(data)

    @rule(data=st.data(), number=st.integers(0, 1))
    def in_another_clone(self, data: Any, number: int) -> None:
        self.active = self.root / f"clone{number}"
        if self.active not in self.clones:
            self.clones.append(self.active)
            self.active.mkdir()
        self.go(data)

    @rule(
        data=st.data(),
        step=st.integers(1, MOST_STEPS),
        before=st.booleans(),
        totals=st.sampled_from(TOTALS),
    )
    def killed(self, data: Any, step: int, before: bool, totals: float) -> None:
        """kill -9 in mid-run, of a run that has something to do."""
        name = self.one(data)
        known = self.wish.experiments[name].targets
        self.wish = self.wish.with_one(name, targets=tuple(dict.fromkeys([*known, totals])))
        configure(self.active, self.wish.config(self.data))
        ended = type(self).kill_project(self.active, step, before)
        event(f"killed: {ended == -signal.SIGKILL}")
        assert ended in (0, -signal.SIGKILL)
        self.look()
        self.go(data)

    # --- what an edit leads to ---

    def one(self, data: Any) -> str:
        return self.one_of(data, [*self.wish.experiments])

    def one_of(self, data: Any, names: list[str]) -> str:
        found: str = data.draw(st.sampled_from(names), "experiment")
        return found

    def edit(self, data: Any, **changes: Any) -> None:
        self.wish = self.wish.with_one(self.one(data), **changes)
        self.go(data)

    def new_name(self) -> str:
        self.named += 1
        return f"e{self.named}"

    def go(self, data: Any) -> None:
        """A run, and what must hold after it. Where it is refused, one of the named ways is
        followed, and has to work."""
        ended = self.run()
        if ended.refused:
            assert self.something_new() or "are gone" in ended.refused, (
                f"asks nothing new, and is refused: {ended.refused}"
            )
            ended = self.follow(data, ended.refused)
        self.check()
        self.wish = replace(self.wish, respend=False)
        self.good = self.wish, self.data.version

    def follow(self, data: Any, refused: str, said: tuple[str, ...] = ()) -> Ended:
        """One of the named ways. It has to end well; but paying may need a larger total, experiment
        by experiment, or be more than a lifetime allows: then that is said, once."""
        ways = dict(self.ways(refused))
        note(f"refused: {refused}\nways: {[*ways]}")
        assert ways, f"no way is named: {refused}"
        way = data.draw(st.sampled_from([*ways]), "way")
        event(f"way: {way}")
        ended = ways[way]()
        no_room = NO_ROOM.search(ended.refused)
        more = no_room is not None and (way in PAYING or no_room[0] == "are gone")
        if no_room and more and no_room[0] not in said:
            return self.follow(data, ended.refused, (*said, no_room[0]))
        assert not ended.refused, f"{way} leads to: {ended.refused}"
        return ended

    def run(self, *force: str) -> Ended:
        configure(self.active, self.wish.config(self.data))
        note(f"{self.active.name}: {self.wish}, data {self.data.version}")
        ended = type(self).run_project(self.active, *force)
        self.look()
        changed = CHANGED.search(ended.told)
        if changed and self.active in self.forgetful and not force:
            return self.run(*changed[1].split())
        return ended

    def something_new(self) -> bool:
        """Whether a question has no answer, under whichever name."""
        return bool(self.wish.respend) or not self.asking_jobs() <= self.answered.keys()

    def ways(self, refused: str) -> Iterator[tuple[str, Way]]:
        """What a refusal says to do next, as something to do."""

        def with_wish(wish: Wish) -> Way:
            def way() -> Ended:
                self.wish = wish
                return self.run()

            return way

        wish, (good, version) = self.wish, self.good
        if found := re.search(r"experiment (\w+) .*say final\.targets: (\[.*?\])", refused):
            yield "targets", with_wish(wish.with_one(found[1], targets=tuple(json.loads(found[2]))))
        if "respend: true" in refused and "no way out" not in refused:
            yield "respend", with_wish(replace(wish, respend=True))
        if re.search(r"[Uu]ndo (the change|what asks for it)|go back to its total", refused):

            def undo() -> Ended:
                self.wish = good
                self.data.back(version)
                return self.run()

            yield "undo", undo
        if found := re.search(r"--forcerun ([\w ]+?)`", refused):
            names = found[1].split()
            yield "forced", lambda: self.run(*names)
        if found := re.search(
            r"has a lifetime limit .* which leaves epsilon = "
            r"(\d+\.\d+)",
            refused,
        ):
            least = Experiment((float(found[1]),), ())

            def least_beside() -> Ended:
                beside = {**good.experiments, self.new_name(): least}
                self.wish = replace(good, experiments=beside)
                self.data.back(version)
                return self.run()

            if float(found[1]) > 0.1:
                yield "what is left", least_beside
        if "start again" in refused or "Start the workflow again" in refused:
            yield "again", self.run

    # --- what must hold ---

    def look(self) -> None:
        """What was charged since the last look, under the question that the config of now asks:
        nothing twice."""
        for token, charge in self.charges().items():
            if token not in self.labelled:
                self.labelled.add(token)
                self.check_question(charge)
            if charge.status == "RESERVED" or self.seen.get(token) == charge.status:
                continue
            new = token not in self.seen
            self.seen[token] = charge.status
            if new:
                self.take_in(token, self.contents[charge.question])

    def check_question(self, charge: Charge) -> None:
        """Content and question are one to one: its label is of now, whatever it was called before
        and will be."""
        experiment, rule_, wildcards = charge.job
        (content,) = [
            key
            for name, of, key in questions(
                self.wish.experiments[experiment], self.data.version, self.wish.mode
            )
            if (name, of) == (rule_, dict(wildcards))
        ]
        known = self.contents.setdefault(charge.question, content)
        assert known == content, f"one question for {known} and {content}"
        assert len({*self.contents.values()}) == len(self.contents), f"{content} has two questions"

    def take_in(self, token: str, key: Key) -> None:
        before = self.answered.get(key, [])
        assert not before or self.renewed(key, before[-1]), f"paid for twice: {key}"
        self.answered.setdefault(key, []).append(token)

    def renewed(self, key: Key, last: str) -> bool:
        """Whether an answer may be bought again: it was said, and something behind it is new since
        the last one."""
        research = self.wish.mode == "research"
        if not (research or self.wish.respend):
            return False
        if research and self.wish.respend:
            return True
        tokens = [*self.seen]
        return any(
            tokens.index(token) > tokens.index(last)
            for one in self.wish.experiments.values()
            for asked in [
                [other for _, _, other in questions(one, self.data.version, self.wish.mode)]
            ]
            if key in asked
            for other in asked
            if other != key and other[0] in _behind(key[0])
            for token in self.answered.get(other, ())
        )

    def charges(self) -> dict[str, Charge]:
        return plain.charges(self.home, LINEAGE)

    def asking_jobs(self) -> set[Key]:
        """All that is asked now, of the data as it is."""
        return {
            key
            for one in self.wish.experiments.values()
            for _, _, key in questions(one, self.data.version, self.wish.mode)
        }

    def check(self) -> None:
        charged = self.charges()
        asked = self.asking_jobs()
        assert asked <= self.answered.keys(), f"answered by nothing: {asked - self.answered.keys()}"
        contents = asked
        left = [
            one.job
            for one in charged.values()
            if one.status == "RESERVED" and self.contents[one.question] in contents
        ]
        assert not left, f"reserved for nothing, and charged: {left}"
        done = [one for one in charged.values() if one.status == "DONE"]
        assert len({one.query for one in done}) == len(done)
        self.check_statement(charged)
        code, told = verified(self.active)
        if (
            code
            and self.active in self.forgetful
            and (named := re.search(r"--forcerun (\w+)", told))
        ):
            self.run(named[1])
            code, told = verified(self.active)
        assert code == 0, told
        code, told = ask(self.active, "ledger", "verify", "results")
        assert code == 0, told

    def check_statement(self, charged: dict[str, Charge]) -> None:
        stated = json.loads((self.active / "results" / "privacy.json").read_text())["datasets"][
            LINEAGE
        ]
        paid = [one for one in charged.values() if one.status != "RESERVED"]
        agrees(stated["lifetime_spent"], [*charged.values()], "of its life")
        contents = self.asking_jobs()
        inside = [one for one in charged.values() if self.contents[one.question] in contents]
        agrees(stated["epsilon"], inside, "of this DAG")
        if self.wish.mode == "release":
            assert plain.epsilon([*charged.values()], DELTA) <= self.wish.lifetime + SAME
        paths = [
            f"results/{name}/final/{total:g}/weights.safetensors"
            for name, one in self.wish.experiments.items()
            for total in one.targets
        ]
        assert sorted(stated["artifacts"]) == sorted(paths)
        for path in paths:
            self.check_model(path, stated["artifacts"][path], paid, charged)

    def check_model(
        self, path: str, stated: dict[str, Any], paid: list[Charge], charged: dict[str, Charge]
    ) -> None:
        one = self.wish.experiments[stated["experiment"]]
        total = float(path.split("/")[3])
        keys = [
            key
            for _, _, key in questions(one, self.data.version, self.wish.mode)
            if key[0] == "run_trial" or key[1] == total
        ]
        own = [charged[self.answered[key][-1]] for key in keys]
        agrees(stated["epsilon"], own, f"the price of {path}")
        assert stated["epsilon"] <= total or self.wish.mode == "research", path
        last = max(other.at for other in own)
        earlier = [
            other
            for other in paid
            if other.released is not None and other.released < last and other not in own
        ]
        whole = stated["with_earlier"] or stated
        agrees(
            whole["epsilon"],
            [*own, *earlier],
            f"{path} with what was released before it was planned",
        )
        (weights,) = [
            token for key in keys if key[0] == "train_final" for token in self.answered[key][-1:]
        ]
        (kept,) = self.home.glob(
            f"releases/{LINEAGE}/{charged[weights].query}/*/weights.safetensors"
        )
        there = [
            self.active / f"results/{name}/final/{total:g}/weights.safetensors"
            for name in self.wish.experiments
        ]
        assert kept.read_bytes() in [file.read_bytes() for file in there if file.is_file()]


def _behind(rule_: str) -> tuple[str, ...]:
    return {"train_final": ("run_trial",), "evaluate": ("run_trial", "train_final")}.get(rule_, ())


def agrees(stated: float, some: list[Charge], what: str) -> None:
    """The statement says what the plain composition says, to the last digits that the two have in
    common."""
    spent = plain.epsilon(some, DELTA)
    assert stated == pytest.approx(spent, rel=SAME, abs=SAME), (
        f"{what}: {stated} stated, {spent} by hand"
    )
