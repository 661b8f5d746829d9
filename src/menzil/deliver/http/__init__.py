"""HTTP endpoints: webhooks, signed and authenticated as their config says."""

from menzil.deliver.http.protocol import Http

__all__ = ["Http"]
