"""Scenarios of slave consumption as text: what is done to a group, and the transcript that comes of it.

    # A heading says what it is about.
    Behaviours: S3-20 S3-29
    Checks: 10
    Prose, up to the first empty line after it.

    start registry master slave
    kill master
    until slave READ

    ---
       4.06  slave     READ: the group is in slave consumption

``Checks`` is how often in a row a slave finds its master gone, 3 if nothing is said. A step is one line. The
same steps are played on a virtual clock, where the transcript is compared, and run with real processes, where
times differ and only what the steps ask for is looked at.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_UNTIL_S = 30.0


class Stage(Protocol):
    """Where a scenario is played."""

    def start(self, name: str) -> None: ...
    def kill(self, name: str) -> None: ...
    def freeze(self, name: str) -> None: ...
    def thaw(self, name: str) -> None: ...
    def cut(self, one: str, other: str) -> None: ...
    def mend(self, one: str, other: str) -> None: ...
    def delay(self, one: str, other: str, delay_s: float) -> None: ...
    def consume(self, count: int) -> int: ...
    def assign(self, name: str, permission: str) -> None: ...
    def end(self) -> bool: ...
    def restore(self) -> None: ...

    @property
    def again_count(self) -> int: ...

    def permission(self, name: str) -> str: ...
    def reader(self) -> str | None: ...
    def second(self) -> str | None: ...

    def wait(self, duration_s: float, until: Callable[[], bool]) -> bool:
        """Let time pass until something holds; whether it came to hold."""
        ...

    def note(self, line: str) -> None:
        """Put a step into the transcript."""
        ...


@dataclass(frozen=True, slots=True)
class Scenario:
    """One text."""

    name: str
    behaviours: tuple[str, ...]
    checks: int
    slaves: tuple[str, ...]
    is_played_only: bool
    """Whether it takes more than can be done to real processes."""
    steps: tuple[str, ...]
    transcript: tuple[str, ...]


def read_scenario(path: Path) -> Scenario:
    """Read a text; its steps are not looked at before they are played."""
    text, _, transcript = path.read_text().partition("\n---\n")
    heading, _, steps = text.partition("\n\n")
    found = re.search(r"^Behaviours: (.+)$", heading, re.MULTILINE)
    checks = re.search(r"^Checks: (\d+)$", heading, re.MULTILINE)
    lines = tuple(line.strip() for line in steps.splitlines() if line.strip())
    return Scenario(
        name=path.stem,
        behaviours=tuple(found[1].split()) if found else (),
        checks=int(checks[1]) if checks else 3,
        slaves=tuple(sorted(set(re.findall(r"\bslave\d?\b", steps)))) or ("slave",),
        is_played_only="Played only" in heading,
        steps=lines,
        transcript=tuple(transcript.splitlines()),
    )


def play(scenario: Scenario, stage: Stage) -> None:
    """Do all steps. Raises AssertionError, which names the step, if one does not find what it asks for."""
    for step in scenario.steps:
        stage.note(step)
        for pattern, do in _STEPS.items():
            if found := re.fullmatch(pattern, step):
                do(stage, step, *found.groups())
                break
        else:
            raise AssertionError(f"{scenario.name}: {step!r} is no step; see {__name__}._STEPS")


def _start(stage: Stage, _step: str, names: str) -> None:
    for name in names.split():
        stage.start(name)


def _until(stage: Stage, step: str, name: str, permission: str) -> None:
    is_there = stage.wait(_UNTIL_S, lambda: stage.permission(name) == permission)
    assert is_there, f"{step}: it is {stage.permission(name)}"


def _for(stage: Stage, step: str, duration_s: str, name: str, permission: str) -> None:
    is_other = stage.wait(float(duration_s), lambda: stage.permission(name) != permission)
    assert not is_other, f"{step}: it is {stage.permission(name)}"


def _until_reader(stage: Stage, step: str, name: str) -> None:
    reader = None if name == "master" else name
    is_there = stage.wait(_UNTIL_S, lambda: stage.reader() == reader)
    assert is_there, f"{step}: the record names {stage.reader()}"


def _until_second(stage: Stage, step: str, name: str) -> None:
    is_there = stage.wait(_UNTIL_S, lambda: stage.second() == name)
    assert is_there, f"{step}: the record names {stage.second()}"


def _consume(stage: Stage, step: str, count: str) -> None:
    consumed = stage.consume(int(count))
    assert consumed == int(count), f"{step}: only {consumed} were consumed"


def _consume_nothing(stage: Stage, step: str) -> None:
    consumed = stage.consume(1)
    assert not consumed, f"{step}: somebody is read"


def _again(stage: Stage, step: str, count: str) -> None:
    assert stage.again_count == int(count), f"{step}: it is {stage.again_count}"


def _end(stage: Stage, step: str) -> None:
    assert stage.end(), f"{step}: it was refused"


def _refuse_end(stage: Stage, step: str) -> None:
    assert not stage.end(), f"{step}: it was done"


def _kill(stage: Stage, _step: str, name: str) -> None:
    stage.kill(name)


def _freeze(stage: Stage, _step: str, name: str) -> None:
    stage.freeze(name)


def _thaw(stage: Stage, _step: str, name: str) -> None:
    stage.thaw(name)


def _cut(stage: Stage, _step: str, one: str, other: str) -> None:
    stage.cut(one, other)


def _mend(stage: Stage, _step: str, one: str, other: str) -> None:
    stage.mend(one, other)


def _delay(stage: Stage, _step: str, one: str, other: str, delay_s: str) -> None:
    stage.delay(one, other, float(delay_s))


def _assign(stage: Stage, _step: str, name: str, permission: str) -> None:
    stage.assign(name, permission)


def _restore(stage: Stage, _step: str) -> None:
    stage.restore()


_STEPS: dict[str, Callable[..., None]] = {
    r"start (.+)": _start,
    r"kill (\w+)": _kill,
    r"freeze (\w+)": _freeze,
    r"thaw (\w+)": _thaw,
    r"cut (\w+) (\w+)": _cut,
    r"mend (\w+) (\w+)": _mend,
    r"delay (\w+) (\w+) ([\d.]+) s": _delay,
    r"until (\w+) (FULL|WRITE|READ|NONE)": _until,
    r"until the reader is (\w+)": _until_reader,
    r"until the second is (\w+)": _until_second,
    r"for ([\d.]+) s (\w+) (FULL|WRITE|READ|NONE)": _for,
    r"consume (\d+)": _consume,
    r"consume nothing": _consume_nothing,
    r"consumed again: (\d+)": _again,
    r"assign (\w+) (FULL|WRITE|READ|NONE)": _assign,
    r"operator ends": _end,
    r"operator can not end": _refuse_end,
    r"operator restores": _restore,
}
