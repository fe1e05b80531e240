package tanist.client;

import com.alibaba.fastjson.JSONObject;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** The old consumer that asks for its messages and names each offset itself. */
@SuppressWarnings("deprecation") // The old pull consumer is deprecated, and in use.
final class Pulled implements Scenario.Named {
    private final DefaultMQPullConsumer consumer;

    private Pulled(JSONObject options) throws Exception {
        consumer = new DefaultMQPullConsumer(options.getString("group"), Credentials.hook(options));
        Connecting.configure(consumer, options);
        consumer.start();
    }

    static void addTo(Scenario scenario) {
        scenario.step("pull-consumer", options -> {
            scenario.keep(options.getString("name"), new Pulled(options));
            return null;
        });
        scenario.step("pull", options -> scenario.find(options, Pulled.class).pull(options));
        scenario.step("bounds", options -> scenario.find(options, Pulled.class).bounds(options));
    }

    static MessageQueue queue(JSONObject options) {
        return new MessageQueue(options.getString("topic"), options.getString("brokerName"),
            options.getIntValue("queueId"));
    }

    static List<Map<String, ?>> describe(List<MessageExt> messages) {
        List<Map<String, ?>> lines = new ArrayList<>();
        if (messages != null) {
            messages.forEach(message -> lines.add(Pushed.describe(message)));
        }
        return lines;
    }

    @Override
    public void shutdown() {
        consumer.shutdown();
    }

    private Map<String, ?> pull(JSONObject options) throws Exception {
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

    private Map<String, ?> bounds(JSONObject options) throws Exception {
        MessageQueue queue = queue(options);
        return Map.of("queues", consumer.fetchSubscribeMessageQueues(queue.getTopic()).size(),
            "min", consumer.minOffset(queue), "max", consumer.maxOffset(queue),
            "atTime", consumer.searchOffset(queue, options.getLongValue("timeMs")),
            "earliestMs", consumer.earliestMsgStoreTime(queue));
    }
}
