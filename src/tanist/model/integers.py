"""Integers as Java has them: what a peer sends must fit, or it never gets past decoding."""

from typing import Annotated

import msgspec

from tanist.model.offsets import LogOffset, QueueOffset

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

Int32 = Annotated[int, msgspec.Meta(ge=INT32_MIN, le=INT32_MAX)]
Int64 = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]
LogOffset64 = Annotated[LogOffset, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]
QueueOffset64 = Annotated[QueueOffset, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]
