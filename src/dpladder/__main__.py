"""`python -m dpladder`: the commands, where no script of theirs is on the path."""

from __future__ import annotations

from dpladder.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
