"""The registry of headers against the protocol's catalogue."""

import msgspec
import pytest

from tanist.protocol.codes import RequestCode
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.registry import EXCHANGES

SEND = (
    "producerGroup! topic! defaultTopic! defaultTopicQueueNums! queueId! sysFlag! bornTimestamp! flag!"
    " properties reconsumeTimes unitMode maxReconsumeTimes batch bname writeRun"
)
SEND_V2 = "a! b! c! d! e! f! g! h! i j k l m n writeRun"
SENT = "msgId! queueId! queueOffset! transactionId batchUniqId recallHandle MSG_REGION TRACE_ON"
PULL = (
    "consumerGroup! topic! queueId! queueOffset! maxMsgNums! sysFlag! commitOffset! suspendTimeoutMillis!"
    " subscription subVersion! expressionType maxMsgBytes requestSource proxyFrowardClientId"
)
PULLED = (
    "suggestWhichBrokerId! nextBeginOffset! minOffset! maxOffset!"
    " topicSysFlag groupSysFlag offsetDelta forbiddenType"
)
BROKER = "brokerName! brokerAddr! clusterName! brokerId!"
MASTER = "masterBrokerId masterAddress masterEpoch"
HA_INFO = "masterHaAddress masterFlushOffset masterAddress"
RESET = "topic! group! timestamp! isForce! queueId offset orderId appliedMillis masterEpoch"

# Request code: the ext fields of the request, "->", those of its answer. "!" marks a mandatory one.
CATALOGUE = {
    10: f"{SEND} -> {SENT}",
    11: f"{PULL} -> {PULLED}",
    12: "topic! key! maxNum! beginTimestamp! endTimestamp! _UNIQUE_KEY_QUERY"
    " -> indexLastUpdateTimestamp! indexLastUpdatePhyoffset!",
    14: "consumerGroup! topic! queueId! setZeroIfNotFound -> offset!",
    15: "consumerGroup! topic! queueId! commitOffset! clientId",
    17: "topic! defaultTopic! readQueueNums! writeQueueNums! perm! topicFilterType!"
    " topicSysFlag order attributes force",
    18: "",
    21: "topicSeq maxTopicNum dataVersion -> totalTopicNum",
    25: "",
    26: "-> version!",
    28: "",
    29: "topic! queueId! timestamp! boundaryType -> offset!",
    30: "topic! queueId! committed -> offset!",
    31: "topic! queueId! -> offset!",
    32: "topic! queueId! -> timestamp!",
    33: "offset! topic",
    34: "-> IS_SUPPORT_HEART_BEAT_V2 IS_SUB_CHANGE",
    35: "clientID! producerGroup consumerGroup",
    36: "offset! group! delayLevel! originMsgId originTopic unitMode maxReconsumeTimes bname",
    37: "producerGroup! tranStateTableOffset! commitLogOffset! commitOrRollback! msgId!"
    " fromTransactionCheck transactionId topic bname",
    38: "consumerGroup!",
    39: "tranStateTableOffset! commitLogOffset! msgId transactionId offsetMsgId topic bname",
    40: "consumerGroup!",
    41: "",
    42: "",
    43: "",
    45: "",
    46: "",
    60: "",
    61: "",
    100: "namespace! key! value!",
    101: "namespace! key! -> value",
    102: "namespace! key!",
    103: f"{BROKER} haServerAddr! bodyCrc32 compressed heartbeatTimeoutMillis enableActingMaster"
    " -> haServerAddr masterAddr",
    104: BROKER,
    105: "topic! acceptStandardJsonOnly",
    106: "",
    200: "",
    201: "groupSeq maxGroupNum dataVersion -> totalGroupNum",
    202: "topic!",
    203: "consumerGroup!",
    204: "producerGroup!",
    205: "brokerName! -> wipeTopicCount!",
    206: "",
    207: "groupName! cleanOffset removeOffset",
    208: "consumerGroup! topic topicList",
    215: "topic!",
    216: "topic! clusterName",
    217: "topic!",
    219: "namespace!",
    220: RESET,
    221: "topic! group!",
    222: RESET,
    223: "topic! group! clientAddr",
    224: "cluster!",
    225: "",
    300: "topic!",
    303: "topic! group!",
    304: "",
    305: "",
    306: "",
    307: "consumerGroup! clientId! jstackEnable",
    308: "filterGroups compareGroup! topic!",
    309: "consumerGroup! clientId msgId brokerName topic topicSysFlag groupSysFlag",
    310: f"{SEND_V2} -> {SENT}",
    311: "",
    312: "",
    313: "",
    314: "srcGroup! destGroup! topic offline",
    315: "statsName! statsKey!",
    316: "",
    317: "isOrder!",
    318: "",
    319: "",
    320: f"{SEND_V2} -> {SENT}",
    321: "topic queueId index count consumerGroup",
    322: f"{BROKER} -> changed!",
    324: f"{SEND} -> {SENT}",
    325: f"{SEND_V2} -> {SENT}",
    326: "producerGroup! topic! defaultTopic! defaultTopicQueueNums! queueId! sysFlag! bornTimestamp! flag!"
    " properties reconsumeTimes unitMode bornHost! storeHost! storeTimestamp!",
    327: "brokerName! -> addTopicCount!",
    328: "",
    329: "",
    343: "group!",
    345: "group! topic",
    351: "topic! lo",
    352: "group!",
    361: f"{PULL} -> {PULLED}",
    370: "producerGroup topic! recallHandle! -> msgId",
    400: "",
    401: "",
    402: "",
    901: "clusterName! brokerName!",
    904: "clusterName! brokerAddr! brokerName!"
    " brokerId epoch maxOffset confirmOffset heartbeatTimeoutMills electionPriority",
    905: "minBrokerId brokerName minBrokerAddr offlineBrokerAddr haBrokerAddr",
    906: f"{HA_INFO} -> {HA_INFO}",
    907: "",
    908: "masterFlushOffset!",
    1001: "brokerName! masterBrokerId! masterEpoch! invokeTime -> newSyncStateSetEpoch",
    1002: f"clusterName! brokerName! brokerId! designateElect! invokeTime -> {MASTER} syncStateSetEpoch",
    1003: "clusterName! brokerName! brokerId! brokerAddress! invokeTime"
    f" -> clusterName brokerName {MASTER} syncStateSetEpoch",
    1004: f"brokerName! -> {MASTER}",
    1005: "-> group controllerLeaderId controllerLeaderAddress isLeader peers",
    1006: "",
    1007: "",
    1008: f"{MASTER} syncStateSetEpoch",
    1009: "",
    1010: "",
    1011: "clusterName brokerName! brokerControllerIdsToClean isCleanLivingBroker invokeTime",
    1012: "clusterName! brokerName! -> clusterName brokerName nextBrokerId",
    1013: "clusterName! brokerName! appliedBrokerId! registerCheckCode! -> clusterName brokerName",
}


def fields(header_type: type[Header]) -> set[str]:
    return {
        field.encode_name + ("!" if field.required else "") for field in msgspec.structs.fields(header_type)
    }


OURS = {"masterHaAddress", "sessionId", "haAddress", "tablesGap", "damage", "leaseEpoch"}
"""Fields that RocketMQ neither sends nor heeds."""


def test_every_request_of_the_catalogue_is_registered() -> None:
    assert {int(code) for code in EXCHANGES} == CATALOGUE.keys()


@pytest.mark.parametrize("code", EXCHANGES, ids=lambda code: code.name)
def test_its_fields_are_those_of_the_catalogue_and_ours(code: RequestCode) -> None:
    request, _, response = CATALOGUE[code].partition("->")
    exchange = EXCHANGES[code]
    assert fields(exchange.request) - OURS == set(request.split()) - OURS
    assert fields(exchange.response) - OURS == set(response.split()) - OURS


def test_only_these_requests_are_always_one_way() -> None:
    one_way = {int(code) for code, exchange in EXCHANGES.items() if exchange.is_one_way}
    assert one_way == {37, 39, 40, 220, 905, 1008}


def test_a_one_way_request_has_no_fields_to_answer_with() -> None:
    assert not any(fields(exchange.response) for exchange in EXCHANGES.values() if exchange.is_one_way)
