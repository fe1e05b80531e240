package tanist.partner;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.compression.CompressorFactory;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.common.sysflag.MessageSysFlag;
import org.apache.rocketmq.store.PutMessageResult;

/** Records as a commit log holds them, and the body of a batch request before and after it was stored. */
final class GoldenRecords {
    private static final Map<String, String> PROPERTIES = Map.of("KEYS", "k1 k2", "UNIQ_KEY", "U1", "TAGS", "TagA");
    private static final byte[] HELLO = "hello".getBytes(UTF_8);

    private final Golden golden;
    private final ScratchStore store;
    private final boolean hasCrc;

    private GoldenRecords(Golden golden, ScratchStore store, boolean hasCrc) {
        this.golden = golden;
        this.store = store;
        this.hasCrc = hasCrc;
    }

    static void capture(Golden golden, Path scratch) throws Exception {
        GoldenRecords plain = new GoldenRecords(golden,
            ScratchStore.open(scratch.resolve("records"), config -> { }), false);
        plain.plain();
        plain.hosts();
        plain.compressed("");
        plain.batch("batch");
        GoldenRecords checked = new GoldenRecords(golden,
            ScratchStore.open(scratch.resolve("records-crc"), config -> config.setEnabledAppendPropCRC(true)), true);
        checked.checked();
        checked.compressed("_with_crc");
        checked.batch("batch_with_crc");
    }

    private void plain() {
        add("v1", message("TopicA", HELLO, PROPERTIES));
        add("v1_again", message("TopicA", HELLO, PROPERTIES));
        add("v1_without_properties", message("TopicA", new byte[] {0}, Map.of()));
        add("v1_longest_topic", message("t".repeat(127), HELLO, PROPERTIES));
        add("v2_long_topic", message("%RETRY%" + "g".repeat(130), HELLO, PROPERTIES));
        add("v1_wide_characters", message("TopicA", "😀".getBytes(UTF_8), Map.of("KEYS", "中文", "user", "é")));
        MessageExtBrokerInner committed = message("TopicA", HELLO, PROPERTIES);
        committed.setSysFlag(MessageSysFlag.TRANSACTION_COMMIT_TYPE);
        committed.setPreparedTransactionOffset(1351);
        add("v1_committed_transaction", committed);
        MessageExtBrokerInner prepared = message("TopicA", HELLO, PROPERTIES);
        prepared.setSysFlag(MessageSysFlag.TRANSACTION_PREPARED_TYPE);
        add("v1_prepared_transaction", prepared);
    }

    private void hosts() throws Exception {
        InetSocketAddress wide = new InetSocketAddress(InetAddress.getByName("2001:db8::1"), 65535);
        MessageExtBrokerInner born = message("TopicA", HELLO, PROPERTIES);
        born.setBornHost(wide);
        add("v1_ipv6_born_host", born);
        MessageExtBrokerInner both = message("TopicA", HELLO, PROPERTIES);
        both.setBornHost(wide);
        both.setStoreHost(wide);
        add("v1_ipv6_both_hosts", both);
        MessageExtBrokerInner longTopic = message("%RETRY%" + "g".repeat(130), HELLO, PROPERTIES);
        longTopic.setBornHost(wide);
        longTopic.setStoreHost(wide);
        add("v2_ipv6_both_hosts", longTopic);
    }

    private void compressed(String suffix) throws Exception {
        byte[] body = "the same words again and again, ".repeat(20).getBytes(UTF_8);
        for (CompressionType type : CompressionType.values()) {
            byte[] stored = CompressorFactory.getCompressor(type).compress(body, 5);
            MessageExtBrokerInner message = message("TopicA", stored, PROPERTIES);
            message.setSysFlag(MessageSysFlag.COMPRESSED_FLAG | type.getCompressionFlag());
            String name = "v1_compressed_" + type.name().toLowerCase() + suffix;
            golden.add("records", name, describe(message, body, store.append(message)));
        }
    }

    private void checked() {
        add("v1_with_crc", message("TopicA", HELLO, PROPERTIES));
        add("v1_with_crc_alone", message("TopicA", HELLO, Map.of()));
        add("v2_with_crc", message("%RETRY%" + "g".repeat(130), HELLO, PROPERTIES));
        // Older clients leave out the separator after the last property.
        MessageExtBrokerInner unended = message("TopicA", HELLO, PROPERTIES);
        unended.setPropertiesString("KEYS\u0001k1");
        add("v1_with_crc_after_unended_properties", unended);
    }

    /** Adds the body of a batch request and the records that the store made of it. */
    private void batch(String name) {
        List<Message> messages = new ArrayList<>();
        for (int number = 0; number < 3; number++) {
            Message message = new Message("TopicB", "TagA", "k" + number, ("body " + number).getBytes(UTF_8));
            message.setFlag(number);
            messages.add(message);
        }
        byte[] body = MessageDecoder.encodeMessages(messages);
        MessageExtBatch batch = new MessageExtBatch();
        MessageExtBrokerInner like = message("TopicB", body, Map.of("WAIT", "true"));
        batch.setTopic(like.getTopic());
        batch.setQueueId(like.getQueueId());
        batch.setBody(body);
        batch.setBornTimestamp(like.getBornTimestamp());
        batch.setBornHost(like.getBornHost());
        batch.setStoreHost(like.getStoreHost());
        MessageAccessor.setProperties(batch, like.getProperties());
        batch.setPropertiesString(like.getPropertiesString());
        PutMessageResult result = store.putMessages(batch);
        long start = result.getAppendMessageResult().getWroteOffset();
        golden.add("batches", name,
            "topic", like.getTopic(),
            "queue_id", like.getQueueId(),
            "batch_properties", like.getPropertiesString(),
            "messages", describeBatch(messages),
            "request_body", Golden.hex(body),
            "log_offset", start,
            "offset_message_ids", result.getAppendMessageResult().getMsgId(),
            "records", Golden.hex(store.bytes(start, result.getAppendMessageResult().getWroteBytes())));
    }

    private static List<Map<String, ?>> describeBatch(List<Message> messages) {
        List<Map<String, ?>> described = new ArrayList<>();
        for (Message message : messages) {
            described.add(Golden.map("flag", message.getFlag(), "body", Golden.hex(message.getBody()),
                "properties", MessageDecoder.messageProperties2String(message.getProperties())));
        }
        return described;
    }

    private void add(String name, MessageExtBrokerInner message) {
        golden.add("records", name, describe(message, message.getBody(), store.append(message)));
    }

    private static MessageExtBrokerInner message(String topic, byte[] body, Map<String, String> properties) {
        MessageExtBrokerInner message = ScratchStore.message(topic, 1, body, properties);
        message.setFlag(7);
        message.setReconsumeTimes(2);
        return message;
    }

    /** The record, and its fields as RocketMQ reads them back. */
    private Map<String, Object> describe(MessageExtBrokerInner message, byte[] body, byte[] record) {
        MessageExt read = MessageDecoder.decode(ByteBuffer.wrap(record), true, false);
        Map<String, Object> values = new LinkedHashMap<>();
        values.put("topic", read.getTopic());
        values.put("queue_id", read.getQueueId());
        values.put("flag", read.getFlag());
        values.put("queue_offset", read.getQueueOffset());
        values.put("log_offset", read.getCommitLogOffset());
        values.put("sys_flag", read.getSysFlag());
        values.put("born_timestamp", read.getBornTimestamp());
        values.put("born_address", ((InetSocketAddress) read.getBornHost()).getAddress().getHostAddress());
        values.put("born_port", ((InetSocketAddress) read.getBornHost()).getPort());
        values.put("store_timestamp", read.getStoreTimestamp());
        values.put("store_address", ((InetSocketAddress) read.getStoreHost()).getAddress().getHostAddress());
        values.put("store_port", ((InetSocketAddress) read.getStoreHost()).getPort());
        values.put("reconsume_times", read.getReconsumeTimes());
        values.put("prepared_transaction_offset", read.getPreparedTransactionOffset());
        values.put("body_crc", read.getBodyCRC());
        values.put("body", Golden.hex(body));
        values.put("stored_body", Golden.hex(read.getBody()));
        values.put("given_properties", message.getPropertiesString());
        values.put("properties", read.getProperties() == null ? Map.of() : new TreeMap<>(read.getProperties()));
        values.put("offset_message_id", read.getMsgId());
        values.put("has_crc", hasCrc);
        values.put("record", Golden.hex(record));
        return values;
    }
}
