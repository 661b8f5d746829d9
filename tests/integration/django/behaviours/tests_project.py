"""Settings, migrations and the command: what a project meets besides tasks."""

from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO
from typing import Any, ClassVar
from unittest import skipUnless
from unittest.mock import patch

from django import VERSION
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction
from django.test import SimpleTestCase, override_settings

from behaviours.working import ask
from menzil.contrib.django import conf
from menzil.contrib.django.management.commands.menzil import Command
from menzil.install.check import Status
from menzil.model.errors import SchemaMissingError, SchemaTooNewError, SchemaTooOldError

#: What takes seconds and does not depend on the Django, and what cannot be on Django 6.
once = skipUnless(VERSION < (6,), "looked at on Django 5.2")

BACKEND = "menzil.contrib.django.tasks.MenzilBackend"


class ProjectTests(SimpleTestCase):
    databases: ClassVar = {"default", "elsewhere"}

    def found(self, **settings: Any) -> dict[str, str]:
        with override_settings(**settings):
            return {one.id: f"{one.msg} {one.hint}" for one in run_checks() if str(one.id).startswith("menzil.")}

    def test_mistakes_in_settings_are_found(self) -> None:
        self.assertEqual(self.found(), {})
        self.assertIn("Did you mean 'DATABASE'?", self.found(MENZIL={"DATABSE": "default"})["menzil.E002"])
        self.assertIn("Did you mean 'default'?", self.found(MENZIL={"DATABASE": "defualt"})["menzil.E003"])
        self.assertIn("is sqlite, not PostgreSQL", self.found(MENZIL={"DATABASE": "elsewhere"})["menzil.E004"])
        self.assertIn("not a dict", self.found(MENZIL=["default"])["menzil.E001"])

    def test_mistakes_in_tasks_are_found(self) -> None:
        options = {"leese": 3, "max_retries": -1, "lease": "long", "database": "elsewhere"}
        wrong = {"default": {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": options}}
        found = self.found(TASKS=wrong)
        self.assertLessEqual({"menzil.E004", "menzil.E005", "menzil.E006", "menzil.E007"}, found.keys())
        self.assertIn("Did you mean 'lease'?", found["menzil.E005"])
        twice = {name: {"BACKEND": BACKEND, "QUEUES": ["default"]} for name in ("default", "other")}
        self.assertIn("2 backends of TASKS have the queue 'default'", self.found(TASKS=twice)["menzil.E008"])

    @once
    def test_a_django_without_tasks_is_told_so(self) -> None:
        with patch.dict(sys.modules, dict.fromkeys(conf.TASKS)):
            self.assertIn("pip install django-tasks", self.found()["menzil.E009"])
            self.assertEqual(conf.databases(), {"default"})

    def test_advice_about_connections_is_given(self) -> None:
        chosen = connection.settings_dict
        with patch.dict(chosen, CONN_HEALTH_CHECKS=False):
            self.assertIn("CONN_HEALTH_CHECKS", self.found()["menzil.W002"])
        with patch.dict(chosen, CONN_MAX_AGE=0, AUTOCOMMIT=False):
            self.assertEqual(self.found().keys(), {"menzil.I001", "menzil.W001"})

    def test_a_schema_that_does_not_fit_is_found(self) -> None:
        def warned() -> list[str]:
            return [str(one.id) for one in run_checks(databases=["default"]) if str(one.id).startswith("menzil.")]

        self.assertEqual(warned(), [])
        with patch.dict(connection.settings_dict, NAME="template1"):
            self.assertEqual(warned(), ["menzil.W003"])
        for name, error, hint in (
            ("missing", SchemaMissingError("It is missing."), "manage.py migrate installs it."),
            ("old", SchemaTooOldError("It is old."), "manage.py migrate upgrades it."),
            ("new", SchemaTooNewError("It is new."), SchemaTooNewError.default_hint),
        ):
            # No released menzil is newer than this one, so the answer of the handshake is given.
            with self.subTest(name), patch.object(Status, "error", lambda _, error=error: error):
                (said,) = (one for one in run_checks(databases=["default"]) if one.id == "menzil.W003")
                self.assertEqual((said.msg, said.hint), (error.message, hint))
        ask("select menzil.set_setting('archive_completed', 'false')")
        self.addCleanup(ask, "select menzil.set_setting('archive_completed', 'true')")
        self.assertEqual(warned(), ["menzil.W004"])

    @once
    def test_migrations_leave_an_installed_schema_alone_and_renew_its_functions(self) -> None:
        quiet: dict[str, Any] = {"verbosity": 0, "stdout": StringIO()}
        before = ask("select checksum from menzil.installed_code")
        ask("update menzil.installed_code set checksum = 'another' returning 1")
        call_command("migrate", "shop", **quiet)  # no migration is left, and the functions are others
        self.assertEqual(ask("select checksum from menzil.installed_code"), before)
        ask("select menzil.channel_set('orders', p_max_concurrency => 3)")
        with patch("sys.stderr", StringIO()) as said:
            call_command("migrate", "menzil", "zero", **quiet)
        self.assertIn("menzil stays installed", said.getvalue())
        call_command("migrate", "shop", **quiet)  # where menzil is installed already
        self.assertEqual(ask("select max_concurrency from menzil.channels where name = 'orders'"), 3)
        self.assertEqual(ask("select checksum from menzil.installed_code"), before)

    def test_the_schema_goes_only_where_it_is_wanted(self) -> None:
        call_command("migrate", "menzil", database="elsewhere", verbosity=0)
        self.assertNotIn("elsewhere", conf.databases())
        text = StringIO()
        call_command("sqlmigrate", "menzil", "0001", stdout=text)
        self.assertIn("create schema", text.getvalue())

    def test_models_and_migrations_agree(self) -> None:
        call_command("makemigrations", "menzil", check=True, dry_run=True, verbosity=0)

    def test_a_worker_inside_a_transaction_is_refused(self) -> None:
        with transaction.atomic(), self.assertRaisesMessage(CommandError, "TransactionTestCase"):
            call_command("menzil", "worker", "--once")

    def run_command(self, *words: str) -> int:
        with patch.object(connections, "close_all"), self.assertRaises(SystemExit) as end:
            Command(stderr=StringIO()).run_from_argv(["manage.py", "menzil", *words])
            sys.exit(0)
        return int(end.exception.code or 0)

    def test_the_menzil_command_works_on_the_database_of_django(self) -> None:
        self.assertEqual(self.run_command("send", "orders", '{"order": 0}', "--delay", "3600"), 0)
        self.assertEqual(ask("""select count(*) from menzil.queue where payload = '{"order": 0}'"""), 1)
        self.assertEqual(self.run_command("chanel"), 2)
        self.assertEqual(self.run_command("channel", "show", "no-such-channel"), 2)
        self.assertEqual(self.run_command("worker", "--dsn", "dbname=other"), 2)
        self.assertEqual(self.run_command("--database", "defualt", "workers"), 2)
        with self.assertRaisesMessage(CommandError, "no-such-channel"):
            call_command("menzil", "channel", "show", "no-such-channel")

    def test_a_command_writes_to_the_streams_that_it_is_given(self) -> None:
        out, err = StringIO(), StringIO()
        with patch("sys.stdout", StringIO()) as others, patch("sys.stderr", others):
            call_command("menzil", "channel", "show", "orders", stdout=out, stderr=err)
            call_command("menzil", "channel", "set", "streams", stdout=out, stderr=err)
        self.assertIn("orders", out.getvalue())
        self.assertIn("Channel streams is ", err.getvalue())
        self.assertEqual(others.getvalue(), "")

    def test_a_program_without_a_script_calls_the_command(self) -> None:
        text = """if True:
            import django
            django.setup()
            from django.core.management import call_command
            call_command("menzil", "worker", "--processes", "2", "--once", "--no-janitors")
            call_command("menzil", "channel", "list")
            """
        env = {**os.environ, "SHOP_DSN": conf.dsn("default")}
        done = subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("orders", done.stdout)
        self.assertEqual(done.stderr.count("serving=default,mail,orders"), 2, done.stderr)

    @once
    def test_several_processes_serve_the_same_database(self) -> None:
        env = {**os.environ, "SHOP_DSN": conf.dsn("default")}
        words = ["worker", "--processes", "2", "--once", "--no-janitors"]
        done = subprocess.run(
            [sys.executable, "manage.py", "menzil", *words], env=env, capture_output=True, text=True, timeout=60
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("serving=default,mail,orders"), 2, done.stderr)
