"""Report: how delivery went, as small tables and as one page to look at."""

from menzil.spark.jobs.report.figures import Figures, Slo
from menzil.spark.jobs.report.job import figures_of, report
from menzil.spark.jobs.report.page import page

__all__ = ["Figures", "Slo", "figures_of", "page", "report"]
