"""The checks, one family per file; each takes slim messages and returns violations. All of it runs in tasks."""
