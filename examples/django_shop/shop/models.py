"""What the shop keeps."""

from django.db import models


class Order(models.Model):
    """Something that a customer bought."""

    customer = models.TextField()
    total = models.IntegerField()
    booked = models.BooleanField(default=False)


class Mail(models.Model):
    """A mail that went out; a real shop would hand it to a mail server."""

    to = models.TextField()
    text = models.TextField()
