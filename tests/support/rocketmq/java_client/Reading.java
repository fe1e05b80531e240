package tanist.client;

import com.alibaba.fastjson.JSONObject;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A push consumer at default settings that notes when it was given which message, and takes its time over each.
 *
 * <p>Times are those of the clock that all processes of a machine share.
 */
final class Reading implements Scenario.Named {
    private static final long AWAIT_MS = 10_000;

    private final JSONObject options;
    private final List<long[]> deliveries = new ArrayList<>();
    private DefaultMQPushConsumer consumer;
    private volatile long paceMs;

    private Reading(JSONObject options) throws Exception {
        this.options = options;
        paceMs = options.getLongValue("paceMs");
        begin();
    }

    private void begin() throws Exception {
        consumer = new DefaultMQPushConsumer(options.getString("group"));
        Connecting.configure(consumer, options);
        // What it has read ahead is consumed before it ends, and its offset committed if there is a broker.
        consumer.setAwaitTerminationMillisWhenShutdown(AWAIT_MS);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(options.getString("topic"), "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            keep(messages);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
    }

    static void addTo(Scenario scenario) {
        scenario.step("reader", options -> {
            scenario.keep(options.getString("name"), new Reading(options));
            return null;
        });
        scenario.step("reader-pace", options -> {
            scenario.find(options, Reading.class).paceMs = options.getLongValue("paceMs");
            return null;
        });
        scenario.step("reader-end", options -> scenario.find(options, Reading.class).end());
        scenario.step("reader-begin", options -> {
            scenario.find(options, Reading.class).begin();
            return null;
        });
        scenario.step("read", options -> scenario.find(options, Reading.class).since(options.getIntValue("from")));
    }

    @Override
    public void shutdown() {
        consumer.shutdown();
    }

    /** Ends the consumer, and tells when it was over. The one that begins then knows nothing of it. */
    private long end() {
        consumer.shutdown();
        return System.nanoTime();
    }

    private void keep(List<MessageExt> messages) {
        long timeNs = System.nanoTime();
        synchronized (this) {
            for (MessageExt message : messages) {
                deliveries.add(new long[] {timeNs, message.getQueueId(), message.getQueueOffset()});
            }
        }
        try {
            Thread.sleep(paceMs);
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
    }

    /** Time, queue and offset of each delivery but the first ones. */
    private synchronized List<long[]> since(int from) {
        return List.copyOf(deliveries.subList(from, deliveries.size()));
    }
}
