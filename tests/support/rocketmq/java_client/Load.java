package tanist.client;

import com.alibaba.fastjson.JSONObject;
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

/**
 * Load for the benchmark: a producer at full speed for a time, or a push consumer over a backlog.
 *
 * <p>CPU time is that of this whole process while the load ran, and not that of its start.
 */
final class Load {
    private static final long CONSUME_LIMIT_S = 60;
    private static final int ONE_WAY_RUN = 256;
    private static final OperatingSystemMXBean SYSTEM =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private final DefaultMQProducer producer;
    private final String topic;
    private final byte[] body;
    private final long endNs;
    private final long startNs = System.nanoTime();
    private final long startCpuNs = SYSTEM.getProcessCpuTime();
    private final AtomicLong failures = new AtomicLong();
    private final List<Times> times = new ArrayList<>();

    private Load(DefaultMQProducer producer, JSONObject options) {
        this.producer = producer;
        topic = options.getString("topic");
        body = new byte[options.getIntValue("bodyBytes")];
        // What can be compressed would be, and cost the client more than the broker.
        new Random(options.getIntValue("bodyBytes")).nextBytes(body);
        endNs = startNs + options.getLongValue("durationMs") * 1_000_000;
    }

    static void addTo(Scenario scenario) {
        scenario.step("load", options -> {
            Load load = new Load(scenario.find(options, Sending.class).producer, options);
            return load.run(options);
        });
        scenario.step("drain", Load::drain);
    }

    private Map<String, ?> run(JSONObject options) throws InterruptedException {
        int batch = options.getIntValue("batch");
        int inFlight = options.getIntValue("inFlight");
        boolean isOneWay = options.getBooleanValue("isOneWay");
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < options.getIntValue("threads"); number++) {
            Times mine = new Times();
            times.add(mine);
            threads.add(new Thread(() -> {
                if (isOneWay) {
                    sendOneWay(mine);
                } else if (inFlight > 0) {
                    sendAsync(mine, inFlight);
                } else {
                    sendInTurn(mine, batch);
                }
            }));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        double seconds = (System.nanoTime() - startNs) / 1e9;
        return summary(batch, seconds, (SYSTEM.getProcessCpuTime() - startCpuNs) / 1e9);
    }

    private void sendInTurn(Times mine, int batch) {
        for (long beganNs = System.nanoTime(); beganNs < endNs; beganNs = System.nanoTime()) {
            try {
                SendResult result = batch > 1 ? producer.send(batchOf(batch)) : producer.send(new Message(topic, body));
                if (result.getSendStatus() == SendStatus.SEND_OK) {
                    mine.add(System.nanoTime() - beganNs);
                } else {
                    failures.incrementAndGet();
                }
            } catch (Exception failure) {
                fail(failure);
            }
        }
    }

    private void sendAsync(Times mine, int inFlight) {
        Semaphore room = new Semaphore(inFlight);
        while (System.nanoTime() < endNs) {
            room.acquireUninterruptibly();
            long beganNs = System.nanoTime();
            try {
                producer.send(new Message(topic, body), new SendCallback() {
                    @Override
                    public void onSuccess(SendResult result) {
                        // A result is no success yet: a message that is on no disk or no slave has one too.
                        if (result.getSendStatus() == SendStatus.SEND_OK) {
                            synchronized (mine) {
                                mine.add(System.nanoTime() - beganNs);
                            }
                        } else {
                            failures.incrementAndGet();
                        }
                        room.release();
                    }

                    @Override
                    public void onException(Throwable failure) {
                        fail(failure);
                        room.release();
                    }
                });
            } catch (Exception failure) {
                fail(failure);
                room.release();
            }
        }
        room.acquireUninterruptibly(inFlight);
    }

    /**
     * Nobody answers these: how many arrived the broker has to be asked. One of many is answered all the same, for
     * the client of RocketMQ 5 gets stuck, and drops what it was given, once it has 65,535 of them on their way.
     */
    private void sendOneWay(Times mine) {
        int sent = 0;
        for (long beganNs = System.nanoTime(); beganNs < endNs; beganNs = System.nanoTime()) {
            try {
                if (++sent % ONE_WAY_RUN == 0) {
                    producer.send(new Message(topic, body));
                } else {
                    producer.sendOneway(new Message(topic, body));
                }
                mine.add(System.nanoTime() - beganNs);
            } catch (Exception failure) {
                fail(failure);
            }
        }
    }

    private List<Message> batchOf(int count) {
        List<Message> batch = new ArrayList<>(count);
        for (int number = 0; number < count; number++) {
            batch.add(new Message(topic, body));
        }
        return batch;
    }

    private void fail(Throwable failure) {
        if (failures.getAndIncrement() == 0) {
            failure.printStackTrace();
        }
    }

    private Map<String, ?> summary(int batch, double seconds, double cpuSeconds) {
        long[] all = Times.sorted(times);
        if (all.length == 0) {
            throw new IllegalStateException("no send succeeded, " + failures + " failed");
        }
        long count = (long) all.length * Math.max(batch, 1);
        return Map.of("count", count, "failures", failures.get(), "rate", count / seconds, "cpuSeconds", cpuSeconds,
            "p50Micros", all[all.length / 2] / 1e3, "p99Micros", all[(int) (all.length * 0.99)] / 1e3,
            "p999Micros", all[(int) (all.length * 0.999)] / 1e3);
    }

    /**
     * Consumes a backlog with a new group; counted from the first message on, when the queues are assigned.
     *
     * <p>By itself the client rests for 50 ms once 1,000 messages of a queue wait for its listener. {@code waiting}
     * sets another number.
     */
    private static Map<String, ?> drain(JSONObject options) throws Exception {
        int wanted = options.getIntValue("count");
        AtomicInteger count = new AtomicInteger();
        AtomicLong firstNs = new AtomicLong();
        AtomicLong firstCpuNs = new AtomicLong();
        AtomicLong lastNs = new AtomicLong();
        AtomicLong lastCpuNs = new AtomicLong();
        CountDownLatch done = new CountDownLatch(1);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(options.getString("group"));
        consumer.setNamesrvAddr(options.getString("nameServer"));
        consumer.setInstanceName(options.getString("group"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(options.getString("topic"), "*");
        if (options.getIntValue("waiting") > 0) {
            consumer.setPullThresholdForQueue(options.getIntValue("waiting"));
        }
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            if (firstNs.compareAndSet(0, System.nanoTime())) {
                firstCpuNs.set(SYSTEM.getProcessCpuTime());
            }
            if (count.addAndGet(messages.size()) == wanted) {
                lastNs.set(System.nanoTime());
                lastCpuNs.set(SYSTEM.getProcessCpuTime());
                done.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        try {
            if (!done.await(CONSUME_LIMIT_S, TimeUnit.SECONDS)) {
                throw new IllegalStateException(count + " of " + wanted + " messages came");
            }
        } finally {
            consumer.shutdown();
        }
        double seconds = (lastNs.get() - firstNs.get()) / 1e9;
        double cpuSeconds = (lastCpuNs.get() - firstCpuNs.get()) / 1e9;
        return Map.of("count", wanted, "failures", 0, "rate", wanted / seconds, "cpuSeconds", cpuSeconds,
            "p50Micros", 0, "p99Micros", 0);
    }

    /** How long sends took, in nanoseconds. */
    private static final class Times {
        private long[] taken = new long[1 << 14];
        private int count;

        void add(long nanoseconds) {
            if (count == taken.length) {
                taken = Arrays.copyOf(taken, 2 * count);
            }
            taken[count++] = nanoseconds;
        }

        static long[] sorted(List<Times> parts) {
            return parts.stream().flatMapToLong(part -> Arrays.stream(part.taken, 0, part.count)).sorted().toArray();
        }
    }
}
