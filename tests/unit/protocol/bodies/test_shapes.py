"""Every body's members, as they are on the wire: each example is read and written without a loss."""

import json
from typing import Any

import pytest

from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.route import BrokerMemberGroup
from tanist.model.subscription import SubscriptionData
from tanist.protocol.bodies import client, replication, reset, running, stats, sync, tables
from tanist.protocol.bodies.base import encode_body
from tanist.protocol.java_json import decode_java_json

QUEUE = '{"brokerName":"b","queueId":0,"topic":"T"}'
QUEUE_KEY = json.dumps(QUEUE)
VERSION = '{"counter":1,"stateVersion":2,"timestamp":3}'
SUBSCRIPTION = (
    '{"classFilterMode":false,"codeSet":[65],"expressionType":"TAG","subString":"A","subVersion":5,'
    '"tagsSet":["A"],"topic":"T"}'
)
CONNECTION = '{"clientAddr":"10.0.0.5:40000","clientId":"c","language":"JAVA","version":479}'
MEMBERS = '{"brokerAddrs":{"0":"10.0.0.1:10911"},"brokerName":"b","cluster":"c"}'
REPLICA = '{"alive":true,"brokerAddress":"10.0.0.1:10911","brokerId":1,"brokerName":"b"}'
WINDOW = '{"avgpt":1.5,"sum":3,"tps":0.5}'

EXAMPLES: list[tuple[type[Any], str]] = [
    (SubscriptionData, SUBSCRIPTION),
    (BrokerMemberGroup, MEMBERS),
    (
        SubscriptionGroupConfig,
        '{"groupName":"G","subscriptionDataSet":[{"expression":"*","topic":"T"}],"attributes":{"k":"v"}}',
    ),
    (
        client.HeartbeatData,
        (
            '{"clientID":"10.0.0.5@1#2","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_TIMESTAMP",'
            '"consumeType":"CONSUME_ACTIVELY","groupName":"G","messageModel":"BROADCASTING",'
            f'"subscriptionDataSet":[{SUBSCRIPTION}],"unitMode":true}}],"producerDataSet":[{{"groupName":"PG"}}],'
            '"heartbeatFingerprint":7,"withoutSub":true}'
        ),
    ),
    (client.QueueLocks, f'{{"clientId":"c","consumerGroup":"G","mqSet":[{QUEUE}],"onlyThisBroker":true}}'),
    (client.LockedQueues, f'{{"lockOKMQSet":[{QUEUE}]}}'),
    (client.ConsumerList, '{"consumerIdList":["b","a"]}'),
    (client.ClientConfigCheck, f'{{"clientId":"c","group":"G","subscriptionData":{SUBSCRIPTION}}}'),
    (
        client.AssignmentQuery,
        '{"clientId":"c","consumerGroup":"G","messageModel":"CLUSTERING","strategyName":"AVG","topic":"T"}',
    ),
    (client.Assignments, f'{{"messageQueueAssignments":[{{"messageQueue":{QUEUE},"mode":"PULL"}}]}}'),
    (client.MessageRequestMode, '{"consumerGroup":"G","mode":"PULL","popShareQueueNum":2,"topic":"T"}'),
    (
        client.ConsumerConnections,
        (
            f'{{"connectionSet":[{CONNECTION}],"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET",'
            '"consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING",'
            f'"subscriptionTable":{{"T":{SUBSCRIPTION}}}}}'
        ),
    ),
    (client.ProducerConnections, f'{{"connectionSet":[{CONNECTION}]}}'),
    (
        client.ProducerTable,
        (
            '{"data":{"PG":[{"clientId":"c","language":"GO","lastUpdateTimestamp":5,"remoteIP":"10.0.0.5",'
            '"version":1}]}}'
        ),
    ),
    (
        running.ConsumerRunningInfo,
        (
            f'{{"jstack":"trace","mqTable":{{{QUEUE_KEY}:{{"cachedMsgSizeInMiB":1,"commitOffset":5,"droped":true,'
            '"lastPullTimestamp":9,"locked":true,"tryUnlockTimes":2}},"properties":{"PROP_CONSUMEORDERLY":"false"},'
            '"statusTable":{"T":{"consumeFailedMsgs":1,"consumeFailedTPS":0.5,"consumeOKTPS":1.5,"consumeRT":2.5,'
            f'"pullRT":3.5,"pullTPS":4.5}}}},"subscriptionSet":[{SUBSCRIPTION}],"userConsumerInfo":{{"k":"v"}}}}'
        ),
    ),
    (
        running.ConsumeDirectlyResult,
        '{"autoCommit":true,"consumeResult":"CR_LATER","order":true,"remark":"why","spentTimeMills":3}',
    ),
    (running.ConsumerStatus, f'{{"consumerTable":{{"c":{{{QUEUE_KEY}:5}}}},"messageQueueTable":{{}}}}'),
    (reset.OffsetTable, f'{{"offsetTable":{{{QUEUE_KEY}:12}}}}'),
    (reset.OffsetRows, '{"offsetTable":[{"brokerName":"b","offset":5,"queueId":0,"topic":"T"}]}'),
    (tables.KVTable, '{"table":{"k":"v"}}'),
    (tables.TopicList, '{"brokerAddr":"10.0.0.1:10911","topicList":["A","B"]}'),
    (tables.GroupList, '{"groupList":["A","B"]}'),
    (tables.GroupSubscription, f'{{"group":"G","subscriptionData":{SUBSCRIPTION},"topic":"T"}}'),
    (tables.BrokerMemberGroupAnswer, f'{{"brokerMemberGroup":{MEMBERS}}}'),
    (
        stats.TopicStatsTable,
        f'{{"offsetTable":{{{QUEUE_KEY}:{{"lastUpdateTimestamp":1,"maxOffset":9,"minOffset":2}}}},"topicPutTps":1.5}}',
    ),
    (
        stats.ConsumeStats,
        (
            f'{{"consumeTps":1.5,"offsetTable":{{{QUEUE_KEY}:{{"brokerOffset":9,"consumerOffset":5,"lastTimestamp":1,'
            '"pullOffset":7}}}'
        ),
    ),
    (
        stats.BrokerConsumeStats,
        (
            '{"brokerAddr":"10.0.0.1:10911","consumeStatsList":[{"G":[{"consumeTps":0.0,"offsetTable":{}}]}],'
            '"totalDiff":4,"totalInflightDiff":2}'
        ),
    ),
    (
        stats.ConsumeTimeSpans,
        (
            f'{{"consumeTimeSpanSet":[{{"consumeTimeStamp":2,"delayTime":4,"maxTimeStamp":3,"messageQueue":{QUEUE},'
            '"minTimeStamp":1}]}'
        ),
    ),
    (stats.CorrectionOffsets, '{"correctionOffsets":{"0":5}}'),
    (stats.BrokerStats, f'{{"statsDay":{WINDOW},"statsHour":{WINDOW},"statsMinute":{WINDOW}}}'),
    (
        stats.ConsumeQueueView,
        (
            f'{{"filterData":"f","maxQueueIndex":9,"minQueueIndex":2,"queueData":[{{"eval":true,"physicOffset":1351,'
            f'"physicSize":208,"tagsCode":65}}],"subscriptionData":{SUBSCRIPTION}}}'
        ),
    ),
    (
        sync.TopicConfigTable,
        (
            f'{{"dataVersion":{VERSION},"mappingDataVersion":{VERSION},"topicConfigTable":{{"T":{{"attributes":{{}},'
            '"order":false,"perm":6,"readQueueNums":4,"topicFilterType":"MULTI_TAG","topicName":"T","topicSysFlag":1,'
            '"writeQueueNums":8}}}'
        ),
    ),
    (sync.ConsumerOffsetTable, f'{{"dataVersion":{VERSION},"offsetTable":{{"T@G":{{"0":5}}}}}}'),
    (sync.DelayOffsetTable, f'{{"dataVersion":{VERSION},"offsetTable":{{"1":5}}}}'),
    (
        sync.SubscriptionGroupTable,
        (
            f'{{"dataVersion":{VERSION},"forbiddenTable":{{"G":{{"T":1}}}},'
            '"subscriptionGroupTable":{"G":{"groupName":"G"}}}'
        ),
    ),
    (sync.MessageRequestModeTable, '{"messageRequestModeMap":{"T":{"G":{"mode":"PULL"}}}}'),
    (sync.TimerMetrics, f'{{"dataVersion":{VERSION},"timingCount":{{"T":{{"count":3}}}}}}'),
    (replication.SyncStateSet, '{"syncStateSet":[1,2],"syncStateSetEpoch":3}'),
    (replication.ElectMasterAnswer, f'{{"brokerMemberGroup":{MEMBERS},"syncStateSet":[1]}}'),
    (
        replication.SyncStateData,
        (
            f'{{"replicasInfoTable":{{"b":{{"inSyncReplicas":[{REPLICA}],"masterAddress":"10.0.0.1:10911",'
            f'"masterBrokerId":1,"masterEpoch":4,"notInSyncReplicas":[{REPLICA}],"syncStateSetEpoch":5}}}}}}'
        ),
    ),
    (
        replication.EpochCache,
        (
            '{"brokerId":1,"brokerName":"b","clusterName":"c","epochList":[{"endOffset":9223372036854775807,'
            '"epoch":1,"startOffset":0}],"maxOffset":900}'
        ),
    ),
    (
        replication.HARuntimeInfo,
        (
            '{"haClientRuntimeInfo":{"lastReadTimestamp":1,"lastWriteTimestamp":2,"masterAddr":"10.0.0.1:10912",'
            '"masterFlushOffset":3,"maxOffset":4,"transferredByteInSecond":5},"haConnectionInfo":[{"addr":"a",'
            '"diff":1,"inSync":true,"slaveAckOffset":2,"transferFromWhere":3,"transferredByteInSecond":4}],'
            '"inSyncSlaveNums":1,"master":true,"masterCommitLogMaxOffset":9}'
        ),
    ),
]


def contains(whole: Any, part: Any) -> bool:
    """Whether ``whole`` says all that ``part`` says; it may add members that have defaults."""
    if isinstance(part, dict):
        return all(key in whole and contains(whole[key], part[key]) for key in part)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(contains, whole, part))  # pyright: ignore[reportUnknownArgumentType]
    return whole == part


@pytest.mark.parametrize(("body_type", "text"), EXAMPLES, ids=lambda value: getattr(value, "__name__", ""))
def test_no_member_is_lost(body_type: type[Any], text: str) -> None:
    body = decode_java_json(text.encode(), body_type)
    written = encode_body(body)
    assert contains(json.loads(written), json.loads(text)), written
    assert decode_java_json(written, body_type) == body


@pytest.mark.parametrize(("body_type", "text"), EXAMPLES, ids=lambda value: getattr(value, "__name__", ""))
def test_what_has_a_default_may_be_null(body_type: type[Any], text: str) -> None:
    nulls = json.dumps({**json.loads(text), "unknown": None})
    assert decode_java_json(nulls.encode(), body_type) == decode_java_json(text.encode(), body_type)


def test_a_list_of_broker_names_is_a_body_too() -> None:
    assert decode_java_json(encode_body(["a", "b"]), list[str]) == ["a", "b"]
