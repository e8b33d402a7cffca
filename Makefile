# dpladder: every target sets up what it needs. `make` alone lists them.

PYTHON3 ?= python3
PY := .venv/bin/python
# Neighbours in a file share what was made for them, so each worker takes a run of tests, and what
# the other has left at the end.
PARALLEL := -n auto --dist worksteal
# Whole runs wait now and then: for a disk, a process that starts, Snakemake's turn.
RUNS := -n $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1))) --dist worksteal
# Neither fast tests nor slow ones: a cluster, planted bugs, and measurements.
ELSEWHERE := $(foreach room,slurm mutation benchmarks,--ignore=tests/$(room))
RUN := PATH="$(CURDIR)/.venv/bin:$$PATH"
# Set on some machines; a run of the workflow starts Python twenty times, and compiling PyTorch's
# sources anew takes as long as its work.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help env demo test test-all test-ci test-slow test-mutants test-matrix test-slurm test-slurm-ci lint golden approve docs site lock bench compare-learners compare-hpo papers report clean

help: ## list the targets
	@awk -F ":.*## " '/^[a-z-]+:.*##/ {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: ## make .venv hold exactly what the lock names (every target below does this first)
	@$(PYTHON3) envs/bootstrap.py

demo: env ## tune and train on 5,000 real images at a total of epsilon = 1
	@$(RUN) dpladder run

test: env ## fast tests: units, and real workflow runs on tiny data (3 minutes on two cores)
	@$(PY) -m pytest $(PARALLEL) -m "not long and not ci and not weaker" tests $(ELSEWHERE)

test-ci: env ## what CI runs besides: a whole run a family, crashes, short audits, a few planted bugs
	@$(PY) -m pytest $(RUNS) -m "(ci or weaker) and not long" tests --ignore=tests/slurm --ignore=tests/benchmarks

test-all: env ## everything: also crash tests, statistical tests and planted bugs
	@$(PY) -m pytest $(PARALLEL) tests --ignore=tests/slurm --ignore=tests/benchmarks

test-slow: env ## all whole runs, crash tests, and statistical tests at full strength: nightly
	@$(PY) -m pytest $(PARALLEL) -m "long or ci" tests $(ELSEWHERE)

test-mutants: env ## bugs planted in the privacy core, one at a time: each must be caught
	@$(PY) -m pytest $(PARALLEL) tests/mutation

# A tenth of all bugs a night, another tenth the next one. `make test-matrix EVERY=1 BUGS_IN=...`
# plants all bugs of the files or folders that it names.
BUGS_IN ?= $(addprefix privacy/,accounting release ledger statement) $(addprefix learn/,$(addsuffix .py,bounds counts curator descent_noise queries records)) $(addprefix jobs/,$(addsuffix .py,count_units features release reservation))
BUGS_SEEN_BY ?= $(addprefix tests/,privacy learn papers jobs audits golden formats external_ledger)
EVERY ?= 10
test-matrix: env ## which tests fail for which generated bug, into test-matrix/: nightly
	@mkdir -p test-matrix && rm -f test-matrix/bugs.*
	@OMP_NUM_THREADS=1 $(PY) -m pytest -p mutation.kills -p mutation.unshrunk -p no:xdist -p no:cacheprovider -m "not long and not ci and not weaker" $(BUGS_SEEN_BY) --killers 3 --seconds 20 --every $(EVERY) --after $$(($$(date +%j | sed 's/^0*//') % $(EVERY))) --bugs-out test-matrix/bugs.jsonl --bugs-in $(BUGS_IN)
	@cat test-matrix/bugs.md

test-slurm: env ## the workflow on a real SLURM cluster of three nodes: needs root, slurm-wlm and munge
	@$(PY) -m pytest -rs tests/slurm

test-slurm-ci: env ## the same, as CI runs it: without what takes minutes of waiting
	@$(PY) -m pytest -rs -m "not long" tests/slurm

lint: env ## style, types, generated files, lock, workflow
	@$(PY) envs/lock.py --check
	@$(PY) -m dpladder.config.docs --check
	@$(PY) tools/features.py --check
	@$(PY) -m dpladder.report.schemas --check
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@$(RUN) snakefmt --check Snakefile workflow
	@$(RUN) snakemake --lint

golden: env ## renew the golden record of what mechanisms compute, draw and charge; then read the diff
	@$(PY) tests/golden/renew.py

approve: env ## renew tests/approved, the texts that tests compare messages with; then read the diff
	@$(PY) -m pytest -q -n 0 -p no:cacheprovider --approve tests --ignore=tests/slurm --ignore=tests/benchmarks

docs: env ## regenerate the schemas, the key reference and the page of features
	@$(PY) -m dpladder.config.docs
	@$(PY) tools/features.py
	@$(PY) -m dpladder.report.schemas

site: env ## build the documentation as a site, every link checked, into site/
	@$(PY) -m uv run -q --no-project --isolated --with-requirements docs/requirements.lock mkdocs build -q --strict

lock: env ## recompile the exact lock from pyproject.toml
	@$(PY) envs/lock.py

bench: env ## measure speed and size against floors and peers, as ratios
	@for script in tests/benchmarks/bench_*.py; do echo "== $$script"; $(PY) $$script || exit 1; done

compare-learners: env ## set the learners against each other, at the same totals, on public data (4 minutes)
	@$(PY) tools/compare_learners.py mnist5k
	@$(PY) tools/compare_learners.py mnist5k-112

compare-hpo: env ## set every way to search against the default on public data (under an hour)
	@$(PY) tools/compare_hpo.py

papers: env ## make what docs/reproductions.md calls "not run", as far as a GPU and the data are here (hours)
	@$(RUN) $(PY) tools/papers.py

report: env ## write Snakemake's own report.html of the demo, or of CONFIG=... (with run times: keep it to yourself)
	@$(RUN) dpladder run $(CONFIG) --report report.html

clean: ## remove results, caches and logs here; never the ledger or the noise key
	rm -rf results private logs report.html .snakemake .pytest_cache .mypy_cache .ruff_cache .hypothesis
