"""Where dpladder's files lie, and what commands and the parse agree on. It imports next to nothing,
for `dpladder run` starts Snakemake behind it."""

from __future__ import annotations

from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
SHARE = SOURCE / "dpladder" / "share"  # what an installed dpladder carries of the clone
INSTALLED = SHARE.is_dir()
ROOT = SHARE if INSTALLED else SOURCE.parent
DEMO = ROOT / "config" / "config.yaml"
# names a file descriptor for what is said to people, where Snakemake's words go elsewhere
SAY = "DPLADDER_SAY"
# said wherever records may have been edited, and never because they were
STANDS = (
    "What was released stands, of the records as they were then; another dataset.version asks anew"
)
