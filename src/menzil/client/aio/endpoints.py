"""Endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from menzil.client.base import AsyncClient
from menzil.model.secrets import encrypt_config
from menzil.ops import endpoints as ops
from menzil.ops.borrow import AsyncBorrowed


class AsyncEndpoints(AsyncClient):
    """Channels with a destination attached."""

    async def create_endpoint(
        self, name: str, protocol: str, config: Mapping[str, Any], *, conn: AsyncBorrowed | None = None
    ) -> int:
        """Create an endpoint and return its id."""
        return await self._run(
            ops.create_endpoint(name, protocol, encrypt_config(config, name, self._secret_keys)), conn
        )

    async def alter_endpoint(self, name: str, config: Mapping[str, Any], *, conn: AsyncBorrowed | None = None) -> None:
        """Give the endpoint another config."""
        await self._run(ops.alter_endpoint(name, encrypt_config(config, name, self._secret_keys)), conn)

    async def drop_endpoint(self, name: str, *, conn: AsyncBorrowed | None = None) -> None:
        """Drop an endpoint for which no message waits."""
        await self._run(ops.drop_endpoint(name), conn)

    async def enable_endpoint(self, name: str, *, conn: AsyncBorrowed | None = None) -> None:
        """Take messages for it again."""
        await self._run(ops.enable_endpoint(name), conn)

    async def disable_endpoint(self, name: str, *, conn: AsyncBorrowed | None = None) -> None:
        """Refuse messages for it, and hold those that wait."""
        await self._run(ops.disable_endpoint(name), conn)

    async def validate_endpoint_config(
        self, protocol: str, config: Mapping[str, Any], *, conn: AsyncBorrowed | None = None
    ) -> bool:
        """Raise InvalidValueError with what is wrong, or return True."""
        return await self._run(
            ops.validate_endpoint_config(protocol, encrypt_config(config, "", self._secret_keys)), conn
        )

    async def set_retry_policy(
        self, name: str, policy: Mapping[str, Any] | None, *, conn: AsyncBorrowed | None = None
    ) -> None:
        """Give an endpoint or channel a retry policy of its own; None follows the settings again."""
        await self._run(ops.set_retry_policy(name, policy), conn)

    async def purge_endpoint(self, name: str, *, conn: AsyncBorrowed | None = None) -> int:
        """Cancel everything that waits for it; return how many."""
        return await self._run(ops.purge_endpoint(name), conn)
