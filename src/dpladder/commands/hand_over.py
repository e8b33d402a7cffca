"""Stands for a job where Snakemake starts one: has the worker run its script, and ends as that did.

    python -IS hand_over.py WORKER PYTHON SCRIPT

Each job starts it, so it imports next to nothing: what `signal` and `socket` add to the system's
own modules would double its time. Where no worker takes the script it becomes the command itself.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import _socket as socket
import os
import sys

KILLED = 128 + signal.SIGKILL


def hand_over(worker: str, script: str) -> int | None:
    """Have a worker run a script in this folder and environment.

    Returns:
        Its exit code, or 128 and the signal's number where a signal ended it; None where no worker
        began it.
    """
    environment = [b"%s=%s" % pair for pair in os.environb.items()]
    message = b"\0".join([os.fsencode(script), os.getcwdb(), *environment])
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(f"\0{worker}")
        if not is_same_user(connection):
            return None
        connection.sendall(len(message).to_bytes(8, "big") + message)
        if not connection.recv(1):
            return None
        # The job heeds an interrupt, and this process waits for it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except OSError:
        return None
    else:
        ended = connection.recv(1)
        return ended[0] if ended else KILLED  # the worker was, and the job with it
    finally:
        connection.close()


def is_same_user(connection: socket.socket) -> bool:
    """Whether this user's process is at the other end. The name of a worker that has ended is free
    for anybody to listen by."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[4:8], sys.byteorder) == os.geteuid()


def main(worker: str, command: list[str]) -> None:
    """Run a command by a worker, or in this process; end as it ends."""
    # a command of another environment is no worker's
    code = hand_over(worker, command[1]) if command[0] == sys.executable else None
    if code is None:
        os.execvp(command[0], command)
    if code > 128:
        for ignored in (signal.SIGINT, signal.SIGPIPE):
            signal.signal(ignored, signal.SIG_DFL)
        os.kill(os.getpid(), code - 128)
    sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
