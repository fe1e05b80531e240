package tanist.client;

import com.alibaba.fastjson.JSONObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** A lite pull consumer, which fetches ahead and is polled. */
final class Polled implements Scenario.Named {
    private static final long POLL_MS = 200;
    /** The shortest that a client allows. */
    private static final long AUTO_COMMIT_MS = 1_000;

    private final DefaultLitePullConsumer consumer;

    private Polled(JSONObject options) throws Exception {
        consumer = new DefaultLitePullConsumer(options.getString("group"), Credentials.hook(options));
        Connecting.configure(consumer, options);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setAutoCommit(options.getBooleanValue("isAutoCommitting"));
        consumer.setAutoCommitIntervalMillis(AUTO_COMMIT_MS);
        if (options.containsKey("queueIds")) {
            consumer.start();
            consumer.assign(queues(options));
        } else {
            consumer.subscribe(options.getString("topic"), Selecting.selector(options));
            consumer.start();
        }
    }

    static void addTo(Scenario scenario) {
        scenario.step("lite-consumer", options -> {
            scenario.keep(options.getString("name"), new Polled(options));
            return null;
        });
        scenario.step("poll", options -> scenario.find(options, Polled.class).poll(options));
        scenario.step("committed",
            options -> scenario.find(options, Polled.class).consumer.committed(Pulled.queue(options)));
        scenario.step("offset-for-time", options -> scenario.find(options, Polled.class).consumer
            .offsetForTimestamp(Pulled.queue(options), options.getLong("timeMs")));
        scenario.step("polled-queues", options -> scenario.find(options, Polled.class).assigned());
        order(scenario, "seek", (consumer, queue, options) -> consumer.seek(queue, options.getLongValue("queueOffset")));
        order(scenario, "seek-to-begin", (consumer, queue, options) -> consumer.seekToBegin(queue));
        order(scenario, "seek-to-end", (consumer, queue, options) -> consumer.seekToEnd(queue));
        order(scenario, "pause-queue", (consumer, queue, options) -> consumer.pause(Set.of(queue)));
        order(scenario, "resume-queue", (consumer, queue, options) -> consumer.resume(Set.of(queue)));
        order(scenario, "commit", (consumer, queue, options) -> consumer.commit(Set.of(queue), true));
    }

    @Override
    public void shutdown() {
        consumer.shutdown();
    }

    private static void order(Scenario scenario, String name, Order order) {
        scenario.step(name, options -> {
            order.give(scenario.find(options, Polled.class).consumer, Pulled.queue(options), options);
            return null;
        });
    }

    private static List<MessageQueue> queues(JSONObject options) {
        return options.getJSONArray("queueIds").stream()
            .map(id -> new MessageQueue(options.getString("topic"), options.getString("brokerName"), (Integer) id))
            .collect(Collectors.toList());
    }

    /** Polls until this many messages came, or the time is over. */
    private List<Map<String, ?>> poll(JSONObject options) {
        List<MessageExt> polled = new ArrayList<>();
        long deadline = System.currentTimeMillis() + options.getLongValue("timeoutMs");
        while (polled.size() < options.getIntValue("count") && System.currentTimeMillis() < deadline) {
            polled.addAll(consumer.poll(POLL_MS));
        }
        return Pulled.describe(polled);
    }

    private List<Integer> assigned() throws MQClientException {
        return consumer.assignment().stream().map(MessageQueue::getQueueId).sorted().collect(Collectors.toList());
    }

    /** What a consumer is told about one of its queues. */
    private interface Order {
        void give(DefaultLitePullConsumer consumer, MessageQueue queue, JSONObject options) throws MQClientException;
    }
}
