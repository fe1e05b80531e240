"""What is logged, for tests that wait for something which shows nowhere else."""

import logging
from typing import Self


class LogLines(logging.Handler):
    """What one logger says meanwhile, down to its last detail."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.DEBUG)
        self._lines: list[str] = []
        self._logger = logging.getLogger(name)

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())

    def count(self, beginning: str) -> int:
        return sum(line.startswith(beginning) for line in self._lines)

    def __enter__(self) -> Self:
        self._level = self._logger.level
        self._logger.setLevel(logging.DEBUG)
        self._logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)
