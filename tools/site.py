#!/usr/bin/env python3
"""Build the documentation as a site: `make docs` calls it. The result is build/site.

Pages link to files outside docs/ (examples, figures, CHANGELOG). A site must hold all it links to, so those files are
copied beside the pages, and the links are changed in the copy. Then zensical makes HTML of it, with search. The build
fails when it warns, for example of a link that leads nowhere.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools import links, llms  # noqa: E402

GROUPS = {"Tutorials": "tutorials", "How-to guides": "how-to", "Reference": "reference", "Explanation": "explanation"}
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")


def copy(target: Path) -> None:
    """docs/ into a new folder, with what its pages link to."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "docs", target)
    (target / "README.md").rename(target / "index.md")
    waiting = sorted(target.rglob("*.md"))
    done: set[Path] = set()
    while waiting:
        page = waiting.pop()
        if page not in done:
            done.add(page)
            waiting += _repair(page, target)


def _repair(page: Path, target: Path) -> list[Path]:
    """Let links to files outside docs/ lead to copies of them; returns the pages among the copies."""
    source = _source(page, target)
    copied: list[Path] = []

    def changed(found: re.Match[str]) -> str:
        if ":" in found[2]:
            return found[0]
        wanted = (source.parent / found[2]).resolve()
        place = _place(wanted, target)
        if wanted.is_dir():
            place = _list(wanted, place)
        if not place.exists() and wanted.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(wanted, place)
            if place.suffix == ".md":
                copied.append(place)
        return f"{found[1]}{os.path.relpath(place, page.parent)}{found[3]}"

    page.write_text(_outside_code(page.read_text(), changed))
    return copied


def _list(folder: Path, place: Path) -> Path:
    """A page that lists the files of a folder, beside copies of them."""
    files = sorted(file for file in folder.iterdir() if file.is_file())
    place.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy(file, place)
    page = place / "index.md"
    page.write_text(f"# {folder.name}\n\n" + "".join(f"- [{file.name}]({file.name})\n" for file in files))
    return page


def _outside_code(text: str, change: object) -> str:
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else _LINK.sub(change, part) for part in parts)  # type: ignore[call-overload]


def _place(file: Path, target: Path) -> Path:
    """Where a file of the repository is in the site."""
    if file == ROOT / "docs" / "README.md":
        return target / "index.md"
    inside = file.is_relative_to(ROOT / "docs")
    return target / (file.relative_to(ROOT / "docs") if inside else Path("files") / file.relative_to(ROOT))


def _source(page: Path, target: Path) -> Path:
    """The file of the repository that a page of the site was copied from."""
    inside = page.relative_to(target)
    if inside == Path("index.md"):
        return ROOT / "docs" / "README.md"
    return ROOT / inside.relative_to("files") if inside.parts[0] == "files" else ROOT / "docs" / inside


def navigation() -> str:
    """The pages in the order of the index, as TOML for zensical."""
    parts = ['  { "Overview" = "index.md" },']
    for group in GROUPS:
        items = ", ".join(f'{{ "{title}" = "{page}" }}' for title, page in llms.listed(group))
        parts.append(f'  {{ "{group}" = [{items}] }},')
    decisions = re.findall(r"^\| \[(\d{4})\]\((decisions/[\w.-]+)\)", llms.INDEX.read_text(), re.MULTILINE)
    items = ", ".join(f'{{ "{number}" = "{page}" }}' for number, page in decisions)
    return "nav = [\n" + "\n".join([*parts, f'  {{ "Decisions" = [{items}] }},']) + "\n]\n"


def build() -> int:
    if wrong := links.broken():
        print("\n".join(wrong))
        return 1
    config = (ROOT / "zensical.toml").read_text()
    copy(ROOT / tomllib.loads(config)["project"]["docs_dir"])
    made = ROOT / "build" / "zensical.toml"
    told = config.replace('"build/docs"', '"docs"').replace('"build/site"', '"site"')
    made.write_text(told.replace("[project.theme]", f"{navigation()}\n[project.theme]", 1))
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", str(made)]
    done = subprocess.run(command, cwd=ROOT / "build", check=False)
    if done.returncode == 0:
        print("build/site/index.html")
    return done.returncode


if __name__ == "__main__":
    sys.exit(build())
