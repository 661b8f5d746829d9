"""The protocol `redis`: entries of a stream of Redis or Valkey."""

from menzil.deliver.redis.protocol import Redis

__all__ = ["Redis"]
