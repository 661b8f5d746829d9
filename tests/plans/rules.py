"""What a plan must not do, whatever the planner believes about the tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tests.plans.capture import Node, Plan

# Read whole on purpose: they have one row each.
READ_WHOLE = re.compile(r"setting_value|home")
# Housekeeping that reads the newest twenty proofs.
ON_PURPOSE = ("from menzil.look k where k.xmin <> all",)
# Tables whose rows are changed all the time and looked for by a part of their key: behind one live row there may be
# thousands of dead ones.
CHANGING = frozenset({"line", "look", "tally", "run", "lane"})
# A partial index is a working list and may be walked; what it lists must stay few.
FEW = 10
INDEX_SCANS = ("Index Scan", "Index Only Scan", "Bitmap Index Scan")


def whole_tables(plans: Iterable[Plan], registers: frozenset[str]) -> set[str]:
    """Statements that read every row of a table. Registers are sequences: one row each."""
    return {
        f"{node['Node Type']} on {node['Relation Name']}: {plan.first_words}"
        for plan in plans
        for node in plan.nodes()
        if node["Node Type"].endswith("Seq Scan")
        and not any(words in plan.query for words in ON_PURPOSE)
        and node["Relation Name"] not in registers
        and not READ_WHOLE.fullmatch(node["Relation Name"])
    }


def whole_indexes(plans: Iterable[Plan]) -> set[str]:
    """Statements that walk through an index from one end to the other: a table read whole by another name."""
    return {
        f"{node['Node Type']} on {node.get('Index Name')}: {plan.first_words}"
        for plan in plans
        for node in plan.nodes()
        if node["Node Type"] in INDEX_SCANS and "Index Cond" not in node and _met(node) > FEW
    }


def _met(node: Node) -> float:
    """Rows that a scan met, whether it kept them or not."""
    return float(node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)))


def joins(plans: Iterable[Plan]) -> set[str]:
    """Joins of tables by hash or merge: both read all of one side first."""
    return {
        f"{node['Node Type']} of {table['Relation Name']}: {plan.first_words}"
        for plan in plans
        for node in plan.nodes()
        if node["Node Type"] in ("Hash Join", "Merge Join")
        for table in _inputs(node)
        if "Relation Name" in table
    }


def _inputs(join: Node) -> Iterator[Node]:
    """The two sides of a join. What a side found by probes of its own, in a nested loop, is no table any more."""
    for child in join.get("Plans", ()):
        if child.get("Parent Relationship") in ("Outer", "Inner"):
            if child["Node Type"] in ("Hash", "Sort", "Materialize", "Memoize"):
                yield from _inputs(child)
            else:
                yield child


def sorts(plans: Iterable[Plan]) -> set[str]:
    """Rows of a changing table that are sorted, or gathered in a bitmap, instead of read in the order of an index.

    The planner counts live rows, so to sort the one version of a lane looks cheap; it then reads every dead version.
    """
    return {
        f"{node['Node Type']} of {table['Relation Name']}: {plan.first_words}"
        for plan in plans
        for node in plan.nodes()
        for table in _gathered(node)
        if table["Relation Name"] in CHANGING
    }


def _gathered(node: Node) -> Iterator[Node]:
    if node["Node Type"] == "Bitmap Heap Scan":
        yield node
    elif node["Node Type"] in ("Sort", "Incremental Sort"):
        yield from (child for child in _inputs(node) if "Relation Name" in child)


def compiled(plans: Iterable[Plan]) -> set[str]:
    """Statements for which the JIT compiler was started: hundreds of milliseconds for a call of one."""
    return {plan.first_words for plan in plans if plan.compiled}
