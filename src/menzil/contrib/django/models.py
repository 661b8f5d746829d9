"""The views of menzil as models that Django reads and never changes: for the admin, and for queries of your own."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models

from menzil.contrib.django import conf


class Manager(models.Manager):
    """Reads from the database of MENZIL and asks no router."""

    def get_queryset(self) -> Any:
        return super().get_queryset().using(self._db or conf.database())


class View(models.Model):
    """A view of the schema menzil."""

    objects = Manager()

    class Meta:
        abstract = True
        managed = False
        default_permissions = ("view",)

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Refuse: the queue is changed by menzil's functions alone."""
        raise TypeError(f"{type(self).__name__} is read-only.")

    def delete(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse, too."""
        raise TypeError(f"{type(self).__name__} is read-only.")


class Body(View):
    """What live, ended and dead messages have in common."""

    id = models.BigIntegerField(primary_key=True)
    payload = models.JSONField(null=True)
    content = models.BinaryField(null=True)
    priority = models.IntegerField()
    ordering_key = models.TextField(null=True)
    idempotency_key = models.TextField(null=True)
    correlation_id = models.UUIDField(null=True)
    headers = models.JSONField(null=True)
    metadata = models.JSONField(null=True)
    created_at = models.DateTimeField()
    scheduled_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    num_attempts = models.BigIntegerField()
    retry_count = models.IntegerField()
    last_error = models.TextField(null=True)

    class Meta(View.Meta):
        abstract = True

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} {self.pk}"


class Message(Body):
    """A message, live or ended. Read it by id, or the newest first: a filter by other columns looks at each one."""

    status = models.TextField()
    channel = models.TextField()
    next_retry_at = models.DateTimeField(null=True)
    leased_at = models.DateTimeField(null=True)
    unlock_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    worker = models.TextField(null=True)
    response = models.JSONField(null=True)

    class Meta(Body.Meta):
        abstract = False
        managed = False
        db_table = '"menzil"."_message_in_full"'
        permissions: ClassVar = [
            ("retry_message", "Can retry messages now"),
            ("cancel_message", "Can cancel messages"),
            ("replay_message", "Can replay messages"),
        ]


class LiveMessage(Body):
    """A message that waits or is being delivered. A query lists what is live before it filters, but for the channel."""

    status = models.TextField()
    channel = models.TextField()
    next_retry_at = models.DateTimeField(null=True)
    processing_started_at = models.DateTimeField(null=True)
    unlock_at = models.DateTimeField(null=True)
    worker = models.TextField(null=True)

    class Meta(Body.Meta):
        abstract = False
        managed = False
        db_table = '"menzil"."queue"'
        verbose_name = "live message"


class EndedMessage(Body):
    """A message that completed, failed, expired or was cancelled."""

    status = models.TextField()
    channel = models.TextField()
    leased_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField()
    worker = models.TextField(null=True)
    response = models.JSONField(null=True)

    class Meta(Body.Meta):
        abstract = False
        managed = False
        db_table = '"menzil"."archive"'
        verbose_name = "ended message"
        permissions: ClassVar = [("replay_endedmessage", "Can replay ended messages")]


class DeadLetter(Body):
    """A message that failed for good, and waits for an operator's decision."""

    original_message_id = models.BigIntegerField()
    channel = models.TextField(db_column="endpoint_name")
    status = models.TextField()
    failed_at = models.DateTimeField()
    redriven_at = models.DateTimeField(null=True)
    redriven_id = models.BigIntegerField(null=True)
    cause = models.TextField(null=True)

    class Meta(Body.Meta):
        abstract = False
        managed = False
        db_table = '"menzil"."dlq"'
        verbose_name = "dead letter"
        permissions: ClassVar = [("redrive_deadletter", "Can redrive dead letters")]


class Channel(View):
    """A channel with its limits."""

    id = models.BigIntegerField(primary_key=True)
    name = models.TextField()
    is_endpoint = models.BooleanField()
    enabled = models.BooleanField()
    paused = models.BooleanField()
    released = models.BooleanField()
    max_concurrency = models.IntegerField(null=True)
    max_size = models.BigIntegerField(null=True)
    release_interval_ms = models.BigIntegerField(null=True)
    release_count = models.IntegerField(null=True)
    on_dead = models.TextField()
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta(View.Meta):
        abstract = False
        managed = False
        db_table = '"menzil"."channels"'

    def __str__(self) -> str:
        return str(self.name)


class Endpoint(View):
    """A channel with a destination; its config has marks in place of secrets."""

    id = models.BigIntegerField(primary_key=True)
    name = models.TextField()
    protocol = models.TextField()
    config = models.JSONField()
    retry_policy = models.JSONField(null=True)
    enabled = models.BooleanField()
    paused = models.BooleanField()
    circuit_state = models.TextField(null=True)
    next_probe_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta(View.Meta):
        abstract = False
        managed = False
        db_table = '"menzil"."endpoints"'

    def __str__(self) -> str:
        return str(self.name)
