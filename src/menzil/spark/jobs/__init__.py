"""The jobs of the pipeline: plain functions that take a SparkSession first and give back a report.

Each file is one job and is imported alone, so that a command reads only its own job. A job that moves messages has
a plan_… beside it: the same questions, nothing moved.
"""

from menzil.spark.extra import must_be_installed

must_be_installed()
