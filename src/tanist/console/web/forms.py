"""What a request carries, read with a bound: nobody fills this process's memory."""

from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

MAX_BODY_BYTES = 1 << 20
_MAX_FIELDS = 100
_KEPT = "tanist.body"


async def read_body(request: Request) -> bytes:
    """The whole body, kept for who asks for it again. Raises HTTPException 413 if it is too long."""
    kept = request.scope.get(_KEPT)
    if isinstance(kept, bytes):
        return kept
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise HTTPException(413, f"more than {MAX_BODY_BYTES} bytes were sent")
        parts.append(part)
    body = b"".join(parts)
    request.scope[_KEPT] = body
    return body


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form, of which each is there once. Raises HTTPException 400 if it is none."""
    return dict(await read_fields(request))


async def read_fields(request: Request) -> list[tuple[str, str]]:
    """The fields of a form as they came; several may have one name."""
    body = await read_body(request)
    try:
        return parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except (UnicodeDecodeError, ValueError) as error:
        raise HTTPException(400, "what was sent is no form") from error
