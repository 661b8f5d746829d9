"""What happens after an order. `manage.py menzil worker` finds this file by its name."""

try:
    from django.tasks import task
except ImportError:  # Django 5.2
    from django_tasks import task

import menzil
from menzil.contrib.django.worker import app
from shop.models import Mail, Order


@app.handler("orders", transaction="django")
def book(message: menzil.Message) -> None:
    """Book the order: this update and the end of the message are one transaction."""
    Order.objects.filter(pk=message.payload["order"]).update(booked=True)


@task(queue_name="mail")
def thank(order: int) -> str:
    """Write to the customer; the return value is kept with the task."""
    bought = Order.objects.get(pk=order)
    mail = Mail.objects.create(to=bought.customer, text=f"Thank you for {bought.total}.")
    return mail.text
