package tanist.partner;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.parser.Feature;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.DataVersion;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;
import org.apache.rocketmq.remoting.protocol.admin.ConsumeStats;
import org.apache.rocketmq.remoting.protocol.admin.OffsetWrapper;
import org.apache.rocketmq.remoting.protocol.admin.TopicOffset;
import org.apache.rocketmq.remoting.protocol.admin.TopicStatsTable;
import org.apache.rocketmq.remoting.protocol.body.ClusterInfo;
import org.apache.rocketmq.remoting.protocol.body.ConsumerOffsetSerializeWrapper;
import org.apache.rocketmq.remoting.protocol.body.ConsumerRunningInfo;
import org.apache.rocketmq.remoting.protocol.body.GetConsumerStatusBody;
import org.apache.rocketmq.remoting.protocol.body.HARuntimeInfo;
import org.apache.rocketmq.remoting.protocol.body.LockBatchRequestBody;
import org.apache.rocketmq.remoting.protocol.body.ProcessQueueInfo;
import org.apache.rocketmq.remoting.protocol.body.RegisterBrokerBody;
import org.apache.rocketmq.remoting.protocol.body.ResetOffsetBody;
import org.apache.rocketmq.remoting.protocol.body.SubscriptionGroupWrapper;
import org.apache.rocketmq.remoting.protocol.filter.FilterAPI;
import org.apache.rocketmq.remoting.protocol.heartbeat.ConsumeType;
import org.apache.rocketmq.remoting.protocol.heartbeat.ConsumerData;
import org.apache.rocketmq.remoting.protocol.heartbeat.HeartbeatData;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.remoting.protocol.heartbeat.ProducerData;
import org.apache.rocketmq.remoting.protocol.heartbeat.SubscriptionData;
import org.apache.rocketmq.remoting.protocol.route.BrokerData;
import org.apache.rocketmq.remoting.protocol.route.QueueData;
import org.apache.rocketmq.remoting.protocol.route.TopicRouteData;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;

/**
 * JSON bodies, several of them with the bare integers and whole objects as keys that standard JSON forbids.
 *
 * <p>Each case has the text, and its meaning in standard JSON: integer keys are strings there, and a map with objects
 * as keys is a list of key and value pairs.
 */
final class GoldenBodies {
    private final Golden golden;

    private GoldenBodies(Golden golden) {
        this.golden = golden;
    }

    static void capture(Golden golden) throws Exception {
        GoldenBodies bodies = new GoldenBodies(golden);
        bodies.add("topic_route_data", route());
        // The name server writes this form for clients that ask for standard JSON.
        bodies.add("topic_route_data_standard_json", route().encode(SerializerFeature.BrowserCompatible,
            SerializerFeature.QuoteFieldNames, SerializerFeature.SkipTransientField, SerializerFeature.MapSortField));
        bodies.add("cluster_info", clusterInfo());
        bodies.add("heartbeat_data", heartbeat());
        bodies.add("register_broker_body", registration());
        bodies.add("topic_config_wrapper", registration().getTopicConfigSerializeWrapper());
        bodies.add("subscription_group_wrapper", subscriptionGroups());
        bodies.add("consumer_offset_wrapper", consumerOffsets());
        bodies.add("reset_offset_body", resetOffset());
        bodies.add("consumer_status_body", consumerStatus());
        bodies.add("consumer_running_info", consumerRunningInfo());
        bodies.add("consume_stats", consumeStats());
        bodies.add("topic_stats_table", topicStats());
        bodies.add("lock_batch_request_body", lockBatch());
        bodies.add("ha_runtime_info", haRuntimeInfo());
        byte[] compressed = registration().encode(true);
        golden.add("bodies", "register_broker_body_compressed", "hex", Golden.hex(compressed));
    }

    private void add(String name, RemotingSerializable body) {
        add(name, body.encode());
    }

    private void add(String name, byte[] body) {
        String text = new String(body, UTF_8);
        golden.add("bodies", name, "text", text, "value", standard(JSON.parse(text, Feature.OrderedField)));
    }

    static Object standard(Object parsed) {
        if (parsed instanceof List) {
            return ((List<?>) parsed).stream().map(GoldenBodies::standard).collect(Collectors.toList());
        }
        if (!(parsed instanceof Map)) {
            return parsed;
        }
        Map<String, Object> object = new LinkedHashMap<>();
        List<List<?>> pairs = new ArrayList<>();
        ((Map<?, ?>) parsed).forEach((key, value) -> {
            if (key instanceof String) {
                object.put((String) key, standard(value));
            } else {
                pairs.add(List.of(standard(key), standard(value)));
            }
        });
        return pairs.isEmpty() ? object : pairs;
    }

    static TopicRouteData route() {
        TopicRouteData route = new TopicRouteData();
        route.setBrokerDatas(new ArrayList<>(List.of(broker("broker-a"), broker("broker-b"))));
        route.setQueueDatas(new ArrayList<>(List.of(queues("broker-a"), queues("broker-b"))));
        route.setFilterServerTable(new HashMap<>());
        return route;
    }

    private static BrokerData broker(String name) {
        HashMap<Long, String> addresses = new HashMap<>(Map.of(0L, "10.0.0.1:10911", 1L, "10.0.0.2:10911"));
        return new BrokerData("DefaultCluster", name, addresses);
    }

    private static QueueData queues(String brokerName) {
        QueueData queues = new QueueData();
        queues.setBrokerName(brokerName);
        queues.setReadQueueNums(4);
        queues.setWriteQueueNums(4);
        queues.setPerm(6);
        return queues;
    }

    private static ClusterInfo clusterInfo() {
        ClusterInfo info = new ClusterInfo();
        info.setBrokerAddrTable(new TreeMap<>(Map.of("broker-a", broker("broker-a"))));
        info.setClusterAddrTable(new TreeMap<>(Map.of("DefaultCluster", new HashSet<>(List.of("broker-a")))));
        return info;
    }

    static HeartbeatData heartbeat() throws Exception {
        SubscriptionData subscription = FilterAPI.buildSubscriptionData("TopicA", "TagA || TagB");
        subscription.setSubVersion(Golden.BORN_MS);
        ConsumerData consumer = new ConsumerData();
        consumer.setGroupName("GroupA");
        consumer.setConsumeType(ConsumeType.CONSUME_PASSIVELY);
        consumer.setMessageModel(MessageModel.CLUSTERING);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
        consumer.getSubscriptionDataSet().add(subscription);
        ProducerData producer = new ProducerData();
        producer.setGroupName("ProducerA");
        HeartbeatData heartbeat = new HeartbeatData();
        heartbeat.setClientID("10.0.0.5@1234#5678");
        heartbeat.getConsumerDataSet().add(consumer);
        heartbeat.getProducerDataSet().add(producer);
        return heartbeat;
    }

    static RegisterBrokerBody registration() {
        RegisterBrokerBody body = new RegisterBrokerBody();
        body.getTopicConfigSerializeWrapper().setDataVersion(dataVersion());
        ConcurrentMap<String, TopicConfig> topics = body.getTopicConfigSerializeWrapper().getTopicConfigTable();
        topics.put("TopicA", new TopicConfig("TopicA", 4, 4, 6));
        TopicConfig other = new TopicConfig("TopicB", 8, 16, 4);
        other.getAttributes().put("message.type", "NORMAL");
        topics.put("TopicB", other);
        body.getTopicConfigSerializeWrapper().getMappingDataVersion().assignNewOne(dataVersion());
        return body;
    }

    static DataVersion dataVersion() {
        DataVersion version = new DataVersion();
        version.setTimestamp(Golden.STORED_MS);
        version.setStateVersion(2);
        version.setCounter(new AtomicLong(17));
        return version;
    }

    private static SubscriptionGroupWrapper subscriptionGroups() {
        SubscriptionGroupWrapper groups = new SubscriptionGroupWrapper();
        groups.setDataVersion(dataVersion());
        SubscriptionGroupConfig group = new SubscriptionGroupConfig();
        group.setGroupName("GroupA");
        groups.getSubscriptionGroupTable().put("GroupA", group);
        return groups;
    }

    private static ConsumerOffsetSerializeWrapper consumerOffsets() {
        ConsumerOffsetSerializeWrapper offsets = new ConsumerOffsetSerializeWrapper();
        offsets.setDataVersion(dataVersion());
        offsets.getOffsetTable().put("TopicA@GroupA", new ConcurrentHashMap<>(Map.of(0, 11L, 1, 22L, 10, 33L)));
        offsets.getOffsetTable().put("%RETRY%GroupA@GroupA", new ConcurrentHashMap<>(Map.of(0, 0L)));
        return offsets;
    }

    static ResetOffsetBody resetOffset() {
        ResetOffsetBody body = new ResetOffsetBody();
        body.setOffsetTable(new TreeMap<>(Map.of(queue(0), 5L, queue(1), 12L)));
        return body;
    }

    static MessageQueue queue(int queueId) {
        return new MessageQueue("TopicA", "broker-a", queueId);
    }

    @SuppressWarnings("deprecation") // Clients still answer with it.
    private static GetConsumerStatusBody consumerStatus() {
        GetConsumerStatusBody body = new GetConsumerStatusBody();
        body.setMessageQueueTable(new TreeMap<>(Map.of(queue(0), 5L, queue(1), 12L)));
        return body;
    }

    private static ConsumerRunningInfo consumerRunningInfo() {
        ConsumerRunningInfo info = new ConsumerRunningInfo();
        info.getProperties().put(ConsumerRunningInfo.PROP_CONSUME_TYPE, "CONSUME_PASSIVELY");
        ProcessQueueInfo process = new ProcessQueueInfo();
        process.setCommitOffset(5);
        process.setLocked(true);
        info.getMqTable().put(queue(0), process);
        return info;
    }

    private static ConsumeStats consumeStats() {
        OffsetWrapper offset = new OffsetWrapper();
        offset.setBrokerOffset(100);
        offset.setConsumerOffset(90);
        offset.setLastTimestamp(Golden.STORED_MS);
        ConsumeStats stats = new ConsumeStats();
        stats.setConsumeTps(1.5);
        stats.setOffsetTable(new ConcurrentHashMap<>(Map.of(queue(0), offset)));
        return stats;
    }

    private static TopicStatsTable topicStats() {
        TopicOffset offset = new TopicOffset();
        offset.setMinOffset(3);
        offset.setMaxOffset(100);
        offset.setLastUpdateTimestamp(Golden.STORED_MS);
        TopicStatsTable stats = new TopicStatsTable();
        stats.setOffsetTable(new ConcurrentHashMap<>(Map.of(queue(0), offset)));
        return stats;
    }

    private static LockBatchRequestBody lockBatch() {
        LockBatchRequestBody body = new LockBatchRequestBody();
        body.setConsumerGroup("GroupA");
        body.setClientId("10.0.0.5@1234#5678");
        body.setMqSet(new HashSet<>(Collections.singleton(queue(0))));
        return body;
    }

    private static HARuntimeInfo haRuntimeInfo() {
        HARuntimeInfo.HAConnectionRuntimeInfo connection = new HARuntimeInfo.HAConnectionRuntimeInfo();
        connection.setAddr("10.0.0.2:40112");
        connection.setSlaveAckOffset(900);
        connection.setDiff(100);
        connection.setInSync(true);
        HARuntimeInfo info = new HARuntimeInfo();
        info.setMaster(true);
        info.setMasterCommitLogMaxOffset(1000);
        info.setInSyncSlaveNums(1);
        info.setHaConnectionInfo(Arrays.asList(connection));
        return info;
    }
}
