import tanist.client
import tanist.sync
from tanist.client import errors
from tanist.errors import RemotingError, ResponseError


def test_every_error_of_a_connection_or_an_answer_can_be_imported_from_the_clients() -> None:
    for base in (RemotingError, ResponseError):
        names = {
            error.__name__
            for error in (base, *base.__subclasses__())
            # What a server raises inside itself is an answer's code to others.
            if error.__module__.split(".")[1] in ("errors", "protocol", "client")
        }
        assert names <= set(errors.__all__)


def test_the_blocking_clients_have_the_same_names() -> None:
    assert tanist.sync.__all__ == tanist.client.__all__
