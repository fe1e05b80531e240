"""Which views differ from one look to the next, so that an open page asks only for what has changed."""

import hashlib
from collections.abc import Callable

import msgspec

from tanist.console.views.base import View
from tanist.console.views.brokers import brokers_view
from tanist.console.views.dead_letters import dead_letters_view
from tanist.console.views.groups import groups_view
from tanist.console.views.overview import overview
from tanist.console.views.replication import replication_view
from tanist.console.views.slave_consumption import slave_consumption_view
from tanist.console.views.topics import topics_view
from tanist.console.watching.snapshot import Snapshot

_MAKERS: dict[str, Callable[[Snapshot], View]] = {
    "overview": overview,
    "brokers": brokers_view,
    "replication": replication_view,
    "slave-consumption": slave_consumption_view,
    "topics": lambda snapshot: topics_view(snapshot, are_all_shown=True),
    "groups": groups_view,
    "dead-letters": dead_letters_view,
}


def digests(snapshot: Snapshot) -> dict[str, str]:
    """A short text for each view, which is another if the view shows something else."""
    # When it was looked is part of every view, and nothing that has changed.
    still = msgspec.structs.replace(snapshot, taken_ms=0, call_count=0)
    return {name: digest_of(make(still)) for name, make in _MAKERS.items()}


def digest_of(shown: object) -> str:
    """A short text that is another if something else is shown."""
    return hashlib.blake2b(msgspec.json.encode(shown), digest_size=8).hexdigest()
