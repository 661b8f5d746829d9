"""The report of deliveries: figures, and the page that shows them. Without Spark, which counts larger histories."""

from menzil.report.figures import Figures, Slo
from menzil.report.page import page
from menzil.report.tally import tally
from menzil.report.words import Trouble, troubles

__all__ = ["Figures", "Slo", "Trouble", "page", "tally", "troubles"]
