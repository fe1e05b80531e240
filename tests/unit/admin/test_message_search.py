"""What the offset of a group says of one message."""

import pytest

from tanist.admin.message_search import Standing, judge
from tanist.model.groups import ConsumeType, MessageModel
from tanist.model.subscription import subscribe
from tanist.protocol.bodies.client import Connection, ConsumerConnections
from tests.support.found_message import received

TOPIC = "OrderTopic"
MEMBER = Connection(client_id="c@1", client_addr="10.0.0.7:4", language="JAVA", version=479)


def members(expression: str = "*", **other: object) -> ConsumerConnections:
    fields = {
        "connections": [MEMBER],
        "subscription_table": {TOPIC: subscribe(TOPIC, expression, sub_version=1)},
        "message_model": MessageModel.CLUSTERING,
        "consume_type": ConsumeType.PASSIVELY,
        **other,
    }
    return ConsumerConnections(**fields)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("group", "offset", "standing"),
    [
        (members(), 8, Standing.CONSUMED),
        (members(), 7, Standing.NOT_CONSUME_YET),
        (members(), None, Standing.NOT_CONSUME_YET),
        (members("paid || sent"), 8, Standing.CONSUMED),
        (members("sent"), 8, Standing.CONSUMED_BUT_FILTERED),
        (members("sent"), 7, Standing.NOT_CONSUME_YET),
        (members(message_model=MessageModel.BROADCASTING), None, Standing.CONSUME_BROADCASTING),
        (members(consume_type=ConsumeType.ACTIVELY), None, Standing.PULL),
        (ConsumerConnections(), 8, Standing.CONSUMED),
    ],
)
def test_a_group_has_consumed_what_its_offset_is_past(
    group: ConsumerConnections, offset: int | None, standing: Standing
) -> None:
    message = received(TOPIC, b"", queue_offset=7, TAGS="paid")
    track = judge("billing", group, message, offset)
    assert (track.standing, track.is_online) == (standing, bool(group.connections))


def test_of_a_group_that_is_away_no_more_is_said_than_that_unless_it_could_not_be_asked() -> None:
    message = received(TOPIC, b"", queue_offset=7)
    away, here = (judge("billing", group, message, 8) for group in (ConsumerConnections(), members()))
    assert (away.track_type, here.track_type) == (Standing.NOT_ONLINE, Standing.CONSUMED)
    assert away._replace(standing=Standing.UNKNOWN).track_type is Standing.UNKNOWN
