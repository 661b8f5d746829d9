"""`menzil pipeline`: the jobs that run on Spark."""

from menzil.cli.pipeline.group import pipeline

__all__ = ["pipeline"]
