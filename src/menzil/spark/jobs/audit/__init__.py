"""Audit: the guarantees of the queue, checked on its history.

Every check is a function History -> DataFrame of violations, run by tasks; the driver sees counts and a few samples.
"""

from menzil.spark.jobs.audit.history import History
from menzil.spark.jobs.audit.job import audit, audit_history
from menzil.spark.jobs.audit.result import AuditReport, Check, Violation

__all__ = ["AuditReport", "Check", "History", "Violation", "audit", "audit_history"]
