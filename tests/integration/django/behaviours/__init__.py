"""Behaviours of menzil.contrib.django, as tests of Django: test_django.py runs them on each Django there is."""
