"""Rooms that the published wheel `menzil` leaves out: distributions of their own, which an extra requires.

A checkout and the sdist install the whole house, and then there is no such distribution.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from menzil.model.errors import UsageError


def must_be_whole(room: str, module: str, distribution: str, extra: str, less: str = "") -> None:
    """Refuse a room whose module is missing, and one of another version: pip upgrades `menzil` without its parts.

    `less` is what the hint says of a smaller extra that may be enough.
    """
    if find_spec(module) is None:
        raise UsageError(f"{room} is not installed.", hint=f"pip install 'menzil[{extra}]'{less}")
    try:
        own, there = version("menzil"), version(distribution)
    except PackageNotFoundError:  # the whole house, or modules that Spark brought to an executor
        return
    if own != there:
        sentence = f"menzil is {own} and {distribution} is {there}: both must have the same version."
        raise UsageError(sentence, hint=f"pip install 'menzil[{extra}]=={own}'")
