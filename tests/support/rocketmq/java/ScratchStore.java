package tanist.partner;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.SystemClock;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.SelectMappedBufferResult;
import org.apache.rocketmq.store.config.FlushDiskType;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/** A real store in a scratch directory, whose records get the store time that we choose. */
final class ScratchStore extends DefaultMessageStore {
    static final InetSocketAddress BORN_HOST = new InetSocketAddress("1.2.3.4", 4660);
    static final InetSocketAddress STORE_HOST = new InetSocketAddress("10.0.0.1", 10911);
    private static final long WAIT_MS = 10_000;

    private volatile long frozenMs = Golden.STORED_MS;
    private final SystemClock clock = new SystemClock() {
        @Override
        public long now() {
            return frozenMs > 0 ? frozenMs : super.now();
        }
    };

    private ScratchStore(MessageStoreConfig config, BrokerConfig broker) throws IOException {
        super(config, new BrokerStatsManager(broker), (topic, queueId, offset, tags, time, bits, properties) -> { },
            broker, new ConcurrentHashMap<>());
    }

    static ScratchStore open(Path directory, Consumer<MessageStoreConfig> set) throws Exception {
        return open(directory, new BrokerConfig(), set);
    }

    static ScratchStore open(Path directory, BrokerConfig broker, Consumer<MessageStoreConfig> set) throws Exception {
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(directory.toString());
        config.setStorePathCommitLog(directory.resolve("commitlog").toString());
        config.setMappedFileSizeCommitLog(64 * 1024);
        config.setMappedFileSizeConsumeQueue(20 * 100);
        config.setMaxHashSlotNum(100);
        config.setMaxIndexNum(400);
        config.setHaListenPort(0);
        config.setFlushDiskType(FlushDiskType.ASYNC_FLUSH);
        config.setTimerWheelEnable(false);
        set.accept(config);
        ScratchStore store = new ScratchStore(config, broker);
        if (!store.load()) {
            throw new IllegalStateException("the store in " + directory + " does not load");
        }
        store.start();
        return store;
    }

    /** Later records get this store time. */
    void freezeClock(long nowMs) {
        frozenMs = nowMs;
    }

    /** Lets the clock run: replication counts its heartbeats with it. */
    void thawClock() {
        frozenMs = 0;
    }

    @Override
    public SystemClock getSystemClock() {
        return clock;
    }

    static MessageExtBrokerInner message(String topic, int queueId, byte[] body, Map<String, String> properties) {
        MessageExtBrokerInner message = new MessageExtBrokerInner();
        message.setTopic(topic);
        message.setQueueId(queueId);
        message.setBody(body);
        message.setBornTimestamp(Golden.BORN_MS);
        message.setBornHost(BORN_HOST);
        message.setStoreHost(STORE_HOST);
        MessageAccessor.setProperties(message, new HashMap<>(properties));
        message.setPropertiesString(MessageDecoder.messageProperties2String(message.getProperties()));
        return message;
    }

    /** Appends a message and returns the bytes of its record. */
    byte[] append(MessageExtBrokerInner message) {
        PutMessageResult result = putMessage(message);
        if (!result.isOk()) {
            throw new IllegalStateException("not stored: " + result);
        }
        return bytes(result.getAppendMessageResult().getWroteOffset(), result.getAppendMessageResult().getWroteBytes());
    }

    byte[] bytes(long logOffset, int size) {
        SelectMappedBufferResult selected = getCommitLog().getData(logOffset);
        byte[] bytes = new byte[size];
        selected.getByteBuffer().get(bytes);
        selected.release();
        return bytes;
    }

    void awaitDispatch() throws InterruptedException {
        await(() -> dispatchBehindBytes() == 0, "the dispatcher to catch up");
    }

    static void await(BooleanSupplier condition, String what) throws InterruptedException {
        long deadline = System.currentTimeMillis() + WAIT_MS;
        while (!condition.getAsBoolean()) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException("waited in vain for " + what);
            }
            Thread.sleep(5);
        }
    }

    static byte[] file(Path path) throws IOException {
        return Files.readAllBytes(path);
    }
}
