package tanist.client;

import com.alibaba.fastjson.JSONObject;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageQueue;

/** A producer, and the ways in which it sends. */
final class Sending implements Scenario.Named {
    private static final int ASYNC_WAIT_S = 30;

    final DefaultMQProducer producer;
    private Stream stream;

    private Sending(JSONObject options) throws Exception {
        producer = new DefaultMQProducer(options.getString("group"), Credentials.hook(options),
            options.getBooleanValue("isTraced"), options.getString("traceTopic"));
        Connecting.configure(producer, options);
        if (options.containsKey("topicQueues")) {
            producer.setDefaultTopicQueueNums(options.getIntValue("topicQueues"));
        }
        if (options.containsKey("retries")) {
            producer.setRetryTimesWhenSendFailed(options.getIntValue("retries"));
        }
        if (options.containsKey("maxMessageBytes")) {
            producer.setMaxMessageSize(options.getIntValue("maxMessageBytes"));
        }
        if (options.containsKey("compression")) {
            compress(options.getString("compression"));
        }
        producer.start();
    }

    static void addTo(Scenario scenario) {
        scenario.step("producer", options -> {
            scenario.keep(options.getString("name"), new Sending(options));
            return null;
        });
        scenario.step("send", options -> scenario.find(options, Sending.class).send(options));
        scenario.step("stream", options -> scenario.find(options, Sending.class).startStream(options));
        scenario.step("streamed", options -> scenario.find(options, Sending.class).stream.await(options));
        scenario.step("streamed-from", options -> scenario.find(options, Sending.class).stream.awaitFrom(options));
        scenario.step("end-stream", options -> scenario.find(options, Sending.class).stream.end());
    }

    @Override
    public void shutdown() {
        producer.shutdown();
    }

    /** Only RocketMQ 5 knows more than one way to compress, so its names are not written as code. */
    private void compress(String name) throws Exception {
        Class<?> type = Class.forName("org.apache.rocketmq.common.compression.CompressionType");
        producer.getClass().getMethod("setCompressType", type)
            .invoke(producer, type.getMethod("of", String.class).invoke(null, name));
    }

    private Object startStream(JSONObject options) {
        stream = new Stream(producer, options.getString("topic"));
        stream.start();
        return null;
    }

    private List<Map<String, ?>> send(JSONObject options) throws Exception {
        List<Message> messages = new ArrayList<>();
        for (Object message : options.getJSONArray("messages")) {
            messages.add(message(options.getString("topic"), (JSONObject) message));
        }
        switch (options.getString("mode")) {
            case "async":
                return sendAsync(messages);
            case "batch":
                return List.of(describe(producer.send(messages)));
            default:
                List<Map<String, ?>> results = new ArrayList<>();
                for (Message message : messages) {
                    results.add(sendOne(message, options));
                }
                return results;
        }
    }

    private Map<String, ?> sendOne(Message message, JSONObject options) throws Exception {
        switch (options.getString("mode")) {
            case "one-way":
                producer.sendOneway(message);
                return Map.of();
            case "queue":
                return describe(producer.send(message, new MessageQueue(message.getTopic(),
                    options.getString("brokerName"), options.getIntValue("queueId"))));
            case "selector":
                return describe(producer.send(message, (queues, sent, key) ->
                    queues.get((Integer) key % queues.size()), options.getInteger("selectBy")));
            default:
                return describe(producer.send(message));
        }
    }

    private List<Map<String, ?>> sendAsync(List<Message> messages) throws Exception {
        List<Map<String, ?>> results = new ArrayList<>(Collections.nCopies(messages.size(), null));
        CountDownLatch left = new CountDownLatch(messages.size());
        for (int number = 0; number < messages.size(); number++) {
            int place = number;
            producer.send(messages.get(number), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    keep(describe(result));
                }

                @Override
                public void onException(Throwable failure) {
                    keep(Scenario.describe(failure));
                }

                private void keep(Map<String, ?> described) {
                    synchronized (results) {
                        results.set(place, described);
                    }
                    left.countDown();
                }
            });
        }
        if (!left.await(ASYNC_WAIT_S, TimeUnit.SECONDS)) {
            throw new IllegalStateException(left.getCount() + " sends were not answered");
        }
        synchronized (results) {
            return results;
        }
    }

    static Message message(String topic, JSONObject described) {
        Message message = new Message(topic, Base64.getDecoder().decode(described.getString("bodyBase64")));
        message.setFlag(described.getIntValue("flag"));
        if (described.containsKey("tags")) {
            message.setTags(described.getString("tags"));
        }
        if (described.containsKey("keys")) {
            message.setKeys(Arrays.asList(described.getString("keys").split(" ")));
        }
        if (described.containsKey("properties")) {
            described.getJSONObject("properties").forEach(
                (name, value) -> message.putUserProperty(name, (String) value));
        }
        if (described.containsKey("delayLevel")) {
            message.setDelayTimeLevel(described.getIntValue("delayLevel"));
        }
        if (described.containsKey("systemProperties")) {
            // What setDelayTimeMs and its like write, which the older line does not have.
            described.getJSONObject("systemProperties").forEach(
                (name, value) -> MessageAccessor.putProperty(message, name, (String) value));
        }
        return message;
    }

    static Map<String, ?> describe(SendResult result) {
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
