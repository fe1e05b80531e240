import asyncio

from tanist.broker.table_safety import Copies, TableSafety
from tanist.errors import ResponseError
from tanist.ha.replicas import Dialect, Replica, ReplicaTable
from tanist.protocol.codes import ResponseCode
from tanist.protocol.ha_link import AckKind


class Group:
    """A master whose slaves are asked about its tables."""

    def __init__(self, needed: int | frozenset[int], *ids: int, dialect: Dialect = Dialect.TANIST) -> None:
        self.needed = needed
        self.safety = TableSafety()
        self.asked: list[int] = []
        self.safety.askers.append(self.asked.append)
        self.table = ReplicaTable(fallbehind_max_bytes=1)
        for broker_id in ids:
            self.table.join(
                Replica(f"10.0.0.{broker_id}:1", dialect, broker_id, True, 0, 0, AckKind.RECEIVED, 0)
            )
        self.told: list[ResponseError | None] = []
        self.begin()

    def begin(self, timeout_s: float = 60.0) -> None:
        self.safety.use(Copies(self.table, lambda: self.needed, timeout_s))

    def ask(self) -> None:
        self.safety.when_safe(self.told.append)

    def hold(self, broker_id: int, number: int) -> None:
        (replica,) = [one for one in self.table if one.broker_id == broker_id]
        replica.tables_held = number
        self.safety.on_held()

    @property
    def codes(self) -> list[int | None]:
        return [None if failure is None else failure.code for failure in self.told]


def test_who_waits_is_told_when_as_many_slaves_as_are_needed_have_it() -> None:
    async def story() -> None:
        group = Group(1, 1, 2)
        group.ask()
        assert (group.asked, group.told) == ([1], [])
        group.ask()
        group.hold(2, 1)
        assert group.told == [None]
        group.hold(2, 2)
        assert group.told == [None, None]

    asyncio.run(story())


def test_under_a_controller_all_that_may_be_elected_have_to_have_it() -> None:
    async def story() -> None:
        group = Group(frozenset({2, 3}), 2, 3)
        group.ask()
        group.hold(2, 1)
        assert group.told == []
        # Replica 3 has left the set.
        group.needed = frozenset({2})
        group.safety.on_held()
        assert group.told == [None]

    asyncio.run(story())


def test_a_slave_that_comes_anew_has_not_said_it() -> None:
    async def story() -> None:
        group = Group(1, 1)
        group.ask()
        group.table.join(Replica("10.0.0.1:2", Dialect.TANIST, 1, True, 0, 0, AckKind.RECEIVED, 0))
        group.safety.on_held()
        assert group.told == []
        group.safety.use(None)

    asyncio.run(story())


def test_a_master_that_is_none_any_more_does_not_say_that_it_is_safe() -> None:
    async def story() -> None:
        group = Group(1, 1)
        group.ask()
        group.safety.use(None)
        assert group.codes == [ResponseCode.FLUSH_SLAVE_TIMEOUT]
        assert "no master any more" in str(group.told[0])
        group.hold(1, 1)
        assert len(group.told) == 1

    asyncio.run(story())


def test_it_is_said_in_time_that_nobody_knows_whether_it_is_safe() -> None:
    async def story() -> None:
        group = Group(1, 1)
        group.begin(timeout_s=0.0)
        group.ask()
        # Its time is over at the next turn of the loop.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        (failure,) = group.told
        assert failure is not None
        assert failure.remark == (
            "a switch may undo it, for 0 of 1 slaves have confirmed it after 0 s; ask the same once more"
        )

    asyncio.run(story())


def test_without_slaves_that_can_be_asked_nobody_waits() -> None:
    for group in (Group(1), Group(1, 1, dialect=Dialect.CLASSIC)):
        group.ask()
        assert group.codes == [ResponseCode.SLAVE_NOT_AVAILABLE]


def test_a_slave_of_rocketmq_in_the_set_is_not_waited_for_while_one_that_is_away_is() -> None:
    async def story() -> None:
        group = Group(frozenset({2, 3}), 2, dialect=Dialect.AUTOSWITCH)
        group.ask()
        assert group.codes == [ResponseCode.SLAVE_NOT_AVAILABLE]
        group.needed = frozenset({3})
        group.ask()
        assert len(group.told) == 1
        group.safety.use(None)

    asyncio.run(story())


def test_where_nothing_is_promised_nobody_is_asked() -> None:
    for group in (Group(0, 1), Group(frozenset(), 2)):
        group.ask()
        assert (group.told, group.asked) == ([None], [])
    slave = Group(1, 1)
    slave.safety.use(None)
    slave.ask()
    assert slave.told == [None]
