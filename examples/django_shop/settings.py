"""A small project: the part about menzil comes first."""

import os
from importlib.util import find_spec

from psycopg.conninfo import conninfo_to_dict

MENZIL = {"DATABASE": "default"}

TASKS = {
    "default": {
        "BACKEND": "menzil.contrib.django.tasks.MenzilBackend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {"max_retries": 3},
    }
}

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "menzil.contrib.django",
    "shop",
]
if find_spec("django.tasks") is None:  # Django 5.2: the backport
    INSTALLED_APPS.append("django_tasks")

_dsn = conninfo_to_dict(os.environ.get("SHOP_DSN", "dbname=shop"))
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _dsn.get("dbname"),
        "USER": _dsn.get("user"),
        "PASSWORD": _dsn.get("password"),
        "HOST": _dsn.get("host"),
        "PORT": _dsn.get("port"),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
    }
}

SECRET_KEY = os.environ.get("SHOP_SECRET_KEY", "only for this example")
DEBUG = False
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "testserver"]
USE_TZ = True
ROOT_URLCONF = "urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
STATIC_URL = "static/"
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
