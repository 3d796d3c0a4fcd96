"""Collections of a measurement on the Qdrant server that MEMSTREAM_TEST_QDRANT names.

Without that server "remote" is not measured: the loopback server of the embedded engine has other latencies.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qdrant_client import AsyncQdrantClient, models

from memstream.adapters.vectors.server.remote import Address
from memstream.adapters.vectors.server.server_engine import remote_engine
from tests.support.qdrant import GIVEN

REQUEST_SECONDS = 60.0


def given_server() -> str | None:
    return os.environ.get(GIVEN)


@dataclass(frozen=True, slots=True)
class PrefixedEngine:
    """`QdrantEngine` that adds a prefix to the names of collections and aliases on the server.

    It is no proxy, because the time of a proxy would be measured, too.
    """

    client: AsyncQdrantClient
    prefix: str

    def __getattr__(self, name: str) -> Any:
        """Return the client's method, whose first argument is the name of a collection."""
        real = getattr(self.client, name)

        def named(collection: str, *given: Any, **options: Any) -> Any:
            return real(self.prefix + collection, *given, **options)

        return named

    async def info(self) -> models.VersionInfo:
        return await self.client.info()

    async def close(self) -> None:
        await self.client.close()

    async def get_collections(self) -> models.CollectionsResponse:
        return models.CollectionsResponse(
            collections=[models.CollectionDescription(name=each[len(self.prefix) :]) for each in await self._own()]
        )

    async def get_aliases(self) -> models.CollectionsAliasesResponse:
        found = (await self.client.get_aliases()).aliases
        return models.CollectionsAliasesResponse(
            aliases=[
                models.AliasDescription(
                    alias_name=each.alias_name[len(self.prefix) :],
                    collection_name=each.collection_name[len(self.prefix) :],
                )
                for each in found
                if each.alias_name.startswith(self.prefix)
            ]
        )

    async def update_collection_aliases(
        self, change_aliases_operations: Sequence[models.CreateAliasOperation | models.DeleteAliasOperation]
    ) -> bool:
        return await self.client.update_collection_aliases([self._named(each) for each in change_aliases_operations])

    async def drop(self) -> None:
        """Delete the collections with this prefix."""
        for each in await self._own():
            await self.client.delete_collection(each)

    async def _own(self) -> list[str]:
        found = (await self.client.get_collections()).collections
        return [each.name for each in found if each.name.startswith(self.prefix)]

    def _named(
        self, operation: models.CreateAliasOperation | models.DeleteAliasOperation
    ) -> models.CreateAliasOperation | models.DeleteAliasOperation:
        """Return the operation with prefixed names."""
        plain: Mapping[str, Mapping[str, str | None]] = operation.model_dump()
        prefixed = {
            action: {field: name and self.prefix + name for field, name in names.items()}
            for action, names in plain.items()
        }
        return type(operation).model_validate(prefixed)


def prefixed_engine(server: str, prefix: str, *, ca: Path | None = None) -> PrefixedEngine:
    return PrefixedEngine(remote_engine(Address(server, ca=ca), seconds=REQUEST_SECONDS), prefix)
