package tanist.client;

import com.alibaba.fastjson.JSONObject;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

/**
 * Sends numbered messages from a few threads, without end, while something is done to the broker.
 *
 * <p>Each acknowledgement is noted with the time and the broker that gave it.
 */
final class Stream {
    private static final int THREADS = 4;
    private static final int PAUSE_MS = 2;

    private final DefaultMQProducer producer;
    private final String topic;
    private final AtomicInteger number = new AtomicInteger();
    private final AtomicInteger failures = new AtomicInteger();
    private final List<String> acknowledged = Collections.synchronizedList(new ArrayList<>());
    private final List<Acknowledgement> log = Collections.synchronizedList(new ArrayList<>());
    private final List<Thread> threads = new ArrayList<>();
    private volatile boolean isOver;

    Stream(DefaultMQProducer producer, String topic) {
        this.producer = producer;
        this.topic = topic;
    }

    void start() {
        for (int count = 0; count < THREADS; count++) {
            Thread thread = new Thread(this::run, "stream-" + count);
            threads.add(thread);
            thread.start();
        }
    }

    /** Waits until this many messages more than now are acknowledged. */
    Object await(JSONObject options) throws InterruptedException {
        int wanted = acknowledged.size() + options.getIntValue("count");
        long deadline = System.currentTimeMillis() + options.getLongValue("timeoutMs");
        while (acknowledged.size() < wanted && System.currentTimeMillis() < deadline) {
            Thread.sleep(PAUSE_MS);
        }
        if (acknowledged.size() < wanted) {
            throw new IllegalStateException(acknowledged.size() + " messages acknowledged, not " + wanted);
        }
        return null;
    }

    /**
     * Waits for the first message that this broker acknowledged since then, and tells when that was.
     *
     * <p>Times are those of the clock that all processes of a machine share.
     */
    Object awaitFrom(JSONObject options) throws InterruptedException {
        long since = options.getLongValue("sinceNs");
        String broker = options.getString("storeHost");
        long deadline = System.currentTimeMillis() + options.getLongValue("timeoutMs");
        int looked = 0;
        while (System.currentTimeMillis() < deadline) {
            for (; looked < log.size(); looked++) {
                Acknowledgement one = log.get(looked);
                if (one.timeNs >= since && one.storeHost.equals(broker)) {
                    return one.timeNs;
                }
            }
            Thread.sleep(PAUSE_MS);
        }
        throw new IllegalStateException("nothing was acknowledged by " + broker + ", and " + failures + " sends failed");
    }

    Map<String, ?> end() throws InterruptedException {
        isOver = true;
        for (Thread thread : threads) {
            thread.join();
        }
        return Map.of("acknowledged", acknowledged, "failures", failures.get());
    }

    private void run() {
        while (!isOver) {
            String body = "stream-" + number.getAndIncrement();
            try {
                SendResult result = producer.send(new Message(topic, body.getBytes(StandardCharsets.UTF_8)));
                if (result.getSendStatus() == SendStatus.SEND_OK) {
                    log.add(new Acknowledgement(System.nanoTime(), result.getOffsetMsgId()));
                    acknowledged.add(body);
                }
            } catch (Exception expected) {
                failures.incrementAndGet();
            }
            pause();
        }
    }

    /** A test reads all of it back: as fast as can be would be too much to read. */
    private static void pause() {
        try {
            Thread.sleep(PAUSE_MS);
        } catch (InterruptedException unexpected) {
            throw new IllegalStateException(unexpected);
        }
    }

    private static final class Acknowledgement {
        private static final int HOST_DIGITS = 16;

        final long timeNs;
        final String storeHost;

        Acknowledgement(long timeNs, String offsetMessageId) {
            this.timeNs = timeNs;
            storeHost = offsetMessageId.substring(0, HOST_DIGITS);
        }
    }
}
