"""menzil as a Django app: migrations, `manage.py menzil`, a backend for django.tasks, the admin, system checks.

INSTALLED_APPS = [..., "menzil.contrib.django"]
MENZIL = {"DATABASE": "default"}
"""
