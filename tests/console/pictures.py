"""Pictures of the console and the report, in light and dark: what each shows, and how a browser takes it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page

from tests.console.shop import Shop

SCHEMES = ("light", "dark")
#: Pages of documentation are about 900 pixels wide: a wider picture is shown smaller, and its texts with it.
WIDTH = 1120
#: Pixels of the picture for each of the page, so that texts stay sharp where it is shown smaller.
SCALE = 1.5
#: Kilobytes that all pictures together may take.
MOST_KB = 800


@dataclass(frozen=True)
class Shot:
    """One picture: its name, the page it is taken of, how many pixels from the top, and what must be on it."""

    name: str
    path: str
    height: int
    shows: tuple[str, ...]


def shots(shop: Shop) -> list[Shot]:
    """Every picture of the console."""
    return [
        Shot("channel", "/channels/carrier", 1090, ("of 60 in 10 min", "7 of 10", "Waiting by priority")),
        Shot(
            "why", f"/messages/{shop.waiting}", 860, ("The circuit of endpoint 'partner' is open after", "Try 4 failed")
        ),
        Shot("overview", "/", 790, ("One circuit is not closed: partner.", "Oldest due", "Flow")),
        Shot("dead", "/dead", 500, ("HTTP 401 from hooks.crm.example", "after endpoint.altered crm by ada")),
        Shot("plan", f"/acts/plan-run?plan={shop.plan}", 660, ("46", "menzil plan run 1", "select menzil.plan_run")),
    ]


@contextmanager
def looking(chromium: Chromium, scheme: str, *, width: int = WIDTH) -> Iterator[Page]:
    """A window of this theme. A complaint of the page, such as a broken policy, fails whoever looks."""
    context = chromium.new_context(
        viewport={"width": width, "height": 800}, color_scheme="dark" if scheme == "dark" else "light",
        device_scale_factor=SCALE, locale="en-GB", timezone_id="UTC", reduced_motion="reduce",
    )  # fmt: skip
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    yield page
    context.close()
    assert complaints == [], complaints


def keep(page: Page, file: Path, height: int) -> Path:
    """Write the top of the page as WebP, which Chromium makes itself."""
    page.set_viewport_size({"width": WIDTH, "height": height})
    session = page.context.new_cdp_session(page)
    # Chromium counts a picture in pixels of the page unless a clip says otherwise.
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": SCALE}
    made = session.send("Page.captureScreenshot", {"format": "webp", "quality": 45, "clip": clip})
    session.detach()
    file.write_bytes(base64.b64decode(made["data"]))
    return file


def size_of(file: Path) -> tuple[int, int]:
    """Width and height of a WebP picture as Chromium writes it, with the extended header."""
    head = file.read_bytes()[:30]
    assert (head[:4], head[8:16]) == (b"RIFF", b"WEBPVP8X"), f"{file.name} is not a WebP picture of Chromium"
    return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
