"""Report: how delivery went, as small tables that Spark computes. menzil.report makes the page of them."""

from menzil.report import Figures, Slo, page
from menzil.spark.jobs.report.job import figures_of, report

__all__ = ["Figures", "Slo", "figures_of", "page", "report"]
