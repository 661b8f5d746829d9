"""`menzil top` with keys, on textual: one screen whose table changes with the view."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import psycopg
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Input, Static

from menzil.cli.show import COLOURS, LONGEST, cell
from menzil.cli.top import views
from menzil.cli.top.link import Link
from menzil.cli.top.plain import STEP
from menzil.cli.top.views import Picture, View
from menzil.model.errors import MenzilError

#: What the letters of `wofr sort` at the bottom mean.
SORTS = "sort by: w waiting, o oldest, f in flight, r rate"

#: Characters of one cell; the last column may be longer.
WIDE = 200


class Top(App[None]):
    """Asks the link for a picture every second, in a thread, and never two at once."""

    TITLE = "menzil top"
    ENABLE_COMMAND_PALETTE = False
    CSS = "#head { height: auto; padding: 0 1; } #said { height: 1; padding: 0 1; } DataTable { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        # One word for four keys, so that the line at the bottom fits 80 columns; the line above says which is which.
        Binding("w", "sort('waiting')", "sort", key_display="wofr"),
        Binding("o", "sort('oldest')", "oldest", show=False),
        Binding("f", "sort('in_flight')", "in flight", show=False),
        Binding("r", "sort('rate')", "rate", show=False),
        # With priority, so that it is done before the next key is read: people type quickly.
        Binding("slash", "filter", "filter", key_display="/", priority=True),
        Binding("e", "show('endpoint_list')", "endpoints"),
        Binding("d", "show('causes')", "dead"),
        Binding("k", "show('workers')", "workers"),
        Binding("n", "next", "next database"),
        Binding("p", "pause", "pause"),
        Binding("escape", "back", "back"),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, links: Mapping[str, Link], *, sort: str = "oldest", contains: str = "") -> None:
        """`links` by the name of their database; one is shown at a time."""
        super().__init__()
        self.links = links
        self.database, self.link = next(iter(links.items()))
        self.order, self.contains = sort, contains
        self.stack: list[View] = [views.queue(sort, contains)]
        self.paused = False
        self.picture: Picture | None = None
        self._shown: View | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="menzil-top")
        self._asking = False

    def compose(self) -> ComposeResult:
        yield Static(id="head", markup=False)
        yield DataTable(cursor_type="row", zebra_stripes=True)
        yield Input(placeholder="part of a name", id="filter")
        yield Static(id="said", markup=False)
        yield Footer()

    async def on_mount(self) -> None:
        self.query_one("#filter").display = False
        self.query_one(DataTable).focus()
        self.set_interval(STEP, self.tick)
        await self.refresh_view()

    def on_unmount(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002  # of textual
        """While a filter is typed, a slash is a letter of it. The next database is offered where there are several."""
        if action == "next":
            return len(self.links) > 1
        return not (action == "filter" and self.query_one("#filter").display)

    async def tick(self) -> None:
        if not self.paused:
            await self.refresh_view()

    async def refresh_view(self) -> None:
        """Ask for the picture of the view on top, and draw it unless the user has gone on meanwhile."""
        if self._asking:
            return
        self._asking = True
        view, link = self.stack[-1], self.link
        try:
            picture = await asyncio.get_running_loop().run_in_executor(self._thread, link.ask, view.look)
        except MenzilError as error:
            self.say(f"{error.message} Trying again." if self.stack[-1] is view else "")
        except psycopg.Error as error:
            self.say(f"The database could not: {str(error).strip().splitlines()[0]}")
        else:
            if (
                self.stack[-1] is view and link is self.link and self.query("#head")
            ):  # no longer there once the program ends
                self.draw(view, picture)
        finally:
            self._asking = False
        if self.stack[-1] is not view:
            await self.refresh_view()

    def say(self, sentence: str) -> None:
        """Tell something on the line at the bottom."""
        self.query_one("#said", Static).update(Text(cell(sentence)))

    def draw(self, view: View, picture: Picture) -> None:
        """Put a picture on the screen; the cursor stays on the row it was on."""
        self.picture = picture
        lines = [*([self.database] if len(self.links) > 1 else []), *picture.lines]
        self.query_one("#head", Static).update(Text("\n".join(cell(line) for line in lines)))
        self.say("paused, p goes on" if self.paused else SORTS if view.sorts else "")
        table: DataTable[Text] = self.query_one(DataTable)
        keys = [cell(row[picture.key]) for row in picture.rows]
        same = view is self._shown and list(map(str, (key.value for key in table.rows))) == keys
        self._shown = view
        if same:
            for place, row in enumerate(picture.rows):
                for column, name in enumerate(picture.columns):
                    table.update_cell_at((place, column), _cell(row[name]))  # type: ignore[arg-type]
            return
        held = self._held(table)
        table.clear(columns=True)
        for name in picture.columns:
            table.add_column(Text(name.replace("_", " ")), key=name)
        for key, row in zip(keys, picture.rows, strict=True):
            table.add_row(*[_cell(row[name]) for name in picture.columns], key=key)
        if held in keys:
            table.move_cursor(row=keys.index(held))

    def _held(self, table: DataTable[Text]) -> str | None:
        names = [str(key.value) for key in table.rows]
        return names[table.cursor_row] if 0 <= table.cursor_row < len(names) else None

    async def go(self, view: View) -> None:
        """Open a view."""
        self.stack.append(view)
        await self.refresh_view()

    async def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        opens = self.stack[-1].opens
        rows: list[dict[str, Any]] = self.picture.rows if self.picture and self._shown is self.stack[-1] else []
        if opens is not None and event.cursor_row < len(rows):
            await self.go(opens(rows[event.cursor_row]))

    async def action_back(self) -> None:
        field = self.query_one("#filter", Input)
        if field.display:
            field.display = False
            self.query_one(DataTable).focus()
        elif len(self.stack) > 1:
            self.stack.pop()
            await self.refresh_view()

    async def action_next(self) -> None:
        """Show the next database."""
        names = list(self.links)
        self.database = names[(names.index(self.database) + 1) % len(names)]
        self.link = self.links[self.database]
        await self._anew()

    async def action_sort(self, order: str) -> None:
        self.order = order
        await self._anew()

    async def action_show(self, name: str) -> None:
        view = {"endpoint_list": views.endpoint_list, "causes": views.causes, "workers": views.workers}[name]()
        self.stack = [self.stack[0]]
        await self.go(view)

    def action_pause(self) -> None:
        self.paused = not self.paused
        self.say("paused, p goes on" if self.paused else "")

    def action_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.value = self.contains
        field.display = True
        self.screen.set_focus(field)  # at once: focus() would let keys that are typed quickly pass by it

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        self.contains = event.value.strip()
        self.query_one("#filter").display = False
        self.query_one(DataTable).focus()
        await self._anew()

    async def _anew(self) -> None:
        self.stack = [views.queue(self.order, self.contains)]
        await self.refresh_view()


def _cell(value: Any) -> Text:
    text = cell(value, WIDE if isinstance(value, str) and len(value) > LONGEST else LONGEST)
    return Text(text, style=COLOURS.get(text, ""))
