"""Plans as files: JSON that a person can read, with a digest of each part, by which edits are noticed.

An edit is no crime, but nobody has previewed it: who wants it says so. Writing replaces the file as a whole.
"""

import hashlib
import os
from pathlib import Path
from typing import Any

import msgspec

from tanist.admin.resets.plan import PLAN_VERSION, Plan
from tanist.admin.resets.refused import ResetRefused
from tanist.protocol.bodies.base import encode_body
from tanist.protocol.java_json import BAD_JSON

_KIND = "tanist offset reset plan"
_DIGEST_CHARS = 16
_SHOWN_PARTS = 5
_MAX_FILE_BYTES = 256 << 20


class _File(msgspec.Struct, kw_only=True, rename="camel"):
    kind: str
    version: int
    digests: dict[str, str]
    plan: dict[str, Any]


class PlanEdited(ResetRefused):
    """The file is not what was written; ``parts`` says where."""

    def __init__(self, path: Path, parts: list[str]) -> None:
        shown = ", ".join(parts[:_SHOWN_PARTS])
        more = f" and {len(parts) - _SHOWN_PARTS} more" if len(parts) > _SHOWN_PARTS else ""
        super().__init__(
            f"{path} was edited since it was planned ({shown}{more}); plan anew, or say --accept-edited if "
            "you mean it"
        )
        self.parts = parts


def write_plan(path: Path, plan: Plan) -> None:
    """Put the plan into a file. Who reads it meanwhile finds the old one or the new one."""
    told = msgspec.json.decode(encode_body(plan), type=dict[str, Any])
    whole = {"kind": _KIND, "version": PLAN_VERSION, "digests": _digests(told), "plan": told}
    text = msgspec.json.format(encode_body(whole), indent=1)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(text + b"\n")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def read_plan(path: Path, *, is_edit_accepted: bool = False) -> Plan:
    """The plan in a file. Raises ResetRefused if it is none, PlanEdited if it is not as it was written."""
    if path.stat().st_size > _MAX_FILE_BYTES:
        raise ResetRefused(f"{path} has more than {_MAX_FILE_BYTES >> 20} MiB; that is no plan")
    try:
        whole = msgspec.json.decode(path.read_bytes(), type=_File)
    except BAD_JSON as error:
        raise ResetRefused(f"{path} is no plan: {error}; make one with resetOffset plan") from error
    if whole.kind != _KIND:
        raise ResetRefused(f"{path} is no plan but {whole.kind!r}; make one with resetOffset plan")
    if whole.version != PLAN_VERSION:
        raise ResetRefused(f"{path} is of version {whole.version}; this tool knows {PLAN_VERSION}; plan anew")
    try:
        edited = _differences(whole.digests, _digests(whole.plan))
        if edited and not is_edit_accepted:
            raise PlanEdited(path, edited)
        plan = msgspec.convert(whole.plan, Plan, str_keys=True)
    except msgspec.ValidationError as error:
        raise ResetRefused(f"{path} was edited and makes no sense any more: {error}; plan anew") from error
    _check_sense(path, plan)
    return plan


def _digests(told: dict[str, Any]) -> dict[str, str]:
    """Of each queue, and of each other member. Spaces and the order of members do not count."""
    digests = {key: _digest(value) for key, value in told.items() if key != "queues"}
    for queue in msgspec.convert(told.get("queues", []), list[dict[str, Any]]):
        name = f"queue {queue.get('brokerName')}:{queue.get('queueId')}"
        digests[f"{name} twice" if name in digests else name] = _digest(queue)
    return digests


def _digest(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:_DIGEST_CHARS]


def _differences(written: dict[str, str], found: dict[str, str]) -> list[str]:
    names = [*written, *(name for name in found if name not in written)]
    return [name for name in names if written.get(name) != found.get(name)]


def _check_sense(path: Path, plan: Plan) -> None:
    """What a planner never writes: only an edit that somebody accepted can have brought it."""
    names = [queue.name for queue in plan.queues]
    if len(set(names)) < len(names):
        raise ResetRefused(f"{path} names a queue twice; plan anew")
    for queue in plan.queues:
        if not 0 <= queue.target <= queue.max_offset:
            raise ResetRefused(
                f"{path}: target {queue.target} of {queue.broker_name}:{queue.queue_id} is outside "
                f"[0, {queue.max_offset}]; use an offset that is there"
            )
