"""The tables of the shop, and its channel."""

from django.db import migrations, models

from menzil.contrib.django.schema import CreateChannel


class Migration(migrations.Migration):
    initial = True

    dependencies = [("menzil", "0001_schema_14")]

    operations = [
        CreateChannel("orders"),
        migrations.CreateModel(
            name="Mail",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("to", models.TextField()),
                ("text", models.TextField()),
            ],
        ),
        migrations.CreateModel(
            name="Order",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("customer", models.TextField()),
                ("total", models.IntegerField()),
                ("booked", models.BooleanField(default=False)),
            ],
        ),
    ]
