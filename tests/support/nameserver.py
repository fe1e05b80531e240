"""Tanist's name server as a process of its own, on the loopback address."""

from pathlib import Path

from tests.support.served import ServedProcess


class NameServerProcess(ServedProcess):
    """``tanist namesrv`` with these settings. The system chooses the port; a restart keeps it."""

    def __init__(self, directory: Path, **settings: object) -> None:
        given = {"kvConfigPath": directory / "kvConfig.json", **settings}
        super().__init__("namesrv", directory, given, ready="The name server serves at ")
