package tanist.partner;

import com.alibaba.fastjson.JSONObject;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.topic.TopicValidator;

/** Sends numbered messages to chosen queues, one after another, and answers with one line a message. */
final class Producing {
    private static final long ROUTE_LIMIT_NS = 10_000_000_000L;
    private static final long POLL_MS = 10;

    private Producing() {
    }

    static void run(JSONObject options, Consumer<Map<String, ?>> answer) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("tanist-test-producer");
        producer.setNamesrvAddr(options.getString("nameServer"));
        producer.start();
        try {
            send(producer, options, answer);
        } finally {
            producer.shutdown();
        }
    }

    private static void send(DefaultMQProducer producer, JSONObject options, Consumer<Map<String, ?>> answer)
            throws Exception {
        String topic = options.getString("topic");
        List<Integer> queueIds = options.getJSONArray("queues").toJavaList(Integer.class);
        List<String> tags = options.getJSONArray("tags").toJavaList(String.class);
        String keyPrefix = options.getString("keyPrefix");
        List<MessageQueue> queues = queuesOf(producer, topic, Collections.max(queueIds) + 1);
        for (int number = 0; number < options.getIntValue("count"); number++) {
            Message message = new Message(topic, body(number, options.getIntValue("bodyBytes")));
            if (!tags.isEmpty()) {
                message.setTags(tags.get(number % tags.size()));
            }
            if (!keyPrefix.isEmpty()) {
                message.setKeys(keyPrefix + number);
            }
            if (options.getIntValue("delayLevel") > 0) {
                message.setDelayTimeLevel(options.getIntValue("delayLevel"));
            }
            answer.accept(describe(producer.send(message, queues.get(queueIds.get(number % queueIds.size())))));
        }
    }

    /** Returns the queues of a topic by their id; the topic is created with this many if it is unknown. */
    @SuppressWarnings("deprecation") // Creating a topic is an operator's job now, but a test needs no second program.
    private static List<MessageQueue> queuesOf(DefaultMQProducer producer, String topic, int count) throws Exception {
        List<MessageQueue> queues;
        try {
            queues = producer.fetchPublishMessageQueues(topic);
        } catch (MQClientException unknownTopic) {
            producer.createTopic(TopicValidator.AUTO_CREATE_TOPIC_KEY_TOPIC, topic, count, Map.of());
            queues = createdQueuesOf(producer, topic);
        }
        Collections.sort(queues);
        return queues;
    }

    /** A broker has a topic a moment before the name server knows of it. */
    private static List<MessageQueue> createdQueuesOf(DefaultMQProducer producer, String topic) throws Exception {
        long endNs = System.nanoTime() + ROUTE_LIMIT_NS;
        while (true) {
            try {
                return producer.fetchPublishMessageQueues(topic);
            } catch (MQClientException unknownYet) {
                if (System.nanoTime() > endNs) {
                    throw unknownYet;
                }
                Thread.sleep(POLL_MS);
            }
        }
    }

    /** The number, a colon, then one letter that depends on the number, up to the size asked for. */
    private static byte[] body(int number, int size) {
        byte[] start = (number + ":").getBytes(StandardCharsets.UTF_8);
        byte[] body = Arrays.copyOf(start, Math.max(size, start.length));
        Arrays.fill(body, start.length, body.length, (byte) ('a' + number % 26));
        return body;
    }

    private static Map<String, ?> describe(SendResult result) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("status", result.getSendStatus().name());
        line.put("brokerName", result.getMessageQueue().getBrokerName());
        line.put("queueId", result.getMessageQueue().getQueueId());
        line.put("queueOffset", result.getQueueOffset());
        line.put("messageId", result.getMsgId());
        line.put("offsetMessageId", result.getOffsetMsgId());
        return line;
    }
}
