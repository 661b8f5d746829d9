"""An order, its message and its task are one transaction: all three commit, or none does."""

from asgiref.sync import sync_to_async
from django.db import transaction
from django.http import HttpRequest, JsonResponse

from menzil.contrib.django.queue import send
from shop.models import Order
from shop.tasks import thank


def order(request: HttpRequest) -> JsonResponse:
    """Take an order."""
    with transaction.atomic():
        new = Order.objects.create(customer=request.POST["customer"], total=int(request.POST["total"]))
        send("orders", {"order": new.pk}, ordering_key=new.customer)
        result = thank.using(priority=10).enqueue(new.pk)
        if new.total <= 0:
            raise ValueError("an order needs a total")
    return JsonResponse({"order": new.pk, "mail": result.id})


def place(customer: str, total: int) -> int:
    """One transaction, in a thread that Django's connections belong to."""
    with transaction.atomic():
        new = Order.objects.create(customer=customer, total=total)
        return send("orders", {"order": new.pk}, ordering_key=new.customer)


async def order_async(request: HttpRequest) -> JsonResponse:
    """Take an order in an async view."""
    return JsonResponse({"message": await sync_to_async(place)(request.POST["customer"], int(request.POST["total"]))})
