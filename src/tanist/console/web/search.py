"""What a list is searched for, by pages and REST alike."""

from typing import NamedTuple

from starlette.requests import Request

SEARCH = {
    "q": "Only those that hold this in their name.",
    "all": "Those of retries and of the system too.",
}
"""The parameters, for the document that describes REST."""


class Search(NamedTuple):
    """A part of the name, and whether those are wanted too that are left out by default."""

    text: str
    are_all_shown: bool


def search_of(request: Request) -> Search:
    return Search(request.query_params.get("q", ""), "all" in request.query_params)
