"""Learners and searches of other packages: the example of docs/extend.md, installed as users do."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints, distributions
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import ROOT, in_new_python

from dpladder.config import findings, plugins
from dpladder.config.learner_sections import LearnerSection
from dpladder.config.learners import learner_of
from dpladder.config.method import LearnerMethod
from dpladder.plan import package
from dpladder.privacy.statement.check import check, read_statement

EXAMPLE = ROOT / "examples" / "own_methods"
SHORT = """
from dpladder_audit import every, learners
from dpladder_audit.engine import attack, findings
attack.ROUNDS, attack.RUNS, attack.FEW_RUNS = 40, 1500, 100
assert {"own.nearest_mean", "own.halving"} <= {*every.groups()}
plain, *_ = learners.attacks(None, "own.nearest_mean")
report = attack.run_audit([plain], b"public", among=50)
report = findings.Report(0, (*report.findings, *learners.findings("own.nearest_mean", b"k" * 32)))
print("ok" if report.ok else findings.table(report))
"""
LEARNER, SEARCH = "dpladder.learners", "dpladder.searches"
BROUGHT = """
from typing import Literal

from dpladder.config.learner_sections import LearnerSection
from dpladder.config.method import LearnerMethod


class Brought(LearnerSection):
    name: Literal["own.learner"] = "own.learner"
    {field}


METHOD = LearnerMethod(section=Brought, queries=len, train=len)
"""


@pytest.fixture
def installed(tmp_path, monkeypatch) -> Path:
    """Where the example is installed, for all that is started from here."""
    place = tmp_path / "packages"
    install = ("-m", "uv", "pip", "install", "-q", "--no-deps", "--no-build-isolation")
    subprocess.run(
        [sys.executable, *install, "--offline", "--target", str(place), str(EXAMPLE)], check=True
    )
    monkeypatch.setenv("PYTHONPATH", str(place))
    return place / "own_methods"


@pytest.mark.ci
def test_methods_of_another_package_are_run_charged_and_stated_as_theirs(installed, project):
    searched = {"learner": {"name": "dp_gd"}, "hpo": {"name": "own.halving"}}
    project.configure(
        {
            "learner": {"name": "own.nearest_mean"},
            "sweep": {"rungs": []},
            "experiments": {"searched": searched},
        }
    )
    project.finish("results/privacy.json")
    statement = read_statement(project.results)
    assert check(statement, project.results) == []
    stated = {
        (line["experiment"], line["rule"]) for line in statement["datasets"]["tiny"]["spends"]
    }
    assert {("main", "train_final"), ("searched", "private_search")} <= stated
    page = (project.results / "privacy.md").read_text("utf-8")
    for told in ("by own.nearest_mean of own-methods", "by own.halving of own-methods"):
        assert told in page
    assert "its authors' word" in page


SHARES = (
    (
        "import Positive\n",
        "import Positive\nfrom dpladder.config import learner_sections as known\n",
    ),
    (
        "\n\ndef queries(",
        "    shared: known.SharedCovariance | None = None\n\n"
        "    @property\n    def purchases(self) -> dict[str, Any]:\n"
        "        return known.configured_purchases(shared=self.shared)\n\n\ndef queries(",
    ),
    (
        "    return (sums,)\n",
        "    from dpladder.learn.second_order import covariance\n\n"
        "    return sums, covariance(float('inf'), learner.radius)\n",
    ),
    ("noised = yield queries[0].at()", "noised, _ = yield [query.at() for query in queries]"),
)


@pytest.mark.long
def test_a_learner_of_another_package_asks_what_was_released_before(installed, project):
    room = installed / "nearest_mean.py"
    code = room.read_text("utf-8")
    for old, new in SHARES:
        assert old in code
        code = code.replace(old, new)
    room.write_text(code, "utf-8")
    shared = {"name": "own.nearest_mean", "shared": {"epsilon": 0.3}}
    project.configure({"learner": shared, "sweep": {"rungs": []}})
    project.finish("results/privacy.json")
    statement = read_statement(project.results)
    assert check(statement, project.results) == []
    spends = statement["datasets"]["tiny"]["spends"]
    assert [line["rule"] for line in spends if line["label"] == "sums"] == ["estimate_sums"]


@pytest.mark.long
def test_the_audit_covers_them_and_a_learner_that_lies_is_caught(installed):
    """Weights that are longer than they may be are cut by the curator, and so are no lie."""
    assert in_new_python(SHORT).strip() == "ok"
    room = installed / "nearest_mean.py"
    honest = room.read_text("utf-8")
    room.write_text(honest.replace("(arange", "9 * (arange"), "utf-8")
    assert in_new_python(SHORT).strip() == "ok"
    peeking = "import gc\n    from dpladder.learn.curator import Curator\n    seen = next("
    peeking += "one for one in gc.get_objects() if isinstance(one, Curator))\n    "
    room.write_text(
        honest.replace(
            "noised = yield queries[0].at()", f"{peeking}noised = yield queries[0].at()"
        ).replace("cat([means, bias]", "cat([means + len(seen._data.labels), bias]"),
        "utf-8",
    )
    found = in_new_python(SHORT)
    assert "FAILED" in found
    assert "weights that follow records" in found


def entry(value: str, name: str = "own.nearest_mean", group: str = LEARNER) -> EntryPoint:
    return EntryPoint(name, value, group)


@pytest.fixture(name="found")
def _found(monkeypatch):
    """What becomes of entry points."""
    monkeypatch.syspath_prepend(EXAMPLE)

    def of(*given: EntryPoint, taken: tuple[str, ...] = ()) -> dict[str, LearnerMethod]:
        monkeypatch.setattr(plugins, "installed_entry_points", lambda: EntryPoints(given))
        return plugins.methods_of_packages(LEARNER, LearnerMethod, LearnerSection, taken)

    return of


def test_an_entry_point_brings_a_method(found):
    [method] = found(entry("own_methods.nearest_mean")).values()
    assert (method.name, method.built_in) == ("own.nearest_mean", False)


@pytest.mark.parametrize(("package", "own"), [("dpladder", True), ("dpladder-more", False)])
def test_a_name_without_a_dot_is_kept_for_dpladders_own_distribution(
    package, own, found, tmp_path, monkeypatch
):
    (tmp_path / "plain.py").write_text(
        BROUGHT.format(field="").replace("own.learner", "plain_learner"), "utf-8"
    )
    described = tmp_path / f"{package.replace('-', '_')}-2.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 2.0\n")
    (described / "entry_points.txt").write_text(f"[{LEARNER}]\nplain_learner = plain\n")
    monkeypatch.syspath_prepend(tmp_path)
    [distribution] = distributions(path=[str(tmp_path)])
    if own:
        [method] = found(*distribution.entry_points).values()
        assert (method.name, method.package, method.built_in) == ("plain_learner", package, True)
        return
    with pytest.warns(UserWarning, match=f"{package}: plain_learner is left out: .*have a dot"):
        assert found(*distribution.entry_points) == {}


@pytest.mark.parametrize(("package", "own"), [("dpladder", True), ("dpladder-more", False)])
def test_rules_come_from_dpladders_own_distribution_alone(package, own, tmp_path, monkeypatch):
    """Anybody else's could take the place of a rule of the workflow."""
    described = tmp_path / f"{package.replace('-', '_')}-2.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 2.0\n")
    (described / "entry_points.txt").write_text("[dpladder.rules]\nrun_trial = rules_of_tests\n")
    (tmp_path / "rules_of_tests.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    [distribution] = distributions(path=[str(tmp_path)])
    monkeypatch.setattr(plugins, "installed_entry_points", lambda: distribution.entry_points)
    assert len(plugins.rules_of_packages()) == own


@pytest.mark.parametrize(
    ("broken", "taken", "why"),
    [
        (entry("own_methods.nearest_mean", "dp_gd"), (), "must have a dot"),
        (entry("own_methods.nearest_mean"), ("own.nearest_mean",), "nobody else's"),
        (entry("own_methods.nearest_mean", "own.other"), (), r"name: Literal\['own.other'\]"),
        (entry("own_methods.nowhere"), (), "No module named"),
    ],
    ids=["no dot", "taken", "another name", "no module"],
)
def test_one_that_cannot_be_used_stands_in_nobodys_way(broken, taken, why, found):
    with pytest.warns(UserWarning, match=why):
        assert found(broken, taken=taken) == {}


def test_a_section_with_a_list_is_refused_with_what_to_write(found, tmp_path, monkeypatch) -> None:
    (tmp_path / "listing.py").write_text(BROUGHT.format(field="widths: tuple[list[int], ...] = ()"))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.warns(UserWarning, match=r"widths: .*Write tuple\[\.\.\.\]"):
        assert found(entry("listing", "own.learner")) == {}


def test_a_learner_of_another_package_may_take_findings(monkeypatch) -> None:
    many = SimpleNamespace(labels="many")
    config = SimpleNamespace(dataset=many, learner=SimpleNamespace(name="own.one"))
    rule = findings.with_finding_rules({})["learner.name"]
    assert [*rule(config)]
    monkeypatch.setitem(
        findings.TAKEN, "learner.name", (*findings.TAKEN["learner.name"], "own.one")
    )
    assert not [*rule(config)]


TRAITS = sorted({*vars(LearnerSection)} - {*LearnerSection.model_fields, "model_config"})


@pytest.mark.parametrize("field", [name for name in TRAITS if not name.startswith("_")])
def test_a_field_by_the_name_of_a_trait_is_refused(
    field: str, found, tmp_path, monkeypatch
) -> None:
    """The trait would hide it, and a plan would go by the one where a user wrote the other."""
    (tmp_path / "brought.py").write_text(BROUGHT.format(field=f"{field}: float = 0.2"), "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "brought", raising=False)
    with pytest.warns(UserWarning, match=f"{field}: traits of LearnerSection have these names"):
        assert found(entry("brought", "own.learner")) == {}


def test_what_is_no_method_is_left_out(found, tmp_path, monkeypatch) -> None:
    (tmp_path / "bare.py").write_text("METHOD = 3", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.warns(
        UserWarning, match="bare.METHOD must be a dpladder.config.method.LearnerMethod"
    ):
        assert found(entry("bare", "own.learner")) == {}


def test_what_is_not_installed_is_refused_by_name():
    with pytest.raises(ValueError, match=r"own\.nearest_mean"):
        learner_of({"name": "own.nearest_mean"})


def test_the_digest_of_the_code_follows_packages_that_bring_methods(tmp_path, monkeypatch):
    brought = tmp_path / "followed"
    brought.mkdir()
    (brought / "__init__.py").touch()
    (brought / "inner.py").write_text("MOST = 1", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    section = type("Section", (), {"__module__": "followed.section"})
    monkeypatch.setattr(package, "METHODS", {"followed.one": SimpleNamespace(section=section)})
    digests = set()
    for most in ("MOST = 1", "MOST = 2"):
        (brought / "inner.py").write_text(most, "utf-8")
        package.digest.cache_clear()
        digests.add(package.digest())
    package.digest.cache_clear()
    assert len(digests) == 2
