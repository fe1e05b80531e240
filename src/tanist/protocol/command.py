"""A request or an answer, as code outside this package sees it."""

from typing import TypeVar

import msgspec

from tanist.protocol.codes import (
    FLAG_ONE_WAY,
    FLAG_RESPONSE,
    OUR_VERSION,
    HeaderEncoding,
    Language,
    ResponseCode,
)
from tanist.protocol.headers.base import Header, decode_header, encode_header, ext_from_json, header_from_json

H = TypeVar("H", bound=Header)


class Command(msgspec.Struct, eq=False, gc=False):
    """One frame. Build one with ``request`` or ``reply``; FrameDecoder makes the others.

    The ext fields are kept in whatever form they came in, text of a JSON header, dict or typed header,
    and are read when somebody asks: as a typed header with ``header``, or one by one in ``ext``.
    So a typed header is read straight from the text, and nothing is read twice.

    The body of a decoded Command is a view of the bytes that were received. It keeps them all alive:
    copy what is to be kept for long.
    """

    code: int
    opaque: int = 0
    flag: int = 0
    language: Language = Language.PYTHON
    version: int = OUR_VERSION
    remark: str | None = None
    body: bytes | memoryview = b""
    encoding: HeaderEncoding = HeaderEncoding.JSON
    header_json: bytes | None = None
    ext_fields: dict[str, str] | None = None
    typed_header: Header | None = None

    @classmethod
    def request(
        cls,
        code: int,
        header: Header | None = None,
        *,
        ext: dict[str, str] | None = None,
        body: bytes | memoryview = b"",
        opaque: int = 0,
        is_one_way: bool = False,
        encoding: HeaderEncoding = HeaderEncoding.JSON,
    ) -> "Command":
        """A request of ours. Whoever sends it sets ``opaque``."""
        return cls(
            code,
            opaque,
            FLAG_ONE_WAY if is_one_way else 0,
            body=body,
            encoding=encoding,
            ext_fields=ext,
            typed_header=header,
        )

    def reply(
        self,
        code: int = ResponseCode.SUCCESS,
        header: Header | None = None,
        *,
        ext: dict[str, str] | None = None,
        remark: str | None = None,
        body: bytes | memoryview = b"",
    ) -> "Command":
        """The answer to this request, in the encoding the peer chose: it can surely read that one."""
        return Command(
            code,
            self.opaque,
            FLAG_RESPONSE,
            remark=remark,
            body=body,
            encoding=self.encoding,
            ext_fields=ext,
            typed_header=header,
        )

    def without_content(self) -> "Command":
        """This request as far as its answer needs it, to be kept: neither fields nor received bytes."""
        return Command(self.code, self.opaque, self.flag, self.language, encoding=self.encoding)

    @property
    def is_response(self) -> bool:
        return self.flag & FLAG_RESPONSE != 0

    @property
    def is_one_way(self) -> bool:
        """Whether the peer must get no answer, not even an error."""
        return self.flag & FLAG_ONE_WAY != 0

    @property
    def ext(self) -> dict[str, str]:
        """The ext fields by their wire names. What is changed here is what gets encoded."""
        if self.ext_fields is None:
            if self.header_json is not None:
                self.ext_fields = ext_from_json(self.header_json)
            elif self.typed_header is not None:
                self.ext_fields = encode_header(self.typed_header)
            else:
                self.ext_fields = {}
        return self.ext_fields

    def header(self, header_type: type[H]) -> H:
        """The ext fields as a ``header_type``. Raises RemoteProtocolError naming the field at fault."""
        if type(self.typed_header) is header_type:
            return self.typed_header
        if self.ext_fields is None and self.header_json is not None:
            header = header_from_json(self.header_json, header_type)
        else:
            header = decode_header(self.ext, header_type)
        self.typed_header = header
        return header

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Command):
            return NotImplemented
        return self._identity() == other._identity()

    __hash__ = None  # pyright: ignore[reportAssignmentType]  Commands change, so they are no keys.

    def __repr__(self) -> str:
        # Neither values of ext fields nor the body: commands end up in logs, secrets must not.
        kind = "answer" if self.is_response else "one-way" if self.is_one_way else "request"
        return f"<{kind} code={self.code} opaque={self.opaque} body={len(self.body)} bytes>"

    def _identity(self) -> tuple[object, ...]:
        return (
            *(self.code, self.opaque, self.flag, self.language, self.version, self.remark, self.encoding),
            *(self.ext, self.body),
        )
