"""The pages of the shop, and the admin."""

from django.contrib import admin
from django.urls import path
from shop.views import order, order_async

urlpatterns = [path("order", order), path("order-async", order_async), path("admin/", admin.site.urls)]
