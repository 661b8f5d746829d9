"""What a process tells the outside about its work: spans, measurements, numbers for Prometheus, log lines.

Nothing here imports OpenTelemetry or the Prometheus client before it is needed; without them the house works the same.
"""
