package tanist.partner;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.remoting.CommandCustomHeader;
import org.apache.rocketmq.remoting.protocol.LanguageCode;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RequestCode;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.apache.rocketmq.remoting.protocol.SerializeType;
import org.apache.rocketmq.remoting.protocol.header.EndTransactionRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.HeartbeatRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.PullMessageRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.PullMessageResponseHeader;
import org.apache.rocketmq.remoting.protocol.header.ResetOffsetRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.SendMessageRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.SendMessageRequestHeaderV2;
import org.apache.rocketmq.remoting.protocol.header.SendMessageResponseHeader;
import org.apache.rocketmq.remoting.protocol.header.UpdateConsumerOffsetRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.namesrv.GetRouteInfoRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.namesrv.RegisterBrokerRequestHeader;

/** Whole frames, as the encoder of the network layer writes them, with either kind of header. */
final class GoldenFrames {
    private final Golden golden;
    private int opaque = 100;

    private GoldenFrames(Golden golden) {
        this.golden = golden;
    }

    static void capture(Golden golden) throws Exception {
        GoldenFrames frames = new GoldenFrames(golden);
        frames.requests();
        frames.registrations();
        frames.responses();
        frames.oddities();
    }

    private void requests() throws Exception {
        request("get_route_info", RequestCode.GET_ROUTEINFO_BY_TOPIC, GoldenFrames::routeRequest, null);
        request("send_message", RequestCode.SEND_MESSAGE, GoldenFrames::sendRequest, "hello".getBytes(UTF_8));
        request("send_message_v2", RequestCode.SEND_MESSAGE_V2,
            () -> SendMessageRequestHeaderV2.createSendMessageRequestHeaderV2(sendRequest()), "hello".getBytes(UTF_8));
        request("pull_message", RequestCode.PULL_MESSAGE, GoldenFrames::pullRequest, null);
        request("update_consumer_offset", RequestCode.UPDATE_CONSUMER_OFFSET, GoldenFrames::offsetUpdate, null);
        request("end_transaction", RequestCode.END_TRANSACTION, GoldenFrames::endTransaction, null);
        request("reset_consumer_client_offset", RequestCode.RESET_CONSUMER_CLIENT_OFFSET, GoldenFrames::resetOffset,
            GoldenBodies.resetOffset().encode());
        request("heartbeat", RequestCode.HEART_BEAT, HeartbeatRequestHeader::new, GoldenBodies.heartbeat().encode());
        request("get_broker_cluster_info", RequestCode.GET_BROKER_CLUSTER_INFO, () -> null, null);
    }

    private void registrations() {
        for (boolean compressed : new boolean[] {false, true}) {
            byte[] body = GoldenBodies.registration().encode(compressed);
            request(compressed ? "register_broker_compressed" : "register_broker", RequestCode.REGISTER_BROKER,
                () -> registration(compressed, body), body);
        }
    }

    private void responses() {
        response("send_message_response", ResponseCode.SUCCESS, null, GoldenFrames::sendResponse, null);
        // A body as long as a real one is not needed here: records have cases of their own.
        response("pull_message_response", ResponseCode.SUCCESS, "FOUND", GoldenFrames::pullResponse, new byte[] {1, 2});
        response("route_response", ResponseCode.SUCCESS, null, () -> null, GoldenBodies.route().encode());
        response("error_response", ResponseCode.TOPIC_NOT_EXIST, "topic[T] not exist: 不存在", () -> null, null);
    }

    private void oddities() {
        add("oneway_request", opaque++, () -> {
            RemotingCommand command = RemotingCommand.createRequestCommand(RequestCode.UPDATE_CONSUMER_OFFSET,
                offsetUpdate());
            command.markOnewayRPC();
            return command;
        });
        add("negative_opaque", -7,
            () -> RemotingCommand.createRequestCommand(RequestCode.GET_BROKER_CLUSTER_INFO, null));
        add("extra_fields_of_other_languages", opaque++, () -> {
            RemotingCommand command = RemotingCommand.createRequestCommand(RequestCode.GET_ROUTEINFO_BY_TOPIC, null);
            command.setLanguage(LanguageCode.GO);
            command.setVersion(0);
            command.setExtFields(new HashMap<>(Map.of("topic", "主题\"\\\n\t😀", "empty", "")));
            return command;
        });
    }

    private void request(String name, int code, Supplier<CommandCustomHeader> header, byte[] body) {
        add(name, opaque++, () -> {
            RemotingCommand command = RemotingCommand.createRequestCommand(code, header.get());
            command.setBody(body);
            return command;
        });
    }

    private void response(String name, int code, String remark, Supplier<CommandCustomHeader> header, byte[] body) {
        add(name, opaque++, () -> {
            RemotingCommand command = RemotingCommand.createResponseCommandWithHeader(code, header.get());
            command.setRemark(remark);
            command.setBody(body);
            return command;
        });
    }

    /** Adds one command, encoded twice. It is built twice too: encoding fills fields of the command. */
    private void add(String name, int number, Supplier<RemotingCommand> build) {
        RemotingCommand command = build.get();
        String json = encode(command, number, SerializeType.JSON);
        String binary = encode(build.get(), number, SerializeType.ROCKETMQ);
        byte[] body = command.getBody();
        golden.add("frames", name,
            "code", command.getCode(),
            "language", command.getLanguage().name(),
            "version", command.getVersion(),
            "opaque", command.getOpaque(),
            "flag", command.getFlag(),
            "remark", command.getRemark(),
            "ext_fields", command.getExtFields() == null ? null : new TreeMap<>(command.getExtFields()),
            "body", body == null ? "" : Golden.hex(body),
            "json", json,
            "binary", binary);
    }

    private static String encode(RemotingCommand command, int number, SerializeType type) {
        command.setOpaque(number);
        command.setSerializeTypeCurrentRPC(type);
        ByteBuf frame = Unpooled.buffer();
        command.fastEncodeHeader(frame);
        if (command.getBody() != null) {
            frame.writeBytes(command.getBody());
        }
        return ByteBufUtil.hexDump(frame);
    }

    private static GetRouteInfoRequestHeader routeRequest() {
        GetRouteInfoRequestHeader header = new GetRouteInfoRequestHeader();
        header.setTopic("TopicA");
        header.setAcceptStandardJsonOnly(true);
        return header;
    }

    private static SendMessageRequestHeader sendRequest() {
        SendMessageRequestHeader header = new SendMessageRequestHeader();
        header.setProducerGroup("ProducerA");
        header.setTopic("TopicA");
        header.setDefaultTopic("TBW102");
        header.setDefaultTopicQueueNums(4);
        header.setQueueId(3);
        header.setSysFlag(0);
        header.setBornTimestamp(Golden.BORN_MS);
        header.setFlag(7);
        header.setProperties("KEYS\u0001k1 k2\u0002UNIQ_KEY\u0001U1\u0002TAGS\u0001TagA\u0002");
        header.setReconsumeTimes(0);
        header.setUnitMode(false);
        header.setBatch(false);
        header.setBrokerName("broker-a");
        return header;
    }

    private static SendMessageResponseHeader sendResponse() {
        SendMessageResponseHeader header = new SendMessageResponseHeader();
        header.setMsgId("7F000001000051AF0000000000000547");
        header.setQueueId(3);
        header.setQueueOffset(42L);
        header.setTransactionId("U1");
        return header;
    }

    private static PullMessageRequestHeader pullRequest() {
        PullMessageRequestHeader header = new PullMessageRequestHeader();
        header.setConsumerGroup("GroupA");
        header.setTopic("TopicA");
        header.setQueueId(3);
        header.setQueueOffset(42L);
        header.setMaxMsgNums(32);
        header.setSysFlag(3);
        header.setCommitOffset(41L);
        header.setSuspendTimeoutMillis(15_000L);
        header.setSubscription("TagA || TagB");
        header.setSubVersion(Golden.BORN_MS);
        header.setMaxMsgBytes(Integer.MAX_VALUE);
        header.setExpressionType("TAG");
        header.setBrokerName("broker-a");
        return header;
    }

    private static PullMessageResponseHeader pullResponse() {
        PullMessageResponseHeader header = new PullMessageResponseHeader();
        header.setSuggestWhichBrokerId(1L);
        header.setNextBeginOffset(43L);
        header.setMinOffset(0L);
        header.setMaxOffset(Long.MAX_VALUE);
        return header;
    }

    private static UpdateConsumerOffsetRequestHeader offsetUpdate() {
        UpdateConsumerOffsetRequestHeader header = new UpdateConsumerOffsetRequestHeader();
        header.setConsumerGroup("GroupA");
        header.setTopic("TopicA");
        header.setQueueId(3);
        header.setCommitOffset(42L);
        header.setBrokerName("broker-a");
        return header;
    }

    private static EndTransactionRequestHeader endTransaction() {
        EndTransactionRequestHeader header = new EndTransactionRequestHeader();
        header.setTopic("TopicA");
        header.setProducerGroup("ProducerA");
        header.setTranStateTableOffset(5L);
        header.setCommitLogOffset(1351L);
        header.setCommitOrRollback(8);
        header.setMsgId("U1");
        header.setTransactionId("U1");
        return header;
    }

    private static ResetOffsetRequestHeader resetOffset() {
        ResetOffsetRequestHeader header = new ResetOffsetRequestHeader();
        header.setTopic("TopicA");
        header.setGroup("GroupA");
        header.setTimestamp(Golden.BORN_MS);
        header.setForce(true);
        return header;
    }

    private static RegisterBrokerRequestHeader registration(boolean compressed, byte[] body) {
        RegisterBrokerRequestHeader header = new RegisterBrokerRequestHeader();
        header.setBrokerName("broker-a");
        header.setBrokerAddr("10.0.0.1:10911");
        header.setClusterName("DefaultCluster");
        header.setHaServerAddr("10.0.0.1:10912");
        header.setBrokerId(0L);
        header.setHeartbeatTimeoutMillis(120_000L);
        header.setEnableActingMaster(false);
        header.setCompressed(compressed);
        header.setBodyCrc32(UtilAll.crc32(body));
        return header;
    }
}
