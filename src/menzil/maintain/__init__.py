"""MAINTAIN: one janitor per file, each a sweep that any worker may do and one of them does."""

from menzil.maintain.janitor import Janitor
from menzil.maintain.janitors import JANITORS
from menzil.maintain.rounds import Rounds

__all__ = ["JANITORS", "Janitor", "Rounds"]
