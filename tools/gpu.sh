#!/usr/bin/env bash
# Checks and measures on a GPU whatever CI, which has none, cannot: eight minutes on one card.
#
#   tools/gpu.sh [check ...]         all checks of tools/gpu_checks.py, or those named
#
# It needs Python 3.12 with PyTorch for CUDA, timm, h5py and transformers. Other packages may lie as
# wheels in .wheels/ (tools/gpu_wheels.sh fetches them) for a machine without a network. Results are
# printed, and written to $OUT/gpu.md; without OUT, to gpu/gpu.md. DEVICE=cpu rehearses it.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-gpu}
site=${TMPDIR:-/tmp}/dpladder-gpu-site
mkdir -p "$out"
if compgen -G ".wheels/*.whl" > /dev/null; then
  python3 -m pip install -q --no-index --no-deps --no-compile --upgrade --target "$site" .wheels/*.whl || exit 1
  # The package itself, for its version; its code is read from src/.
  PYTHONPATH="$site" python3 -m pip install -q --no-index --no-deps --no-build-isolation \
    --no-compile --target "$site" . || exit 1
fi
export PYTHONPATH="$PWD/src:$PWD/tests:$PWD/tests/benchmarks:$PWD/tools:$site${PYTHONPATH:+:$PYTHONPATH}"
export PATH="$site/bin:$PATH" DPLADDER_HOME="$(mktemp -d)" PYTHONUNBUFFERED=1
python3 tools/gpu_checks.py "$@" 2>&1 | tee "$out/gpu.md"
