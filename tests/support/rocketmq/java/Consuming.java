package tanist.partner;

import com.alibaba.fastjson.JSONObject;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Consumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Pulls every queue of some topics from its first to its last message and answers with one line a message. */
@SuppressWarnings("deprecation") // The pull consumer is old, but no other one reads a queue to a known end.
final class Consuming {
    private static final int BATCH = 32;

    private Consuming() {
    }

    static void run(JSONObject options, Consumer<Map<String, ?>> answer) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("tanist-test-consumer");
        consumer.setNamesrvAddr(options.getString("nameServer"));
        consumer.start();
        try {
            for (String topic : options.getJSONArray("topics").toJavaList(String.class)) {
                for (MessageQueue queue : new TreeSet<>(consumer.fetchSubscribeMessageQueues(topic))) {
                    long end = pullAll(consumer, queue, answer);
                    if (options.getBooleanValue("isCommitted")) {
                        // The consumer itself keeps only offsets of queues that a rebalance gave it.
                        consumer.getDefaultMQPullConsumerImpl().getOffsetStore()
                            .updateConsumeOffsetToBroker(queue, end, false);
                    }
                }
            }
        } finally {
            consumer.shutdown();
        }
    }

    /** Returns the offset that the next message of the queue will have. */
    private static long pullAll(DefaultMQPullConsumer consumer, MessageQueue queue, Consumer<Map<String, ?>> answer)
            throws Exception {
        long end = consumer.maxOffset(queue);
        long next = consumer.minOffset(queue);
        while (next < end) {
            PullResult pulled = consumer.pull(queue, "*", next, BATCH);
            if (pulled.getPullStatus() != PullStatus.FOUND) {
                throw new IllegalStateException(queue + " at " + next + " of " + end + ": " + pulled);
            }
            for (MessageExt message : pulled.getMsgFoundList()) {
                String offsetMessageId = ((MessageClientExt) message).getOffsetMsgId();
                answer.accept(describe(queue.getBrokerName(), offsetMessageId, message));
            }
            next = pulled.getNextBeginOffset();
        }
        return next;
    }

    static Map<String, ?> describe(String brokerName, String offsetMessageId, MessageExt message) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("topic", message.getTopic());
        line.put("brokerName", brokerName);
        line.put("queueId", message.getQueueId());
        line.put("queueOffset", message.getQueueOffset());
        line.put("logOffset", message.getCommitLogOffset());
        line.put("storedBytes", message.getStoreSize());
        line.put("sysFlag", message.getSysFlag());
        line.put("flag", message.getFlag());
        line.put("bornTimestamp", message.getBornTimestamp());
        line.put("bornHostHex", Golden.hex(message.getBornHostBytes().array()));
        line.put("storeTimestamp", message.getStoreTimestamp());
        line.put("reconsumeTimes", message.getReconsumeTimes());
        line.put("preparedTransactionOffset", message.getPreparedTransactionOffset());
        line.put("messageId", message.getMsgId());
        line.put("offsetMessageId", offsetMessageId);
        line.put("bodyBase64", Base64.getEncoder().encodeToString(message.getBody()));
        line.put("properties", message.getProperties());
        return line;
    }
}
