"""The reference semantics in plain dictionaries: for tests and the simulation."""

from mainspring.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
