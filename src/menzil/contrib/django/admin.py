"""The admin: looks at messages, dead letters, channels and endpoints, and redrives, replays, retries and cancels."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.utils.html import format_html

from menzil.contrib.django import conf
from menzil.contrib.django.acting import act
from menzil.contrib.django.models import Channel, DeadLetter, EndedMessage, Endpoint, Message
from menzil.contrib.django.pages import BODY, KeysetChangeList, KeysetPaginator, NarrowChangeList
from menzil.contrib.django.shown import redactor, shown
from menzil.ops import history
from menzil.ops import messages as message_ops
from menzil.ops.looking_messages import ENDED, STATUSES


class ReadOnly(admin.ModelAdmin):
    """A list and a page for each row; nothing is added, changed or deleted here."""

    actions_on_bottom = True
    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = KeysetPaginator
    sortable_by = ()
    ordering = ("-pk",)
    change_list_template = "menzil/change_list.html"

    def get_changelist(self, request: Any, **given: Any) -> Any:
        return KeysetChangeList

    def has_add_permission(self, request: Any) -> bool:
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        return False

    def get_fields(self, request: Any, obj: Any = None) -> list[str]:
        names = [field.name for field in self.model._meta.fields]
        given = [f"shown_{name}" if name in BODY else name for name in names]
        return [*given, "console"] if conf.said("CONSOLE_URL") and hasattr(self, "console_path") else given

    def get_readonly_fields(self, request: Any, obj: Any = None) -> list[str]:
        return self.get_fields(request, obj)

    def may(self, request: Any, act: str) -> bool:
        """Whether the user has the permission of an act."""
        return bool(request.user.has_perm(f"menzil.{act}_{self.opts.model_name}"))

    @admin.display(description="console")
    def console(self, row: Any) -> str:
        """A link to the page of the console."""
        url = f"{str(conf.said('CONSOLE_URL')).rstrip('/')}/{self.console_path(row)}"
        return str(format_html('<a href="{}">{}</a>', url, url))

    def __getattr__(self, name: str) -> Any:
        """shown_payload and the like: the field as people may see it."""
        field = name.removeprefix("shown_")
        if field == name or field not in BODY:
            raise AttributeError(name)

        def show(row: Any) -> str:
            return shown(getattr(row, field), redactor(conf.database()))

        show.short_description = field  # type: ignore[attr-defined]
        return show


class ChannelFilter(admin.SimpleListFilter):
    """The names of channels, from the table of channels: it is small."""

    title = parameter_name = "channel"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        names = Channel.objects.using(conf.database()).order_by("name").values_list("name", flat=True)
        return [(name, name) for name in names[:200]]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(channel=self.value()) if self.value() else queryset


class StatusFilter(admin.SimpleListFilter):
    """The words of one list."""

    title = parameter_name = "status"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [(word, word) for word in model_admin.statuses]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(status=self.value()) if self.value() else queryset


class Messages(ReadOnly):
    """What the three lists of messages share."""

    list_filter = (ChannelFilter, StatusFilter)
    search_fields = ("=id",)
    search_help_text = "an id, a correlation id, or an ordering key"

    def get_search_results(self, request: Any, queryset: Any, search_term: str) -> tuple[Any, bool]:
        word = search_term.strip()
        if word.isascii() and word.isdigit() and len(word) < 19:
            return queryset.filter(pk=int(word)), False
        try:
            return (queryset.filter(correlation_id=UUID(word)) if word else queryset), False
        except ValueError:
            return queryset.filter(ordering_key=word), False

    def console_path(self, row: Any) -> str:
        """The page of the message in the console."""
        return f"messages/{getattr(row, 'original_message_id', row.pk)}"


class Replays(Messages):
    """Lists whose rows may be sent once more."""

    def has_replay_permission(self, request: Any) -> bool:
        return self.may(request, "replay")

    @admin.action(description="Replay selected messages: send each once more", permissions=["replay"])
    def replay(self, request: Any, queryset: Any) -> None:
        act(self, request, queryset, "Sent once more", lambda row: history.replay_message(row.pk))


@admin.register(Message)
class MessageAdmin(Replays):
    """All messages, newest first."""

    statuses = STATUSES
    list_display = ("id", "channel", "status", "priority", "num_attempts", "created_at", "next_retry_at", "last_error")
    actions = ("retry_now", "cancel", "replay")

    def has_retry_permission(self, request: Any) -> bool:
        return self.may(request, "retry")

    def has_cancel_permission(self, request: Any) -> bool:
        return self.may(request, "cancel")

    @admin.action(description="Retry selected messages now", permissions=["retry"])
    def retry_now(self, request: Any, queryset: Any) -> None:
        act(self, request, queryset, "Due now", lambda row: message_ops.retry_now(row.pk))

    @admin.action(description="Cancel selected messages", permissions=["cancel"])
    def cancel(self, request: Any, queryset: Any) -> None:
        act(self, request, queryset, "Cancelled", lambda row: message_ops.cancel(row.pk))


@admin.register(EndedMessage)
class EndedMessageAdmin(Replays):
    """The archive."""

    statuses = ENDED
    list_display = ("id", "channel", "status", "num_attempts", "created_at", "ended_at", "worker", "last_error")
    actions = ("replay",)

    def get_changelist(self, request: Any, **given: Any) -> Any:
        return NarrowChangeList


@admin.register(DeadLetter)
class DeadLetterAdmin(Messages):
    """Messages that failed for good."""

    statuses = ("failed", "redriven")
    list_display = ("id", "channel", "status", "num_attempts", "failed_at", "redriven_id", "last_error")
    actions = ("redrive",)

    def has_redrive_permission(self, request: Any) -> bool:
        return self.may(request, "redrive")

    @admin.action(description="Redrive selected dead letters", permissions=["redrive"])
    def redrive(self, request: Any, queryset: Any) -> None:
        act(self, request, queryset, "Redriven", lambda row: history.redrive_message(row.pk))


@admin.register(Channel)
class ChannelAdmin(ReadOnly):
    """Channels and their limits."""

    list_display = ("name", "is_endpoint", "paused", "max_concurrency", "max_size", "on_dead")


@admin.register(Endpoint)
class EndpointAdmin(ReadOnly):
    """Endpoints and how they stand."""

    list_display = ("name", "protocol", "enabled", "paused", "circuit_state")
