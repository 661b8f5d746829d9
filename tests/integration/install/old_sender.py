"""A program of an old release that sends until its standard input ends, and prints the id of each message it sent."""

from __future__ import annotations

import os
import sys
import threading

import menzil


def main() -> None:
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    with menzil.Menzil(os.environ["MENZIL_DSN"]) as mq:
        n = 0
        while not over.is_set():
            n += 1
            try:
                print(mq.send("quick", {"n": n}, ordering_key=str(n % 7)), *mq.send_batch("quick", [1, 2]), flush=True)
            except menzil.MenzilError as error:
                print("refused", type(error).__name__, error.message, flush=True)


if __name__ == "__main__":
    main()
