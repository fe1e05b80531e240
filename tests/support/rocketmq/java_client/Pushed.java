package tanist.client;

import com.alibaba.fastjson.JSONObject;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** A push consumer, and all that its listener was given. */
@SuppressWarnings("deprecation") // Which queues a member has is told by nothing that is meant for users.
final class Pushed implements Scenario.Named {
    private static final int THREADS = 4;
    private static final long AWAIT_MS = 5_000;

    private final DefaultMQPushConsumer consumer;
    private final String topic;
    private final List<Map<String, ?>> received = new ArrayList<>();
    private final Set<String> places = new HashSet<>();
    private final ScheduledExecutorService hurry = Executors.newSingleThreadScheduledExecutor();

    private Pushed(JSONObject options) throws Exception {
        topic = options.getString("topic");
        consumer = new DefaultMQPushConsumer(options.getString("group"), Credentials.hook(options),
            new AllocateMessageQueueAveragely(), options.getBooleanValue("isTraced"),
            options.getString("traceTopic"));
        Connecting.configure(consumer, options);
        // What is being consumed when the consumer stops is finished, and its offset committed.
        consumer.setAwaitTerminationMillisWhenShutdown(AWAIT_MS);
        consumer.setConsumeThreadMin(THREADS);
        consumer.setConsumeThreadMax(THREADS);
        consumer.setConsumeFromWhere(ConsumeFromWhere.valueOf(options.getString("from")));
        if (options.containsKey("timestamp")) {
            consumer.setConsumeTimestamp(options.getString("timestamp"));
        }
        if (options.containsKey("maxReconsumeTimes")) {
            consumer.setMaxReconsumeTimes(options.getIntValue("maxReconsumeTimes"));
        }
        if (options.containsKey("pullThreshold")) {
            consumer.setPullThresholdForQueue(options.getIntValue("pullThreshold"));
        }
        if (options.getBooleanValue("isBroadcasting")) {
            broadcast();
        }
        if (options.getBooleanValue("isAssignedByBroker")) {
            // Only RocketMQ 5 has this, so it is not named here.
            consumer.getClass().getMethod("setClientRebalance", boolean.class).invoke(consumer, false);
        }
        consumer.subscribe(topic, Selecting.selector(options));
        Failing failing = new Failing(options);
        if (options.getBooleanValue("isOrderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                keep(messages);
                return failing.consume(messages, context);
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                keep(messages);
                return failing.consume(messages, context);
            });
        }
        consumer.start();
        if (options.containsKey("rebalanceMs")) {
            long periodMs = options.getLongValue("rebalanceMs");
            hurry.scheduleWithFixedDelay(this::rebalance, periodMs, periodMs, TimeUnit.MILLISECONDS);
        }
    }

    static void addTo(Scenario scenario) {
        scenario.step("push-consumer", options -> {
            scenario.keep(options.getString("name"), new Pushed(options));
            return null;
        });
        scenario.step("received", options -> scenario.find(options, Pushed.class).await(options));
        scenario.step("assigned", options -> scenario.find(options, Pushed.class).assigned());
        scenario.step("leave", options -> {
            scenario.find(options, Pushed.class).shutdown();
            return null;
        });
        scenario.step("suspend", options -> {
            scenario.find(options, Pushed.class).consumer.suspend();
            return null;
        });
        scenario.step("resume", options -> {
            scenario.find(options, Pushed.class).consumer.resume();
            return null;
        });
        scenario.step("rebalance", options -> {
            scenario.find(options, Pushed.class).rebalance();
            return null;
        });
    }

    @Override
    public void shutdown() {
        hurry.shutdown();
        consumer.shutdown();
    }

    /** Do at once what else happens every 30 and every 20 s: look at the routes, and share the queues. */
    private void rebalance() {
        var factory = consumer.getDefaultMQPushConsumerImpl().getmQClientFactory();
        factory.updateTopicRouteInfoFromNameServer();
        factory.rebalanceImmediately();
    }

    /** The lines of RocketMQ keep this enum in different packages, so it is not named here. */
    private void broadcast() {
        for (var model : consumer.getMessageModel().getClass().getEnumConstants()) {
            if (model.name().equals("BROADCASTING")) {
                consumer.setMessageModel(model);
            }
        }
    }

    private synchronized void keep(List<MessageExt> messages) {
        for (MessageExt message : messages) {
            places.add(message.getStoreHost() + "@" + message.getCommitLogOffset());
            received.add(describe(message));
        }
        notifyAll();
    }

    /** Waits for this many different messages, or until the time is over, and returns all that came. */
    private synchronized List<Map<String, ?>> await(JSONObject options) throws InterruptedException {
        long deadline = System.currentTimeMillis() + options.getLongValue("timeoutMs");
        long left = deadline - System.currentTimeMillis();
        while (places.size() < options.getIntValue("count") && left > 0) {
            wait(left);
            left = deadline - System.currentTimeMillis();
        }
        return List.copyOf(received);
    }

    /** The queues that this member has, and whether it holds their locks. */
    private Map<String, Boolean> assigned() {
        Map<String, Boolean> queues = new LinkedHashMap<>();
        consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().forEach(
            (queue, process) -> {
                if (queue.getTopic().equals(topic) && !process.isDropped()) {
                    queues.put(String.valueOf(queue.getQueueId()), process.isLocked());
                }
            });
        return queues;
    }

    static Map<String, ?> describe(MessageExt message) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("receivedMs", System.currentTimeMillis());
        line.put("bornMs", message.getBornTimestamp());
        line.put("topic", message.getTopic());
        line.put("queueId", message.getQueueId());
        line.put("queueOffset", message.getQueueOffset());
        line.put("reconsumeTimes", message.getReconsumeTimes());
        line.put("messageId", message.getMsgId());
        line.put("flag", message.getFlag());
        line.put("tags", message.getTags());
        line.put("keys", message.getKeys());
        line.put("bodyBase64", Base64.getEncoder().encodeToString(message.getBody()));
        line.put("properties", message.getProperties());
        return line;
    }
}
