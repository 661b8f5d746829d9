"""An order, its message and its task are one transaction: all three commit, or none does."""

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
