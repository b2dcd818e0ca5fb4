"""The store on PostgreSQL. Its driver is loaded when the first connection is made."""

from mainspring.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
