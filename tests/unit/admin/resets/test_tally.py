import pytest

from tanist.admin.resets.tally import tally
from tanist.protocol.bodies.reset import ClientReceipt, ReceiptState, ResetOrderView, ResetState


def order(**states: ReceiptState) -> ResetOrderView:
    return ResetOrderView(
        order_id="o",
        topic="T",
        group="g",
        broker_name="a",
        state=ResetState.APPLIED,
        caller="ann",
        caller_address="1.2.3.4:5",
        created_ms=1,
        receipts=[
            ClientReceipt(
                client_id=name, state=state, reason="broken" if state is ReceiptState.FAILED else ""
            )
            for name, state in states.items()
        ],
    )


@pytest.mark.behaviour("S4-50")
def test_success_is_claimed_for_those_alone_who_confirmed() -> None:
    states = {f"c{number}": ReceiptState.CONFIRMED for number in range(7)}
    found = tally([order(**states, x=ReceiptState.TOLD)])
    assert found.sentence() == "7 of 8 clients confirmed, missing: x (told, not seen to follow yet)"
    assert not found.is_complete
    assert found.is_waiting


@pytest.mark.behaviour("S4-50")
def test_a_client_that_one_broker_has_not_heard_of_is_missing() -> None:
    done, told = order(c=ReceiptState.CONFIRMED), order(c=ReceiptState.FAILED)
    assert tally([done, told]).missing == {"c": "failed: broken"}
    assert tally([done, done]).sentence() == "1 of 1 client confirmed"


def test_who_is_away_is_missing_and_not_waited_for() -> None:
    found = tally([order(c=ReceiptState.PENDING)])
    assert (found.is_complete, found.is_waiting) == (False, False)
    assert "not connected, is told when it comes" in found.sentence()


def test_nobody_is_told_as_nobody() -> None:
    assert tally([order()]).sentence() == "no client of the group is known to the brokers"


def test_a_long_list_is_cut() -> None:
    found = tally([order(**{f"c{number:02}": ReceiptState.TOLD for number in range(30)})])
    assert found.sentence().endswith("and 20 more")
