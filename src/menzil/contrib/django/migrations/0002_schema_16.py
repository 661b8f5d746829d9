"""Schema 16: bridges, and lookups by a job."""

from django.db import migrations

from menzil.contrib.django.schema import BringSchema


class Migration(migrations.Migration):
    """Bring menzil up to date."""

    atomic = False

    dependencies = [("menzil", "0001_schema_14")]

    operations = [BringSchema(16)]
