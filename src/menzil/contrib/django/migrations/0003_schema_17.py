"""Schema 17: tables without a primary key can be published."""

from django.db import migrations

from menzil.contrib.django.schema import BringSchema


class Migration(migrations.Migration):
    """Bring menzil up to date."""

    atomic = False

    dependencies = [("menzil", "0002_schema_16")]

    operations = [BringSchema(17)]
