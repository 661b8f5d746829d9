"""The program that becomes the supervisor: `python -I -S boot.py HOME LOCK`.

The supervisor needs the standard library alone. Its two parent packages stand in as empty shells, because the real
ones load the client and psycopg: two tenths of a second that every start would wait for.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType


def boot(home: str, lock: int) -> None:
    """Leave our parent, so that it need not reap us, and supervise."""
    if os.fork():
        os._exit(0)
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 (pathlib is not loaded yet)
    for name, path in (("menzil", os.path.dirname(here)), ("menzil.embedded", here)):  # noqa: PTH120
        shell = ModuleType(name)
        shell.__path__ = [path]
        sys.modules[name] = shell
    from menzil.embedded.supervisor import main

    main(home, lock)


if __name__ == "__main__":
    boot(sys.argv[1], int(sys.argv[2]))
