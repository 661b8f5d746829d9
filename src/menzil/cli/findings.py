"""Findings of the doctor, for a person or a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from menzil.cli.lazy import COULD_NOT, SOMETHING_TO_FIX
from menzil.cli.show import COLOURS, cell, document, paint
from menzil.watch.finding import Finding


def report(findings: Sequence[Finding], *, as_json: bool) -> int:
    """Print them and return the exit code: 1 something to fix, else 2 if a look was not possible, else 0."""
    to_fix = any(finding.needs_fixing for finding in findings)
    unseen = any(finding.level == "unknown" for finding in findings)
    if as_json:
        document({"ok": not (to_fix or unseen), "findings": [asdict(finding) for finding in findings]})
    else:
        width = max((len(finding.check) for finding in findings), default=0)
        for finding in findings:
            level = paint(finding.level.ljust(8), COLOURS.get(finding.level))
            click.echo(f"{level}  {finding.check.ljust(width)}  {cell(finding.sentence)}")
            if finding.repair:
                click.echo(f"{'':8}  {'':{width}}  → {cell(finding.repair)}")
    return SOMETHING_TO_FIX if to_fix else COULD_NOT if unseen else 0
