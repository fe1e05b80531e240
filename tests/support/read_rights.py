"""A read right that a test gives and takes, as a coordinator would."""

from tanist.broker.slave_consume.permitted import Permitted
from tanist.broker.slave_consume.right import ReadRight
from tanist.model.reading import FULL, NONE
from tanist.model.topics import READ

OWN = "10.0.0.2:10911"
OTHER = "10.0.0.1:10911"

MASTER_IS_READ = Permitted(FULL, "the master is read", OWN, 1)
SLAVE_IS_READ = Permitted(READ, "the group is in slave consumption", OWN, 2)
OTHER_IS_READ = Permitted(NONE, "another one is read", OTHER, 2)
NOBODY_KNOWN = Permitted(NONE, "it has not read from the registry who is to be read")


class GivenRight(ReadRight):
    """What is permitted is what the test says last."""

    def __init__(self, found: Permitted = OTHER_IS_READ, *, address: str = OWN) -> None:
        self.found = found
        super().__init__(address, lambda: self.found)

    def give(self, found: Permitted) -> None:
        """Permit something else, and tell everybody."""
        self.found = found
        self.on_changed()
