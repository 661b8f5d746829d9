"""The settings of the example, with one more app and one more database alias."""

from settings import *  # noqa: F403
from settings import DATABASES, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "behaviours"]
DATABASES = {
    **DATABASES,
    "elsewhere": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # the slow one is slow on purpose
