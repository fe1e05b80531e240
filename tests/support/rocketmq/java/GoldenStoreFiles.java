package tanist.partner;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.common.topic.TopicValidator;
import org.apache.rocketmq.remoting.protocol.EpochEntry;
import org.apache.rocketmq.store.ConsumeQueue;
import org.apache.rocketmq.store.DispatchRequest;
import org.apache.rocketmq.store.StoreCheckpoint;
import org.apache.rocketmq.store.ha.autoswitch.BrokerMetadata;
import org.apache.rocketmq.store.ha.autoswitch.EpochFileCache;
import org.apache.rocketmq.store.index.IndexFile;
import org.apache.rocketmq.store.timer.TimerCheckpoint;

/** The files of a store beside its records: how a log file ends, queues, key index, checkpoints, epochs. */
final class GoldenStoreFiles {
    private final Golden golden;
    private final Path scratch;

    private GoldenStoreFiles(Golden golden, Path scratch) {
        this.golden = golden;
        this.scratch = scratch;
    }

    static void capture(Golden golden, Path scratch) throws Exception {
        GoldenStoreFiles files = new GoldenStoreFiles(golden, scratch);
        files.logFileEnd();
        files.consumeQueues();
        files.lateConsumeQueue();
        files.index();
        files.checkpoint();
        files.timerCheckpoint();
        files.epochs();
        files.identity();
    }

    /** Two records that fit a small file and one that does not: the first file ends with a blank record. */
    private void logFileEnd() throws Exception {
        Path directory = scratch.resolve("log-end");
        ScratchStore store = ScratchStore.open(directory, config -> config.setMappedFileSizeCommitLog(512));
        for (int number = 0; number < 3; number++) {
            store.append(ScratchStore.message("TopicA", 0, "x".repeat(100).getBytes(UTF_8), Map.of()));
        }
        golden.add("store_files", "log_file_end",
            "file_bytes", 512,
            "files", List.of(Golden.hex(ScratchStore.file(directory.resolve("commitlog/00000000000000000000"))),
                Golden.hex(ScratchStore.file(directory.resolve("commitlog/00000000000000000512")))));
    }

    private void consumeQueues() throws Exception {
        Path directory = scratch.resolve("queues");
        ScratchStore store = ScratchStore.open(directory, config -> { });
        List<String> records = new ArrayList<>();
        for (String tag : new String[] {"TagA", "zzzzzzzzzz", ""}) {
            Map<String, String> properties = tag.isEmpty() ? Map.of() : Map.of("TAGS", tag);
            records.add(Golden.hex(store.append(ScratchStore.message("TopicA", 3, new byte[] {1}, properties))));
        }
        // In the queue of a delay level the place of the tag code holds the time of delivery.
        Map<String, String> delay = Map.of("DELAY", "3", "TAGS", "TagA");
        records.add(Golden.hex(store.append(
            ScratchStore.message(TopicValidator.RMQ_SYS_SCHEDULE_TOPIC, 2, new byte[] {1}, delay))));
        store.awaitDispatch();
        golden.add("store_files", "consume_queues",
            "records", records,
            "queue_of_topic", queueFile(directory, "TopicA/3", 3),
            "queue_of_delay_level_3", queueFile(directory, TopicValidator.RMQ_SYS_SCHEDULE_TOPIC + "/2", 1));
    }

    private static String queueFile(Path store, String queue, int entries) throws Exception {
        byte[] file = ScratchStore.file(store.resolve("consumequeue/" + queue + "/00000000000000000000"));
        return Golden.hex(Arrays.copyOf(file, entries * ConsumeQueue.CQ_STORE_UNIT_SIZE));
    }

    /** A queue whose first message has offset 3, as on a slave that started late: filler stands before it. */
    private void lateConsumeQueue() throws Exception {
        Path directory = scratch.resolve("late-queue");
        ScratchStore store = ScratchStore.open(directory, config -> { });
        ConsumeQueue queue = new ConsumeQueue("TopicA", 0, directory.resolve("consumequeue").toString(), 200, store);
        queue.putMessagePositionInfoWrapper(new DispatchRequest("TopicA", 0, 3, 5000, 135, 2598919));
        golden.add("store_files", "consume_queue_starting_late",
            "first_queue_offset", 3,
            "log_offset", 5000,
            "stored_bytes", 135,
            "tags_code", 2598919,
            "file", Golden.hex(ScratchStore.file(directory.resolve("consumequeue/TopicA/0/00000000000000000000"))));
    }

    private void index() throws Exception {
        Path path = scratch.resolve("index/20231114221321000");
        IndexFile index = new IndexFile(path.toString(), 8, 16, 0, 0);
        List<Map<String, ?>> entries = new ArrayList<>();
        // "Aa" and "BB" have one hash code; the key of the third has the only one without an absolute value.
        String[] keys = {"TopicA#Aa", "TopicA#BB", "polygenelubricants", "TopicA#中文", "TopicA#Aa"};
        for (int number = 0; number < keys.length; number++) {
            long storedMs = Golden.STORED_MS + number * 2500L;
            index.putKey(keys[number], 1000L + number, storedMs);
            entries.add(Golden.map("key", keys[number], "log_offset", 1000L + number, "store_timestamp", storedMs,
                "key_hash", index.indexKeyHashMethod(keys[number])));
        }
        index.flush();
        golden.add("store_files", "index",
            "slots", 8,
            "max_entries", 16,
            "entries", entries,
            "file", Golden.hex(ScratchStore.file(path)));
    }

    private void checkpoint() throws Exception {
        Path path = scratch.resolve("checkpoint");
        StoreCheckpoint checkpoint = new StoreCheckpoint(path.toString());
        checkpoint.setPhysicMsgTimestamp(Golden.STORED_MS);
        checkpoint.setLogicsMsgTimestamp(Golden.STORED_MS + 1);
        checkpoint.setIndexMsgTimestamp(Golden.STORED_MS + 2);
        checkpoint.setMasterFlushedOffset(1351);
        checkpoint.setConfirmPhyOffset(1350);
        checkpoint.flush();
        byte[] file = ScratchStore.file(path);
        golden.add("store_files", "checkpoint",
            "physic_msg_timestamp", checkpoint.getPhysicMsgTimestamp(),
            "logics_msg_timestamp", checkpoint.getLogicsMsgTimestamp(),
            "index_msg_timestamp", checkpoint.getIndexMsgTimestamp(),
            "master_flushed_offset", checkpoint.getMasterFlushedOffset(),
            "confirm_phy_offset", checkpoint.getConfirmPhyOffset(),
            "min_timestamp", checkpoint.getMinTimestamp(),
            "file_bytes", file.length,
            "file_start", Golden.hex(Arrays.copyOf(file, 64)));
    }

    private void timerCheckpoint() {
        TimerCheckpoint checkpoint = new TimerCheckpoint();
        checkpoint.setLastReadTimeMs(Golden.STORED_MS);
        checkpoint.setLastTimerLogFlushPos(52);
        checkpoint.setLastTimerQueueOffset(7);
        checkpoint.setMasterTimerQueueOffset(9);
        checkpoint.getDataVersion().assignNewOne(GoldenBodies.dataVersion());
        golden.add("store_files", "timer_checkpoint", "hex", Golden.hex(TimerCheckpoint.encode(checkpoint).array()));
    }

    private void epochs() throws Exception {
        Path path = scratch.resolve("epochFileCheckpoint");
        EpochFileCache epochs = new EpochFileCache(path.toString());
        epochs.appendEntry(new EpochEntry(1, 0));
        epochs.appendEntry(new EpochEntry(2, 500));
        epochs.appendEntry(new EpochEntry(5, 900));
        golden.add("store_files", "epochs",
            "entries", List.of(List.of(1, 0), List.of(2, 500), List.of(5, 900)),
            "text", new String(ScratchStore.file(path), UTF_8),
            "backup_text", new String(ScratchStore.file(scratch.resolve("epochFileCheckpoint.bak")), UTF_8));
    }

    private void identity() throws Exception {
        Path path = scratch.resolve("brokerIdentity");
        new BrokerMetadata(path.toString()).updateAndPersist("DefaultCluster", "broker-a", 2L);
        golden.add("store_files", "broker_identity",
            "cluster_name", "DefaultCluster",
            "broker_name", "broker-a",
            "broker_id", 2,
            "text", new String(ScratchStore.file(path), UTF_8));
    }
}
