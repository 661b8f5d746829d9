"""The pages of the shop, and the admin."""

from django.contrib import admin
from django.urls import path
from shop.views import order

urlpatterns = [path("order", order), path("admin/", admin.site.urls)]
