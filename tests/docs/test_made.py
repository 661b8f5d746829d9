"""What is made from the code and from the index is current, every link leads somewhere, and the site is built of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import DOCS
from tools import cli_options, links, llms, site

CLI = (DOCS / "reference" / "cli.md").read_text()


def test_the_page_of_options_is_what_the_commands_say() -> None:
    assert cli_options.PAGE.read_text() == cli_options.page(), "python tools/cli_options.py writes it"


def test_every_option_that_the_command_line_page_names_exists() -> None:
    # The page groups options by purpose, so it is compared as a whole. tests/unit/test_cli_words.py looks the other way
    there = set(re.findall(r"--[a-z][a-z-]+", cli_options.page()))
    assert set(re.findall(r"--[a-z][a-z-]+", CLI)) - there == set()


def test_the_page_of_the_worker_has_every_option_of_its_command_and_no_other() -> None:
    page = (DOCS / "reference" / "worker.md").read_text()
    table = page.split("| option | meaning |")[1].split("\n\n")[0]
    listed = {option for row in table.splitlines() for option in re.findall(r"`(--[a-z-]+)", row.partition(" | ")[0])}
    (told,) = re.findall(r"## menzil worker\n(.*?)\n## ", cli_options.page(), re.DOTALL)
    there = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", told, re.MULTILINE))
    assert there - {"--help", "--verbose"} == listed


def test_llms_txt_is_what_the_index_says() -> None:
    assert llms.FILE.read_text() == llms.text(), "python tools/llms.py writes it"
    assert llms.text(llms.INDEX.read_text().replace("- [Deploy]", "- [Send away]")) != llms.text()


@pytest.mark.parametrize(("group", "folder"), site.GROUPS.items())
def test_the_index_lists_each_page_once_in_its_group(group: str, folder: str) -> None:
    pages = [page for _, page in llms.listed(group)]
    assert sorted(pages) == sorted(page.relative_to(DOCS).as_posix() for page in (DOCS / folder).rglob("*.md"))


def test_every_link_and_every_anchor_leads_somewhere() -> None:
    assert links.broken() == []


def test_a_link_that_leads_nowhere_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "there.md").write_text("# There\n\n## Two words, `code`\n\n## Two words, `code`\n")
    text = (
        "[a](docs/there.md#two-words-code) [b](docs/there.md#two-words-code-1) [c](https://example.com) `[d](e.md)`\n"
    )
    (tmp_path / "README.md").write_text(text)
    assert links.broken(tmp_path) == []
    (tmp_path / "README.md").write_text("[a](docs/gone.md) [b](docs/there.md#three-words) [c](#here)\n")
    assert len(links.broken(tmp_path)) == 3


def test_the_site_holds_everything_that_its_pages_link_to(tmp_path: Path) -> None:
    target = tmp_path / "docs"
    site.copy(target)
    lost = [
        f"{page.relative_to(target)}: {link}"
        for page in target.rglob("*.md")
        for link in links.links(page)
        if not re.match(r"[a-z]+:|#", link) and not (page.parent / link.partition("#")[0]).exists()
    ]
    assert lost == []
    assert "how-to/deploy.md" in site.navigation()
    assert (target / "files" / "CHANGELOG.md").exists()


def test_the_page_of_the_worker_lists_every_job_with_its_interval() -> None:
    jobs = (DOCS.parent / "src/menzil/sql/functions/4_housekeeping/jobs.sql").read_text()
    there = dict(re.findall(r"^  \('(\w+)', '(?:[^']|'')*', '([^']+)',", jobs, re.MULTILINE))
    page = (DOCS / "reference" / "worker.md").read_text()
    table = page.split("| job | every | does |\n|---|---|---|\n")[1].split("\n\n")[0]
    cells = [row.split(" | ") for row in table.splitlines()]
    listed = {name: every for names, every, *_ in cells for name in names.removeprefix("| ").split(", ")}
    assert len(there) > 20
    assert listed == there
