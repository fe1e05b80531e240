"""The log and what is derived from it, on disk.

``MessageStore`` is the door; one module a thing behind it: segments hold the bytes, the commit log
appends and cuts them, dispatch builds the consume queues and the key index, recovery finds the end
after a crash, ``scrub`` what was damaged since, and ``disk`` is the only one that touches files.
"""

from tanist.store.settings import FlushMode, StoreSettings
from tanist.store.store import MessageStore
from tanist.store.time_lookup import Boundary

__all__ = ["Boundary", "FlushMode", "MessageStore", "StoreSettings"]
