"""Alarms: what begins and ends one, and how it is told."""

import asyncio
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from http.client import InvalidURL

import msgspec
import pytest
from msgspec.structs import replace

from tanist.console.alarm_desk import AlarmDesk
from tanist.console.alarms import webhook as webhooks
from tanist.console.alarms.board import AlarmBoard, AlarmState
from tanist.console.alarms.rules import RULES
from tanist.console.alarms.trends import GROWTH_MS, Trends
from tanist.console.alarms.webhook import MAX_WAITING, TRIES, Webhook, sign
from tanist.console.watching.role_changes import RoleWatch
from tanist.console.watching.snapshot import DeadLetterCount, Snapshot
from tanist.errors import ConfigError
from tanist.model.offsets import LogOffset
from tanist.protocol.bodies.replication import ControlledView, HAConnectionView, HARuntimeInfo
from tests.support.clocks import FakeClock
from tests.support.conditions import until
from tests.support.console_views import (
    CONSUMERS,
    NOW_MS,
    consume_stats,
    dead_master,
    master,
    slave,
    snapshot,
    tables,
)
from tests.support.slave_consume_views import GROUP, MASTER, SLAVE, serving_master


def at(seen: Snapshot, after_s: float) -> Snapshot:
    return replace(seen, taken_ms=NOW_MS + int(after_s * 1000))


def led(**other: object) -> Snapshot:
    """A pair whose master tells this of its slave."""
    link = HAConnectionView(
        addr="10.0.0.2:4", acked_to=LogOffset(0), lag_bytes=10, is_in_sync=True, broker_id=1
    )
    return snapshot(master(ha=HARuntimeInfo(is_master=True, slaves=[replace(link, **other)])), slave())


def fired(board: AlarmBoard, *seen: Snapshot) -> list[tuple[str, str, AlarmState]]:
    return [(event.rule, event.subject, event.state) for each in seen for event in board.on_snapshot(each)]


def test_a_pair_that_is_well_gives_no_alarm() -> None:
    board = AlarmBoard()
    assert fired(board, *(at(snapshot(), second) for second in range(0, 200, 2))) == []
    assert board.current == []


def test_an_alarm_begins_after_its_hold_and_ends_after_its_calm() -> None:
    board = AlarmBoard()
    late, well = led(lag_ms=6_000), led(lag_ms=0)
    assert fired(board, at(late, 0), at(late, 9)) == []
    assert [alarm.state for alarm in board.current] == [AlarmState.PENDING]
    assert fired(board, at(late, 10)) == [("slave-lag", f"{GROUP} 1", AlarmState.FIRING)]
    assert fired(board, at(well, 12), at(well, 21)) == []
    assert fired(board, at(well, 22)) == [("slave-lag", f"{GROUP} 1", AlarmState.RESOLVED)]
    assert (board.current, len(board.history)) == ([], 2)


def test_what_goes_before_its_hold_is_over_is_no_alarm() -> None:
    board = AlarmBoard()
    late, well = led(lag_ms=6_000), led(lag_ms=0)
    assert fired(board, at(late, 0), at(late, 8), at(well, 9), at(late, 10), at(late, 18)) == []


def test_between_its_bounds_an_alarm_stays_as_it_is() -> None:
    board = AlarmBoard()
    late, less = led(lag_ms=6_000), led(lag_ms=3_000)
    fired(board, at(late, 0), at(late, 10))
    assert fired(board, *(at(less, second) for second in range(12, 120, 2))) == []
    assert board.firing_count == 1
    # And the same lag begins none.
    assert fired(AlarmBoard(), *(at(less, second) for second in range(0, 60, 2))) == []


def test_a_dead_master_is_gone_and_its_return_ends_the_alarm() -> None:
    board = AlarmBoard()
    assert fired(board, at(dead_master(), 0), at(dead_master(), 4)) == [
        ("broker-gone", MASTER, AlarmState.FIRING)
    ]
    assert fired(board, at(snapshot(), 6), at(snapshot(), 10)) == [
        ("broker-gone", MASTER, AlarmState.RESOLVED)
    ]


def test_a_broker_that_nobody_lists_any_more_is_forgotten_and_not_well_again() -> None:
    board = AlarmBoard()
    fired(board, at(dead_master(), 0), at(dead_master(), 4))
    left = snapshot(slave())
    assert ("broker-gone", MASTER, AlarmState.FORGOTTEN) in fired(board, at(left, 600), at(left, 604))
    assert "nothing is told of it any more; the last was: does not answer" in board.history[0].text


def holding(seen: Snapshot) -> list[str]:
    """Which rules fire if it stays so for two minutes."""
    board = AlarmBoard()
    return sorted({rule for rule, _, _ in fired(board, *(at(seen, second) for second in range(0, 120, 2)))})


def lease(lease_ms: int) -> Snapshot:
    controlled = ControlledView(state="master", role="MASTER", lease_ms=lease_ms)
    return snapshot(master(ha=HARuntimeInfo(is_master=True, controlled=controlled), slave_consume=None))


@pytest.mark.parametrize(
    ("seen", "rules"),
    [
        (led(is_in_sync=False), ["not-in-step"]),
        (led(lag_bytes=1 << 30), ["slave-lag"]),
        (snapshot(master(ha=HARuntimeInfo(is_master=True)), slave()), ["no-slave"]),
        (snapshot(master(ha=HARuntimeInfo(is_master=True))), []),
        (lease(0), ["lease-lost"]),
        (lease(900), []),
        (snapshot(failure="refused"), ["name-server-gone"]),
        (snapshot(master(runtime={"commitLogDiskRatio": "0.9"}), slave()), ["disk-full"]),
        (
            snapshot(
                master(
                    tables=tables(
                        dead_letters={
                            CONSUMERS: DeadLetterCount(kept_count=1, total_count=1, last_ms=NOW_MS - 1)
                        }
                    )
                ),
                slave(),
            ),
            ["dead-letters"],
        ),
    ],
)
def test_each_rule_fires_for_what_it_is_about(seen: Snapshot, rules: list[str]) -> None:
    assert holding(seen) == rules


def test_a_backlog_is_an_alarm_while_it_grows_and_not_because_it_is_large() -> None:
    def behind(count: int, after_s: float) -> Snapshot:
        return at(snapshot(master(tables=tables(consume=consume_stats(behind=count))), slave()), after_s)

    large = [behind(50_000, second) for second in range(0, 200, 2)]
    assert fired(AlarmBoard(), *large) == []
    growing = [behind(100 * second, second) for second in range(0, 200, 2)]
    board = AlarmBoard()
    assert fired(board, *growing) == [("backlog-growing", CONSUMERS, AlarmState.FIRING)]
    assert fired(board, behind(10_000, 202)) == [("backlog-growing", CONSUMERS, AlarmState.RESOLVED)]


def test_counters_are_alarms_when_they_grow_and_for_minutes_after() -> None:
    def counted(count: int, after_s: float) -> Snapshot:
        ha = replace(master().ha or HARuntimeInfo(is_master=True), refused_counts={"hello": count})
        twice = serving_master(delivered_twice={CONSUMERS: count})
        return at(snapshot(master(ha=ha, slave_consume=twice), slave()), after_s)

    board = AlarmBoard()
    assert fired(board, counted(7, 0), counted(7, 2)) == []
    assert [rule for rule, _, _ in fired(board, counted(8, 4))] == ["refused-peers", "duplicates"]
    assert fired(board, counted(8, 4 + GROWTH_MS / 1000 - 2)) == []
    ended = fired(board, counted(8, 4 + GROWTH_MS / 1000))
    assert {state for _, _, state in ended} == {AlarmState.RESOLVED}
    # A broker that started anew counts from nothing.
    assert fired(board, counted(0, 700)) == []


def test_the_bounds_of_trends_hold() -> None:
    trends = Trends()
    assert [trends.grown("a", value, value) for value in (5, 6, 9)] == [0, 1, 4]
    assert [trends.rising("b", value) for value in (5, 9, 3, 4)] == [0, 4, 0, 1]


def test_every_rule_has_a_name_of_its_own() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES) == 11


def test_changes_of_role_are_remembered() -> None:
    watch = RoleWatch()
    for seen in (snapshot(), dead_master(), dead_master(), snapshot()):
        watch.on_snapshot(seen)
    assert [(change.address, change.before, change.after) for change in reversed(watch.changes)] == [
        (MASTER, "master", "gone"),
        (SLAVE, "slave", "slave that is read"),
        (MASTER, "gone", "master"),
        (SLAVE, "slave that is read", "slave"),
    ]


def test_a_signature_covers_the_time_and_the_body() -> None:
    headers = sign(b"{}", "the secret", at_s=17)
    wanted = hmac.new(b"the secret", b"17.{}", hashlib.sha256).hexdigest()
    assert (headers["X-Tanist-Timestamp"], headers["X-Tanist-Signature"]) == ("17", f"sha256={wanted}")
    assert "X-Tanist-Signature" not in sign(b"{}", None, at_s=17)


def run_webhook(
    answers: Sequence[int | Exception], monkeypatch: pytest.MonkeyPatch
) -> tuple[Webhook, list[bytes]]:
    """Tell one dead master to somebody who answers so, one try after the other."""
    monkeypatch.setattr(webhooks, "_FIRST_WAIT_S", 0.0)
    monkeypatch.setattr(webhooks, "_MOST_WAIT_S", 0.0)
    sent: list[bytes] = []

    def post(_url: str, body: bytes, _headers: Mapping[str, str]) -> int:
        sent.append(body)
        answer = answers[len(sent) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def tell() -> Webhook:
        hook = Webhook("http://hooks.test/a?token=1", FakeClock(), secret="the secret", post=post)
        desk = AlarmDesk(hook)
        for second in (0, 4):
            await desk.on_snapshot(at(dead_master(), second))
        running = asyncio.ensure_future(hook.run())
        await until(lambda: hook.view.told_count + hook.view.failed_count == 1)
        running.cancel()
        return hook

    return asyncio.run(tell()), sent


def test_an_alarm_is_told_again_until_somebody_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    hook, sent = run_webhook([OSError("refused"), 503, 204], monkeypatch)
    assert (len(sent), hook.view.told_count, hook.view.failed_count) == (3, 1, 0)
    told = msgspec.json.decode(sent[-1])
    assert (told["rule"], told["subject"], told["state"]) == ("broker-gone", MASTER, "firing")


def test_an_alarm_that_nobody_takes_is_given_up_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    hook, sent = run_webhook([500] * TRIES, monkeypatch)
    view = hook.view
    assert (len(sent), view.failed_count, view.last_failure, view.host) == (
        TRIES,
        1,
        "it answered 500",
        "hooks.test",
    )
    shown = msgspec.json.encode(view)
    assert b"secret" not in shown
    assert b"token" not in shown


def test_of_too_many_that_wait_the_oldest_is_given_up() -> None:
    async def fill() -> Webhook:
        hook = Webhook("http://hooks.test/", FakeClock())
        board = AlarmBoard()
        board.on_snapshot(at(dead_master(), 0))
        (alarm,) = board.on_snapshot(at(dead_master(), 4))
        for _ in range(MAX_WAITING + 1):
            hook.tell(alarm)
        return hook

    view = asyncio.run(fill()).view
    assert (view.waiting_count, view.failed_count) == (MAX_WAITING, 1)


@pytest.mark.parametrize(
    "error", [InvalidURL("/the-token"), ValueError("/the-token"), UnicodeError("/the-token")]
)
def test_an_address_that_can_not_be_sent_to_is_a_failure_that_tells_no_secret(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook, _ = run_webhook([error] * TRIES, monkeypatch)
    assert hook.view.last_failure == type(error).__name__


@pytest.mark.parametrize("url", ["https://[::1]:8443/a?b=%20", "http://bücher.test", "http://a.test./x#y"])
def test_an_address_may_have_a_port_and_a_name_of_any_script(url: str) -> None:
    assert Webhook(url, FakeClock()).view.host


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://a.test/", "hooks.test", "file:///etc/passwd", "http://"),
        *("http://h:99999/x", "http://h:0/", "http://h:x/", "http://[::1/", "http://a..b/", "http://a b/"),
        *("http://h/é", "http://h/a b", "http://h/?é", "http://ann:secret@h/"),
    ],
)
def test_only_addresses_of_http_are_told(url: str) -> None:
    with pytest.raises(ConfigError):
        Webhook(url, FakeClock())
