"""What handlers ask before they serve: may this broker be read, may it be written, now."""

from collections.abc import Callable

from tanist.broker.slave_consume.permitted import Permitted
from tanist.model.topics import READ, WRITE
from tanist.protocol.codes import ResponseCode
from tanist.protocol.response_errors import NotMaster, NotReadable

OnPermitted = Callable[[Permitted], None]


class ReadRight:
    """One broker's. A broker without a coordinator has none, and serves as its settings say."""

    def __init__(self, address: str, look: Callable[[], Permitted]) -> None:
        """``look`` computes what is permitted at this very moment: a process may have stood still."""
        self.address = address
        self.look = look
        self.listeners: list[OnPermitted] = []
        """Told after what is permitted has changed."""

    @property
    def is_readable(self) -> bool:
        return bool(self.look().permission & READ)

    def check_read(self) -> None:
        """Raises NotReadable, which names who is read instead, if this broker may not be read."""
        if (refusal := self.refusal()) is not None:
            raise refusal

    def refusal(self) -> NotReadable | None:
        """What whoever reads is told; None if it may."""
        found = self.look()
        return None if found.permission & READ else self.refuse(found)

    def refuse(self, found: Permitted) -> NotReadable:
        """What whoever reads is told where this is permitted, and not to read."""
        remark = f"{self.address} is not readable: {found.reason}"
        return NotReadable(remark, reader_address=found.reader, term=found.term)

    def check_write(self) -> None:
        """Raises NotMaster if this broker takes no messages."""
        found = self.look()
        if not found.permission & WRITE:
            raise NotMaster(
                ResponseCode.NO_PERMISSION,
                f"{self.address} is not writable: {found.reason}",
                master_address=None,
            )

    def on_changed(self) -> None:
        """What is permitted has changed: whoever waits for it or acts on it is told."""
        found = self.look()
        for listener in tuple(self.listeners):
            listener(found)
