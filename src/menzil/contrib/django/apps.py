"""The app: its name, its checks, and what it does after `manage.py migrate`."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class MenzilConfig(AppConfig):
    """The app `menzil`."""

    name = "menzil.contrib.django"
    label = "menzil"
    verbose_name = "menzil"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from menzil.contrib.django import checks  # noqa: F401
        from menzil.contrib.django.schema import bring_code

        post_migrate.connect(bring_code, sender=self)
