from tanist.model.message import COMPRESSION_MASK, TRANSACTION_MASK, Appended, Message, SysFlag
from tanist.model.offsets import LogOffset, QueueOffset


def test_the_end_of_an_appended_message_is_one_past_its_last_byte() -> None:
    appended = Appended(LogOffset(4096), QueueOffset(7), 135, 1)
    assert appended.end == 4231


def test_the_transaction_bits_are_one_field_of_two_bits() -> None:
    kinds = [0, SysFlag.PREPARED, SysFlag.COMMIT, SysFlag.ROLLBACK]
    assert [kind & TRANSACTION_MASK for kind in kinds] == [0, 4, 8, 12]
    assert SysFlag.PREPARED | SysFlag.COMMIT == SysFlag.ROLLBACK


def test_the_bits_of_the_system_flag_do_not_overlap() -> None:
    fields = [1, 2, TRANSACTION_MASK, 0x10, 0x20, 0x40, 0x80, COMPRESSION_MASK]
    assert sum(fields) == 0x7FF
    assert SysFlag.COMPRESSED | SysFlag.MULTI_TAGS == 3
    assert (SysFlag.BORN_HOST_V6, SysFlag.STORE_HOST_V6) == (0x10, 0x20)
    assert (SysFlag.NEED_UNWRAP, SysFlag.INNER_BATCH) == (0x40, 0x80)


def test_a_message_needs_a_topic_a_queue_and_a_body_only() -> None:
    message = Message(topic="TopicA", queue_id=1, body=b"")
    assert message.properties == b""
    assert message.sys_flag == message.flag == message.reconsume_times == 0
    assert message.born_host == b"\x7f\0\0\1\0\0\0\0"
