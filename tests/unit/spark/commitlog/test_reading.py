"""Reading a store: all of it, or what is wanted, and always what is there and nothing else."""

from pathlib import Path

import pytest

from tanist.errors import ForeignFile
from tanist.spark.columns import FILE_COLUMNS
from tanist.spark.commitlog import planning
from tanist.spark.commitlog.by_queue import QueueRange
from tanist.spark.commitlog.planning import plan_store
from tanist.spark.commitlog.walking import FileRange
from tanist.spark.errors import SparkError, UnknownName
from tanist.spark.wanted import Wanted
from tests.support.clocks import FakeClock
from tests.support.messages import SMALL, TOPIC, kill, make_message, open_store
from tests.support.spark_stores import fill_store, numbers, read_store


@pytest.fixture
def store(tmp_path: Path) -> Path:
    fill_store(tmp_path)
    return tmp_path


def test_all_messages_come_once_however_many_pieces_there_are(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for least in (1 << 20, 2000, 500, 100):
        monkeypatch.setattr(planning, "LEAST_PIECE_BYTES", least)
        rows, broken = read_store(store)
        assert (numbers(rows), broken) == (list(range(60)), [])


def test_a_log_is_cut_only_where_a_record_begins(store: Path) -> None:
    plan = plan_store(str(store), Wanted(), min_pieces=40)
    starts = {span.start for piece in plan.pieces for span in piece if isinstance(span, FileRange)}
    rows, _ = read_store(store)

    assert len(plan.pieces) >= 20
    assert starts <= {row["commitLogOffset"] for row in rows} | set(range(0, 1 << 20, 4096))


def test_one_topic_is_read_by_its_queues(store: Path) -> None:
    plan = plan_store(str(store), Wanted(), subscribed=("TopicB",))
    spans = [span for piece in plan.pieces for span in piece]

    # Behind what is indexed the log is walked: a broker may not have come to it yet.
    assert {span.topic for span in spans if isinstance(span, QueueRange)} == {"TopicB"}
    assert all(span.start >= 60 * 200 for span in spans if isinstance(span, FileRange))
    assert numbers(read_store(store, subscribed=("TopicB",))[0]) == list(range(0, 60, 3))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (
            Wanted().of_topics(frozenset([TOPIC])).of_queues(frozenset([1])),
            [n for n in range(1, 60, 2) if n % 3],
        ),
        (Wanted().of_queues(frozenset([0])), list(range(0, 60, 2))),
        (Wanted().of_topics(frozenset(["TopicB"])).narrowed("queue_offsets", 2, 3), [12, 15, 18, 21]),
        (Wanted().narrowed("queue_offsets", 9, 99).of_topics(frozenset(["TopicB"])), [54, 57]),
        (Wanted().of_topics(frozenset(["None"])), []),
    ],
)
def test_only_what_is_wanted_is_read(store: Path, wanted: Wanted, expected: list[int]) -> None:
    assert numbers(read_store(store, wanted)[0]) == expected


def test_bounds_on_log_offsets_spare_whole_files(store: Path) -> None:
    rows, _ = read_store(store)
    tenth = rows[10]["commitLogOffset"]
    wanted = Wanted().narrowed("log_offsets", tenth, rows[12]["commitLogOffset"])

    assert numbers(read_store(store, wanted)[0]) == [10, 11, 12]
    spans = [span for piece in plan_store(str(store), wanted).pieces for span in piece]
    assert [span.start <= tenth < span.end for span in spans if isinstance(span, FileRange)] == [True]


def test_bounds_on_store_times_are_exact(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        for number in range(40):
            store.log.append(make_message(number, body_bytes=200))
        store.flush()
        store.dispatch()
    rows, _ = read_store(tmp_path)
    times = [row["storeTimestamp"] for row in rows]
    at_ms = round(times[0].timestamp() * 1000)

    assert len(read_store(tmp_path, Wanted().narrowed("store_ms", at_ms, at_ms))[0]) == times.count(times[0])
    assert read_store(tmp_path, Wanted().narrowed("store_ms", 0, at_ms - 1))[0] == []
    assert plan_store(str(tmp_path), Wanted().narrowed("store_ms", 0, 1)).pieces == []


def test_one_topic_is_read_only_where_log_offsets_and_store_times_are_wanted(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    with open_store(tmp_path, clock=clock) as store:
        for number in range(10):
            clock.advance_ms(300_000)
            store.append(make_message(number))
        store.flush()
        store.dispatch()
    rows, _ = read_store(tmp_path)
    places = [row["commitLogOffset"] for row in rows]
    times = [round(row["storeTimestamp"].timestamp() * 1000) for row in rows]
    topic = Wanted().of_topics(frozenset([TOPIC]))

    def planned(wanted: Wanted) -> list[tuple[int, int]]:
        spans = (span for piece in plan_store(str(tmp_path), wanted).pieces for span in piece)
        return [(span.first, span.end) for span in spans if isinstance(span, QueueRange)]

    assert planned(topic.narrowed("log_offsets", places[3], places[5])) == [(3, 6)]
    assert planned(topic.narrowed("log_offsets", places[3] + 1, places[5] - 1)) == [(4, 5)]
    assert planned(topic.narrowed("store_ms", times[3], times[5])) == [(3, 6)]
    assert planned(topic.narrowed("store_ms", times[3] + 1, times[5] - 1)) == [(3, 6)], "clocks step a minute"
    assert planned(topic.narrowed("store_ms", times[9] + 10**6, 10**15)) == []
    assert numbers(read_store(tmp_path, topic.narrowed("store_ms", times[3] + 1, times[5] - 1))[0]) == [4]
    assert numbers(read_store(tmp_path, topic.narrowed("log_offsets", places[8], 1 << 62))[0]) == [8, 9]


def test_what_a_running_broker_has_not_indexed_on_disk_is_read_all_the_same(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    try:
        for number in range(7):
            store.append(make_message(number))
        store.flush()
        store.dispatch()

        assert numbers(read_store(tmp_path)[0]) == list(range(7))
        assert numbers(read_store(tmp_path, subscribed=(TOPIC,))[0]) == list(range(7))
    finally:
        kill(store)


def test_a_store_that_was_killed_is_read_up_to_its_end(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for number in range(30):
        store.append(make_message(number, body_bytes=200))
    store.flush()
    kill(store)

    rows, broken = read_store(tmp_path)

    assert (numbers(rows), broken) == (list(range(30)), [])


def test_a_broken_record_is_a_row_with_its_place_and_its_reason(store: Path) -> None:
    log = store / "commitlog" / ("0" * 20)
    data = bytearray(log.read_bytes())
    data[95] ^= 1
    log.write_bytes(data)

    rows, broken = read_store(store)

    assert [row["commitLogOffset"] for row in rows if row["broken"]] == [0]
    assert rows[0]["broken"] == "the body does not match its checksum"
    assert rows[0]["topic"] is None
    assert [one.log_offset for one in broken] == [0]
    assert numbers(rows[1:]) == list(range(1, 60))


def test_a_broken_record_ends_a_read_that_was_told_to_fail(store: Path) -> None:
    log = store / "commitlog" / ("0" * 20)
    data = bytearray(log.read_bytes())
    data[95] ^= 1
    log.write_bytes(data)

    with pytest.raises(SparkError, match="log_offset=0: the body does not match"):
        read_store(store, fails_on_broken=True)


def test_a_queue_that_points_at_another_message_is_told(store: Path) -> None:
    queue = store / "consumequeue" / "TopicB" / "0" / ("0" * 20)
    data = bytearray(queue.read_bytes())
    data[0:20], data[20:40] = data[20:40], data[0:20]
    queue.write_bytes(data)

    rows, broken = read_store(store, subscribed=("TopicB",))

    assert len(broken) == 2
    assert "queue TopicB/0 offset 0 points here, where no such message is" in broken[0].reason
    assert len([row for row in rows if not row["broken"]]) == 18


def test_a_log_with_epochs_is_read_up_to_what_is_confirmed(tmp_path: Path) -> None:
    with open_store(tmp_path) as opened:
        opened.begin_epoch(1)
        for number in range(4):
            opened.append(make_message(number))
        opened.flush()
        end = opened.log.log_end
        opened.dispatcher.confirmed_to = end // 2
        opened.dispatch()

    rows, broken = read_store(tmp_path)

    assert (numbers(rows), broken) == ([0, 1], [])
    assert [row["epoch"] for row in rows] == [1, 1]


def test_messages_of_a_deleted_topic_are_gone_either_way(tmp_path: Path) -> None:
    with open_store(tmp_path) as opened:
        for number in range(4):
            opened.append(make_message(number, topic="Gone"))
        opened.flush()
        opened.dispatch()
        opened.delete_topics(["Gone"])
        opened.append(make_message(4, topic="Gone"))
        opened.flush()
        opened.dispatch()

    assert numbers(read_store(tmp_path)[0]) == [4]
    assert numbers(read_store(tmp_path, subscribed=("Gone",))[0]) == [4]


def test_columns_that_are_not_asked_for_are_not_there(store: Path) -> None:
    columns = tuple(column for column in FILE_COLUMNS if column.name in ("queueId", "queueOffset"))

    rows, _ = read_store(store, columns=columns)

    assert (len(rows), set(rows[0])) == (60, {"queueId", "queueOffset"})


def test_an_empty_store_has_no_rows(tmp_path: Path) -> None:
    open_store(tmp_path).close()

    assert read_store(tmp_path) == ([], [])


def test_no_store_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(SparkError, match="there is no such folder; name the one that holds commitlog"):
        plan_store(str(tmp_path / "none"), Wanted())
    with pytest.raises(ForeignFile, match="there is no store here"):
        plan_store(str(tmp_path), Wanted())


def test_a_truncated_file_is_one_clear_error(store: Path) -> None:
    log = store / "commitlog" / ("0" * 20)
    log.write_bytes(log.read_bytes()[:-1])
    second = store / "commitlog" / f"{SMALL.mapped_file_size_commit_log:020d}"
    assert second.exists()

    with pytest.raises(ForeignFile):
        plan_store(str(store), Wanted())


def test_an_unknown_topic_is_refused_with_the_nearest_one(store: Path) -> None:
    with pytest.raises(UnknownName, match=r"no topic TopicC; did you mean Topic[AB]"):
        plan_store(str(store), Wanted(), subscribed=("TopicC",))
