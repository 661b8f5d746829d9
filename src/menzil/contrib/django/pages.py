"""Pages of the admin without COUNT(*) and OFFSET: each begins where the one before ended, by id, newest first.

A filter looks through WINDOW ids and no further, so that no page reads the whole history. The next page goes on there.
"""

from __future__ import annotations

from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator

from menzil.contrib.django.models import DeadLetter, Message

#: Columns that lists do not read.
BODY = ("payload", "content", "headers", "metadata", "response", "config")
#: The parameter of the address that says where a page begins.
BEFORE = "before"
#: Ids that a page with a filter looks through.
WINDOW = 20_000


class KeysetPaginator(Paginator):
    """What templates and actions of the admin ask for, about one page alone."""

    @property
    def count(self) -> int:
        """The rows of this page. The others are not counted."""
        return len(self.object_list)


class KeysetChangeList(ChangeList):
    """The list of a model whose primary key grows."""

    #: Whether a page without a filter looks through WINDOW ids, too: the model shows some messages of many.
    always_narrow = False
    older: int | None = None
    is_first = True

    def get_filters_params(self, params: Any = None) -> Any:
        """Our parameter is not a filter."""
        found = super().get_filters_params(params)
        found.pop(BEFORE, None)
        return found

    def get_ordering(self, request: Any, queryset: Any) -> list[str]:
        """Newest first, also when another column was clicked: only this order has an index."""
        return ["-pk"]

    def get_ordering_field_columns(self) -> dict[int, str]:
        """No column is marked as sorted."""
        return {}

    def get_results(self, request: Any) -> None:
        """Read one page, and where the next one begins."""
        before = self._before(request)
        narrowed = bool(self.always_narrow or self.has_active_filters or self.query)
        rows = self.queryset.defer(*(field.name for field in self.opts.fields if field.name in BODY))
        newest = None
        if before is not None:
            rows = rows.filter(pk__lt=before)
        if narrowed:
            newest = before or self._newest()
            rows = rows.filter(pk__gt=newest - WINDOW - 1)
        size = self.list_per_page
        page = list(rows[: size + 1])
        if len(page) > size:
            page = page[:size]
            self.older = page[-1].pk
        elif narrowed and newest is not None and newest - WINDOW > 1:
            self.older = newest - WINDOW
        self.is_first = before is None
        self.result_list = page
        self.result_count = self.full_result_count = len(page)
        self.show_full_result_count = False
        self.show_admin_actions = bool(page)
        self.can_show_all = self.multi_page = False
        self.paginator = KeysetPaginator(page, max(1, size))

    @property
    def older_link(self) -> str:
        """The address of the next page."""
        return str(self.get_query_string({BEFORE: self.older}))

    @property
    def first_link(self) -> str:
        """The address of the first page."""
        return str(self.get_query_string(remove=[BEFORE]))

    def _before(self, request: Any) -> int | None:
        text = request.GET.get(BEFORE, "")
        return int(text) if text.isascii() and text.isdigit() and 0 < int(text) < 2**63 else None

    def _newest(self) -> int:
        # Of the same ids: an ended message may be far below those that wait.
        model = self.model if self.model is DeadLetter else Message
        found = model.objects.order_by("-pk").values_list("pk", flat=True).first()
        return (found or 0) + 1


class NarrowChangeList(KeysetChangeList):
    """The list of a view that shows some messages of many."""

    always_narrow = True
