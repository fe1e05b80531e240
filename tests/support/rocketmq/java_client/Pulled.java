package tanist.client;

import com.alibaba.fastjson.JSONObject;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Consumers that ask for their messages: the lite one, and the old one that names each offset itself. */
@SuppressWarnings("deprecation") // The old pull consumer is deprecated, and in use.
final class Pulled {
    private static final long POLL_MS = 200;

    private Pulled() {
    }

    static void addTo(Scenario scenario) {
        scenario.step("lite-consumer", options -> {
            scenario.keep(options.getString("name"), new Lite(options));
            return null;
        });
        scenario.step("poll", options -> scenario.find(options, Lite.class).poll(options));
        scenario.step("seek", options -> scenario.find(options, Lite.class).seek(options));
        scenario.step("commit", options -> scenario.find(options, Lite.class).commit(options));
        scenario.step("committed", options -> scenario.find(options, Lite.class).consumer.committed(queue(options)));
        scenario.step("pull-consumer", options -> {
            scenario.keep(options.getString("name"), new ByHand(options));
            return null;
        });
        scenario.step("pull", options -> scenario.find(options, ByHand.class).pull(options));
        scenario.step("bounds", options -> scenario.find(options, ByHand.class).bounds(options));
    }

    private static MessageQueue queue(JSONObject options) {
        return new MessageQueue(options.getString("topic"), options.getString("brokerName"),
            options.getIntValue("queueId"));
    }

    private static List<Map<String, ?>> describe(List<MessageExt> messages) {
        List<Map<String, ?>> lines = new ArrayList<>();
        if (messages != null) {
            messages.forEach(message -> lines.add(Pushed.describe(message)));
        }
        return lines;
    }

    private static final class Lite implements Scenario.Named {
        private final DefaultLitePullConsumer consumer;

        Lite(JSONObject options) throws Exception {
            consumer = new DefaultLitePullConsumer(options.getString("group"), Credentials.hook(options));
            consumer.setNamesrvAddr(options.getString("nameServer"));
            consumer.setInstanceName(options.getString("name"));
            consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            consumer.setAutoCommit(false);
            if (options.containsKey("queueId")) {
                consumer.start();
                consumer.assign(List.of(queue(options)));
            } else {
                consumer.subscribe(options.getString("topic"), Selecting.selector(options));
                consumer.start();
            }
        }

        @Override
        public void shutdown() {
            consumer.shutdown();
        }

        /** Polls until this many messages came, or the time is over. */
        List<Map<String, ?>> poll(JSONObject options) {
            List<MessageExt> polled = new ArrayList<>();
            long deadline = System.currentTimeMillis() + options.getLongValue("timeoutMs");
            while (polled.size() < options.getIntValue("count") && System.currentTimeMillis() < deadline) {
                polled.addAll(consumer.poll(POLL_MS));
            }
            return describe(polled);
        }

        Object seek(JSONObject options) throws Exception {
            consumer.seek(queue(options), options.getLongValue("queueOffset"));
            return null;
        }

        Object commit(JSONObject options) {
            consumer.commit(Set.of(queue(options)), true);
            return null;
        }
    }

    private static final class ByHand implements Scenario.Named {
        private final DefaultMQPullConsumer consumer;

        ByHand(JSONObject options) throws Exception {
            consumer = new DefaultMQPullConsumer(options.getString("group"), Credentials.hook(options));
            consumer.setNamesrvAddr(options.getString("nameServer"));
            consumer.setInstanceName(options.getString("name"));
            if (options.containsKey("heartbeatMs")) {
                consumer.setHeartbeatBrokerInterval(options.getIntValue("heartbeatMs"));
            }
            consumer.start();
        }

        @Override
        public void shutdown() {
            consumer.shutdown();
        }

        Map<String, ?> pull(JSONObject options) throws Exception {
            String expression = options.getString("expression");
            long queueOffset = options.getLongValue("queueOffset");
            int count = options.getIntValue("count");
            PullResult pulled = options.getBooleanValue("isBlocking")
                ? consumer.pullBlockIfNotFound(queue(options), expression, queueOffset, count)
                : consumer.pull(queue(options), Selecting.selector(options), queueOffset, count);
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("status", pulled.getPullStatus().name());
            line.put("next", pulled.getNextBeginOffset());
            line.put("min", pulled.getMinOffset());
            line.put("max", pulled.getMaxOffset());
            line.put("messages", describe(pulled.getMsgFoundList()));
            return line;
        }

        Map<String, ?> bounds(JSONObject options) throws Exception {
            MessageQueue queue = queue(options);
            return Map.of("queues", consumer.fetchSubscribeMessageQueues(queue.getTopic()).size(),
                "min", consumer.minOffset(queue), "max", consumer.maxOffset(queue),
                "atTime", consumer.searchOffset(queue, options.getLongValue("timeMs")),
                "earliestMs", consumer.earliestMsgStoreTime(queue));
        }
    }
}
