"""Schema 18: denser pages of leases and of the index by id."""

from django.db import migrations

from menzil.contrib.django.schema import BringSchema


class Migration(migrations.Migration):
    """Bring menzil up to date."""

    atomic = False

    dependencies = [("menzil", "0003_schema_17")]

    operations = [BringSchema(18)]
