"""Tests of the shop: `manage.py test`. Django makes the database, and the migrations put menzil into it."""

from django.core.management import call_command
from django.test import TestCase, TransactionTestCase

from menzil.contrib.django.models import LiveMessage
from shop.models import Mail, Order
from shop.tasks import thank


class OrderTests(TestCase):
    """What the view sends is seen in its own transaction."""

    def test_an_order_sends_a_message_and_enqueues_a_mail(self) -> None:
        answer = self.client.post("/order", {"customer": "Ada", "total": 42}).json()
        sent = LiveMessage.objects.get(channel="orders")
        self.assertEqual(sent.payload, {"order": answer["order"]})
        self.assertEqual(thank.get_result(answer["mail"]).args, [answer["order"]])

    def test_an_order_that_fails_sends_nothing(self) -> None:
        with self.assertRaises(ValueError):
            self.client.post("/order", {"customer": "Ada", "total": 0})
        self.assertFalse(LiveMessage.objects.exists())

    async def test_an_async_view_sends_in_a_transaction_of_its_own_thread(self) -> None:
        answer = (await self.async_client.post("/order-async", {"customer": "Ada", "total": 42})).json()
        sent = await LiveMessage.objects.aget(pk=answer["message"])
        self.assertTrue(await Order.objects.filter(pk=sent.payload["order"]).aexists())

    def test_a_task_is_a_function(self) -> None:
        order = Order.objects.create(customer="Ada", total=42)
        self.assertEqual(thank.call(order.pk), "Thank you for 42.")


class WorkerTests(TransactionTestCase):
    """A worker sees what is committed: TransactionTestCase commits."""

    def test_a_worker_books_the_order_and_writes_the_mail(self) -> None:
        answer = self.client.post("/order", {"customer": "Ada", "total": 42}).json()
        call_command("menzil", "worker", "--once")
        self.assertTrue(Order.objects.get(pk=answer["order"]).booked)
        self.assertEqual(Mail.objects.get().to, "Ada")
        self.assertEqual(thank.get_result(answer["mail"]).return_value, "Thank you for 42.")
