package tanist.client;

import com.alibaba.fastjson.JSONObject;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

/** For the benchmark: how long a message takes from its send to a listener that waits for it, one at a time. */
final class Latency {
    private static final long WAIT_S = 30;
    private static final long LOOK_MS = 20;
    private static final int WARM = 200;

    private Latency() {
    }

    static void addTo(Scenario scenario) {
        scenario.step("latency", options -> measure(scenario.find(options, Sending.class).producer, options));
    }

    private static Map<String, ?> measure(DefaultMQProducer producer, JSONObject options) throws Exception {
        String topic = options.getString("topic");
        byte[] body = new byte[options.getIntValue("bodyBytes")];
        SynchronousQueue<Long> arrivals = new SynchronousQueue<>();
        producer.send(new Message(topic, body));
        awaitRoute(producer, topic);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(options.getString("group"));
        consumer.setNamesrvAddr(options.getString("nameServer"));
        consumer.setInstanceName(options.getString("group"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            long arrivedNs = System.nanoTime();
            try {
                arrivals.offer(arrivedNs, WAIT_S, TimeUnit.SECONDS);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        try {
            take(arrivals);
            long[] taken = new long[options.getIntValue("count")];
            for (int number = -WARM; number < taken.length; number++) {
                long beganNs = System.nanoTime();
                producer.send(new Message(topic, body));
                long took = take(arrivals) - beganNs;
                if (number >= 0) {
                    taken[number] = took;
                }
            }
            return summary(taken);
        } finally {
            consumer.shutdown();
        }
    }

    /** Waits until the name server knows the topic, else a consumer learns of it with its next look at the routes. */
    private static void awaitRoute(DefaultMQProducer producer, String topic) throws Exception {
        long lastMs = System.currentTimeMillis() + WAIT_S * 1000;
        while (true) {
            try {
                producer.fetchPublishMessageQueues(topic);
                return;
            } catch (MQClientException unknown) {
                if (System.currentTimeMillis() > lastMs) {
                    throw unknown;
                }
                Thread.sleep(LOOK_MS);
            }
        }
    }

    private static long take(SynchronousQueue<Long> arrivals) throws InterruptedException {
        Long arrivedNs = arrivals.poll(WAIT_S, TimeUnit.SECONDS);
        if (arrivedNs == null) {
            throw new IllegalStateException("a message did not come within " + WAIT_S + " s");
        }
        return arrivedNs;
    }

    private static Map<String, ?> summary(long[] taken) {
        double seconds = Arrays.stream(taken).sum() / 1e9;
        Arrays.sort(taken);
        return Map.of("count", taken.length, "failures", 0, "rate", taken.length / seconds,
            "p50Micros", taken[taken.length / 2] / 1e3, "p99Micros", taken[(int) (taken.length * 0.99)] / 1e3,
            "p999Micros", taken[(int) (taken.length * 0.999)] / 1e3);
    }
}
