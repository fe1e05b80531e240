"""Requests that would change accounts from afar."""

from pathlib import Path

import pytest

from tanist.broker.handlers import accounts
from tanist.protocol.codes import RequestCode, ResponseCode
from tests.support.broker_tables import Asker, open_state


@pytest.mark.parametrize("code", [50, 51, 52, 53, RequestCode.AUTH_CREATE_USER, RequestCode.AUTH_LIST_ACL])
def test_an_operator_is_sent_to_the_file(tmp_path: Path, code: int) -> None:
    state = open_state(tmp_path)
    answer = Asker(accounts.routes(state)).ask(code)
    state.store.close()
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert "plain_acl.yml" in (answer.remark or "")
