"""The admin: lists by keyset, acts that skip and report, permissions."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import SimpleTestCase
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from behaviours.tasks import add, tell
from behaviours.working import ask, work
from menzil.contrib.django.models import DeadLetter, LiveMessage
from menzil.contrib.django.queue import send


class AdminTests(SimpleTestCase):
    databases: ClassVar = {"default"}

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.dead = tell.enqueue("nan")
        work()
        cls.boss = User.objects.create_superuser("boss", password="x")
        cls.guest = User.objects.create_user("guest", password="x", is_staff=True)
        cls.guest.user_permissions.add(Permission.objects.get(codename="view_message"))

    @classmethod
    def tearDownClass(cls) -> None:
        User.objects.all().delete()
        super().tearDownClass()

    def act(self, model: str, action: str, *ids: int) -> list[str]:
        answer = self.client.post(
            f"/admin/menzil/{model}/", {"action": action, "_selected_action": list(ids)}, follow=True
        )
        self.assertEqual(answer.status_code, 200)
        return [str(one) for one in answer.context["messages"]]

    def test_every_list_and_page_opens_and_nothing_is_counted(self) -> None:
        self.client.force_login(self.boss)
        for model in ("message", "endedmessage", "deadletter", "channel", "endpoint"):
            with self.subTest(model), CaptureQueriesContext(connection) as queries:
                page = self.client.get(f"/admin/menzil/{model}/")
                self.assertEqual(page.status_code, 200)
                self.assertFalse([one["sql"] for one in queries if "COUNT(" in one["sql"] and "menzil" in one["sql"]])
        found = self.client.get(f"/admin/menzil/endedmessage/{self.dead.id}/change/")
        self.assertContains(found, "NotJsonError")
        self.assertNotContains(found, 'name="_save"')

    def test_pages_follow_one_another_by_id(self) -> None:
        add.get_backend().make_channels()
        sent = {send("mail", {"n": n}, scheduled_at=timezone.now().replace(year=2100)) for n in range(70)}
        self.client.force_login(self.boss)
        for start in ("?channel=mail", "?"):
            seen: list[int] = []
            query: str | None = start
            while query:
                page = self.client.get(f"/admin/menzil/message/{query}")
                rows = re.findall(r'name="_selected_action" value="(\d+)"', page.content.decode())
                seen += map(int, rows)
                cl: Any = page.context["cl"]
                query = cl.older_link if cl.older else None
            self.assertEqual(seen, sorted(set(seen), reverse=True))
            self.assertTrue(sent <= set(seen))
        messages = self.act("message", "cancel", *sent)
        self.assertEqual(messages, ["Cancelled: 70."])

    def test_a_search_finds_by_id_and_by_ordering_key(self) -> None:
        result = send("mail", {"password": "s3cret"}, ordering_key="ada lovelace", delay=3600)
        self.client.force_login(self.boss)
        for word in (str(result), "ada lovelace"):
            rows = self.client.get("/admin/menzil/message/", {"q": word}).context["cl"].result_list
            self.assertEqual([row.pk for row in rows], [result])
        page = self.client.get(f"/admin/menzil/message/{result}/change/")
        self.assertContains(page, "[redacted]")
        self.assertNotContains(page, "s3cret")
        with self.assertRaisesMessage(TypeError, "read-only"):
            LiveMessage(pk=1).save()

    def test_acts_skip_what_does_not_allow_them_and_name_it(self) -> None:
        self.client.force_login(self.boss)
        letter = DeadLetter.objects.get(original_message_id=int(self.dead.id))
        self.assertEqual(self.act("deadletter", "redrive", letter.pk), ["Redriven: 1."])
        (said,) = self.act("deadletter", "redrive", letter.pk)
        self.assertIn(f"Skipped: 1. {letter.pk} (", said)
        actor = ask("select actor from menzil.event_log where event_type ~ 'redrive' order by id desc limit 1")
        self.assertTrue(actor.startswith("boss"), actor)
        (said,) = self.act("endedmessage", "replay", int(self.dead.id))
        self.assertEqual(said, "Sent once more: 1.")
        (said,) = self.act("message", "retry_now", letter.__class__.objects.get(pk=letter.pk).redriven_id)
        self.assertIn("Skipped: 1.", said)

    def test_a_user_without_the_permission_of_an_act_does_not_get_it(self) -> None:
        self.client.force_login(self.guest)
        live = send("mail", {}, delay=3600)
        self.assertNotContains(self.client.get("/admin/menzil/message/"), "Cancel selected")
        self.client.post("/admin/menzil/message/", {"action": "cancel", "_selected_action": [live]})
        self.assertTrue(LiveMessage.objects.filter(pk=live).exists())
        self.assertEqual(self.client.get("/admin/menzil/deadletter/").status_code, 403)
