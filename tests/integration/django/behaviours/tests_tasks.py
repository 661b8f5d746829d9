"""django.tasks on menzil: a worker runs everything once, then each test looks at one result."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from asgiref.sync import async_to_sync
from django.db import transaction
from django.test import SimpleTestCase
from django.utils import timezone

from behaviours.tasks import add, add_later, refuse, refuse_once, second_try, tell
from behaviours.working import ask, heard, work
from menzil.contrib.django import api
from menzil.contrib.django.queue import send
from menzil.contrib.django.results import REDACTED, TaskNotRunError
from menzil.contrib.django.tasks import mapped


class TaskTests(SimpleTestCase):
    databases: ClassVar = {"default"}
    said: ClassVar[list[tuple[str, str, str]]] = []

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        with heard(cls.said):
            with transaction.atomic():
                cls.sum = add.using(priority=11).enqueue(1, b=2)
            cls.as_enqueued = (str(cls.sum.status), cls.sum.attempts)
            cls.waiting = add.get_result(cls.sum.id)
            cls.refused = refuse.enqueue("luck")
            cls.once = refuse_once.enqueue()
            cls.retried = second_try.enqueue()
            cls.awaited = async_to_sync(add_later.aenqueue)(20, 22)
            cls.told = {name: tell.enqueue(name) for name in ("secret", "mark", "nul", "object", "nan", "nothing")}
            cls.at = timezone.now() + timedelta(hours=1)
            cls.later = add.using(run_after=cls.at).enqueue(1)
            cls.stranger = send("default", {"not": "a task"})
            unknown = {"task": "behaviours.tasks.gone", "args": [], "kwargs": {}}
            cls.unknown = send("default", unknown)
            cls.cancelled = add.using(run_after=cls.at).enqueue(2)
            assert ask("select menzil.message_cancel(%s)", int(cls.cancelled.id))
            work()
            cls.between = second_try.get_result(cls.retried.id)
            assert ask("select menzil.message_retry_now(%s)", int(cls.retried.id))
            work()

    def of(self, result: Any) -> list[tuple[str, str]]:
        return [(name, status) for name, id, status in self.said if id == result.id]

    def test_a_result_is_ready_running_nowhere_and_then_successful(self) -> None:
        self.assertEqual(self.as_enqueued, ("READY", 0))
        self.assertEqual((self.waiting.status, self.waiting.started_at), ("READY", None))
        found = add.get_result(self.sum.id)
        self.assertEqual((found.status, found.return_value, found.attempts), ("SUCCESSFUL", 3, 1))
        self.assertEqual((found.args, found.kwargs, found.task.priority, found.backend), ([1], {"b": 2}, 11, "default"))
        self.assertTrue(found.enqueued_at <= found.started_at <= found.last_attempted_at <= found.finished_at)
        self.assertEqual(found.worker_ids, [ask("select worker from menzil.archive where id = %s", int(found.id))])
        self.sum.refresh()
        self.assertEqual(self.sum.return_value, 3)

    def test_a_task_of_a_transaction_that_is_rolled_back_was_never_enqueued(self) -> None:
        try:
            with transaction.atomic():
                result = add.enqueue(1)
                raise KeyError
        except KeyError:
            pass
        with self.assertRaises(api.TaskResultDoesNotExist):
            add.get_result(result.id)

    def test_an_exception_is_kept_with_its_class_and_traceback(self) -> None:
        # The settings of the example allow 3 retries, so the first failure leaves the task ready.
        found = refuse.get_result(self.refused.id)
        self.assertEqual((found.status, len(found.errors)), ("READY", 1))
        error = found.errors[0]
        self.assertIs(error.exception_class, LookupError)
        self.assertIn('raise LookupError(f"no {word}")', error.traceback)
        self.assertIn("LookupError: no luck", error.traceback)

    def test_a_task_without_retries_fails_with_its_first_exception(self) -> None:
        found = refuse_once.get_result(self.once.id)
        self.assertEqual((found.status, found.attempts), ("FAILED", 1))
        self.assertEqual(self.of(self.once)[-1], ("finished", "FAILED"))
        self.assertEqual(ask("select count(*) from menzil.dlq where original_message_id = %s", int(found.id)), 1)

    def test_a_retry_keeps_the_errors_before_it(self) -> None:
        self.assertEqual((self.between.status, self.between.attempts), ("READY", 1))
        found = second_try.get_result(self.retried.id)
        self.assertEqual(found.return_value, {"attempt": 2, "errors": 1})
        self.assertEqual((found.attempts, found.errors[0].exception_class), (2, ConnectionError))
        said = [("enqueued", "READY"), ("started", "RUNNING"), ("started", "RUNNING"), ("finished", "SUCCESSFUL")]
        self.assertEqual(self.of(self.retried), said)

    def test_signals_are_sent_in_order(self) -> None:
        said = [("enqueued", "READY"), ("started", "RUNNING"), ("finished", "SUCCESSFUL")]
        self.assertEqual(self.of(self.sum), said)
        self.assertEqual(self.of(self.told["nan"])[-1], ("finished", "FAILED"))

    def test_async_tasks_and_async_calls_work(self) -> None:
        found = async_to_sync(add_later.aget_result)(self.awaited.id)
        self.assertEqual(found.return_value, 42)
        async_to_sync(self.awaited.arefresh)()
        self.assertEqual(self.awaited.status, "SUCCESSFUL")

    def test_run_after_waits(self) -> None:
        found = add.get_result(self.later.id)
        self.assertEqual((found.status, found.task.run_after), ("READY", self.at))

    def test_a_cancelled_task_has_failed_and_says_so(self) -> None:
        found = add.get_result(self.cancelled.id)
        self.assertEqual(found.status, "FAILED")
        self.assertIs(found.errors[0].exception_class, TaskNotRunError)
        with self.assertRaisesMessage(ValueError, "Task failed"):
            found.return_value  # noqa: B018

    def test_priorities_are_mapped(self) -> None:
        given = {-100: 0, -1: 0, 0: 0, 1: 1, 10: 1, 11: 2, 99: 10, 100: 10}
        self.assertEqual({priority: mapped(priority) for priority in given}, given)
        self.assertEqual(ask("select priority from menzil.archive where id = %s", int(self.sum.id)), 2)

    def test_results_that_are_not_there_are_refused(self) -> None:
        for id in ("word", "0", "-1", str(2**63), "999999999", str(self.stranger)):
            with self.subTest(id), self.assertRaises(api.TaskResultDoesNotExist):
                add.get_result(id)
        with self.assertRaisesMessage(Exception, "Task does not match"):
            refuse.get_result(self.sum.id)

    def test_a_return_value_that_redaction_changed_is_not_handed_out(self) -> None:
        self.assertIs(tell.get_result(self.told["secret"].id).return_value, REDACTED)
        self.assertEqual(tell.get_result(self.told["mark"].id).return_value, ["[redacted]"])
        self.assertIsNone(tell.get_result(self.told["nothing"].id).return_value)

    def test_a_return_value_that_cannot_be_kept_fails_the_task_at_once(self) -> None:
        for name in ("nul", "object", "nan"):
            with self.subTest(name):
                found = tell.get_result(self.told[name].id)
                self.assertEqual((found.status, found.attempts), ("FAILED", 1))
                self.assertEqual(found.errors[0].exception_class.__name__, "NotJsonError")

    def test_a_message_that_is_not_a_task_is_a_dead_letter(self) -> None:
        error = ask("select last_error from menzil.dlq where original_message_id = %s", self.stranger)
        self.assertIn("is not a task", error)

    def test_a_task_that_this_worker_does_not_know_waits_for_one_that_does(self) -> None:
        error = ask("select last_error from menzil.queue where id = %s", self.unknown)
        self.assertIn("There is no task behaviours.tasks.gone", error)

    def test_what_could_not_run_is_refused_when_it_is_written(self) -> None:
        wrong: dict[str, dict[str, Any]] = {
            "Queue 'post' is not valid": {"queue_name": "post"},
            "priority must be a whole number": {"priority": 101},
            "run_after must be an aware datetime": {"run_after": self.at.replace(tzinfo=None)},
        }
        for sentence, words in wrong.items():
            with self.subTest(sentence), self.assertRaisesMessage(api.InvalidTask, sentence):
                add.using(**words)
        with self.assertRaises(TypeError):
            add.enqueue(object())

    def test_an_ordering_key_names_a_parameter(self) -> None:
        kind = type(add)
        keyed = kind(func=add.func, ordering_key="a", max_retries=0)
        result = keyed.using(run_after=self.at).enqueue(7)
        self.assertEqual(ask("select ordering_key from menzil.queue where id = %s", int(result.id)), "7")
        with self.assertRaisesMessage(api.InvalidTask, "add() has no 'customer'"):
            kind(func=add.func, ordering_key="customer")
        with self.assertRaisesMessage(api.InvalidTask, "max_retries must be"):
            kind(func=add.func, max_retries=-1)
