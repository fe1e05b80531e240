import msgspec

from tanist.broker.system_topics import is_open_to_sends, system_topic_names, system_topics
from tanist.model.topics import AUTO_CREATE_TOPIC, TIMER_TOPIC
from tests.support import golden
from tests.support.broker_tables import SETTINGS


def test_the_system_topics_are_those_of_a_new_rocketmq_broker() -> None:
    kept = golden.load("config_files")["topics"]["value"]["topicConfigTable"]
    del kept["TopicA"]  # The one topic in the kept file that an operator made.
    # That broker had no timer.
    settings = msgspec.structs.replace(SETTINGS, timer_wheel_enable=False)
    assert {topic.topic_name: msgspec.to_builtins(topic) for topic in system_topics(settings)} == kept


def test_the_timer_has_a_topic_of_one_queue() -> None:
    (topic,) = (topic for topic in system_topics(SETTINGS) if topic.topic_name == TIMER_TOPIC)
    assert (topic.read_queue_count, topic.write_queue_count) == (1, 1)


def test_the_template_is_there_only_if_topics_are_created_by_sends() -> None:
    off = msgspec.structs.replace(SETTINGS, auto_create_topic_enable=False)
    assert AUTO_CREATE_TOPIC not in {topic.topic_name for topic in system_topics(off)}
    assert AUTO_CREATE_TOPIC in system_topic_names(off)


def test_the_template_has_the_configured_number_of_queues() -> None:
    settings = msgspec.structs.replace(SETTINGS, default_topic_queue_nums=3)
    template = next(topic for topic in system_topics(settings) if topic.topic_name == AUTO_CREATE_TOPIC)
    assert (template.read_queue_count, template.write_queue_count) == (3, 3)


def test_the_names_of_cluster_and_broker_are_system_topics() -> None:
    names = system_topic_names(SETTINGS)
    assert {"DefaultCluster", "broker-a", "DefaultCluster_REPLY_TOPIC", "RMQ_SYS_TRACE_TOPIC"} <= names


def test_clients_send_to_some_system_topics_only() -> None:
    assert is_open_to_sends("BenchmarkTest")
    assert is_open_to_sends("RMQ_SYS_TRACE_TOPIC")
    assert not is_open_to_sends("SCHEDULE_TOPIC_XXXX")
    assert not is_open_to_sends("rmq_sys_wheel_timer")
    assert not is_open_to_sends("RMQ_SYS_TRANS_HALF_TOPIC")


def test_the_topic_of_traces_is_there_from_the_start_if_that_is_on() -> None:
    on = msgspec.structs.replace(SETTINGS, trace_topic_enable=True, msg_trace_topic_name="Traces")
    (made,) = (topic for topic in system_topics(on) if topic not in system_topics(SETTINGS))
    assert (made.topic_name, made.read_queue_count, made.write_queue_count) == ("Traces", 1, 1)
    assert {"Traces", "RMQ_SYS_TRACE_TOPIC"} <= system_topic_names(on)
    assert is_open_to_sends("Traces")
