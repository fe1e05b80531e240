"""A process that does as it is told, for what befalls processes."""

import secrets
import socket
import subprocess
import sys
from typing import Self

from tanist.chaos.hosts import Host

SILENCE_S = 0.5
"""For how long nothing has to come to be taken for silence: an answer takes a millisecond."""
_PORT = 9
_PROGRAM = """
import sys
for line in sys.stdin:
    try:
        said = eval(line)
    except Exception as error:
        said = error
    print(repr(said), flush=True)
"""
_HEARING = """
def heard(word):
    try:
        while s.recv(64) != word:
            pass
    except TimeoutError:
        return False
    return True
"""


class Obedient:
    """Says what comes of each expression that it is told. It ends with the block."""

    def __init__(self, *within: str) -> None:
        self._process = subprocess.Popen(
            [*within, sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    @property
    def pid(self) -> int:
        return self._process.pid

    def do(self, expression: str) -> str:
        """What it is, as it is written in Python; or the error that came of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{expression}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


class Ears(Obedient):
    """One on a host, that says to others what they are to hear and hears what they say."""

    def __init__(self, host: Host) -> None:
        super().__init__(*host.within)
        self._address = host.address
        self.do(f"globals().update(s=__import__('socket').socket(type={int(socket.SOCK_DGRAM)}))")
        self.do(f"(s.bind(({host.address!r}, {_PORT})), s.settimeout({SILENCE_S}))")
        self.do(f"exec({_HEARING!r}, globals())")

    def reaches(self, other: "Ears") -> bool:
        """Whether something that this one says comes to the other."""
        word = secrets.token_hex(4).encode()
        self.do(f"s.sendto({word!r}, ({other._address!r}, {_PORT}))")
        return other.do(f"heard({word!r})") == "True"
