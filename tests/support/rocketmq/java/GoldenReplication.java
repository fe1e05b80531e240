package tanist.partner;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.ToIntFunction;
import java.util.stream.Collectors;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.ServiceThread;
import org.apache.rocketmq.store.config.BrokerRole;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.ha.HAConnectionState;
import org.apache.rocketmq.store.ha.autoswitch.AutoSwitchHAService;

/**
 * What a master and its slave say to each other, by either of the two replication protocols.
 *
 * <p>Both are the real services over loopback sockets with a relay between them. Small batches make several frames.
 * Heartbeats come when the clock wants them, so only the master's one after the last data is kept, and a report that
 * says the same as the one before it is left out.
 */
final class GoldenReplication {
    private static final int FILE_BYTES = 1024;
    private static final int BATCH_BYTES = 400;
    /** A slave says where it is as soon as it may; its master has no cause for a heartbeat before the data. */
    private static final int SLAVE_REPORT_MS = 1;
    private static final int MASTER_HEARTBEAT_MS = 500;

    private static final int CLASSIC_HEADER = 12;
    private static final int CLASSIC_REPORT = 8;
    private static final int SWITCH_HANDSHAKE = 20;
    private static final int SWITCH_HEADER = 36;
    private static final int SWITCH_SLAVE_HANDSHAKE = 16;
    private static final int SWITCH_REPORT = 12;

    private final Golden golden;
    private final Path scratch;

    private GoldenReplication(Golden golden, Path scratch) {
        this.golden = golden;
        this.scratch = scratch;
    }

    static void capture(Golden golden, Path scratch) throws Exception {
        GoldenReplication replication = new GoldenReplication(golden, scratch);
        replication.classic("classic_empty_slave", 0);
        replication.classic("classic_slave_with_a_prefix", 2);
        replication.autoSwitch();
    }

    private void classic(String name, int heldRecords) throws Exception {
        ScratchStore master = open(name + "-master", new BrokerConfig(), BrokerRole.ASYNC_MASTER);
        append(master, 8);
        ScratchStore slave = open(name + "-slave", new BrokerConfig(), BrokerRole.SLAVE);
        append(slave, heldRecords);
        try (Relay relay = between(master, slave)) {
            ((ServiceThread) slave.getHaService().getHAClient()).wakeup();
            ToIntFunction<ByteBuffer> masterFrame = frame -> CLASSIC_HEADER + frame.getInt(8);
            ToIntFunction<ByteBuffer> slaveFrame = frame -> CLASSIC_REPORT;
            await(relay, master, masterFrame, CLASSIC_HEADER, slaveFrame);
            golden.add("replication", name,
                "log_file_bytes", FILE_BYTES,
                "batch_bytes", BATCH_BYTES,
                "log_end", master.getMaxPhyOffset(),
                "slave_frames", hex(withoutRepeats(cut(relay.fromSlave(), slaveFrame))),
                "master_frames", hex(dataAndOneHeartbeat(cut(relay.fromMaster(), masterFrame), CLASSIC_HEADER)));
        }
    }

    private void autoSwitch() throws Exception {
        BrokerConfig withController = new BrokerConfig();
        withController.setEnableControllerMode(true);
        ScratchStore master = open("switch-master", withController, BrokerRole.ASYNC_MASTER);
        AutoSwitchHAService masterService = (AutoSwitchHAService) master.getHaService();
        masterService.setLocalBrokerId(1L);
        masterService.setSyncStateSet(new HashSet<>(Set.of(1L)));
        masterService.changeToMaster(1);
        append(master, 5);
        masterService.changeToMaster(3);
        append(master, 4);
        ScratchStore slave = open("switch-slave", withController, BrokerRole.SLAVE);
        AutoSwitchHAService slaveService = (AutoSwitchHAService) slave.getHaService();
        slaveService.setLocalBrokerId(2L);
        slaveService.changeToSlave("", 3, 2L);
        try (Relay relay = between(master, slave)) {
            ToIntFunction<ByteBuffer> masterFrame =
                frame -> (isHandshake(frame) ? SWITCH_HANDSHAKE : SWITCH_HEADER) + frame.getInt(4);
            ToIntFunction<ByteBuffer> slaveFrame =
                frame -> isHandshake(frame) ? SWITCH_SLAVE_HANDSHAKE : SWITCH_REPORT;
            await(relay, master, masterFrame, SWITCH_HEADER, slaveFrame);
            golden.add("replication", "auto_switch",
                "log_file_bytes", FILE_BYTES,
                "batch_bytes", BATCH_BYTES,
                "log_end", master.getMaxPhyOffset(),
                "slave_broker_id", 2,
                "epochs", masterService.getEpochEntries().stream()
                    .map(entry -> List.of(entry.getEpoch(), entry.getStartOffset())).collect(Collectors.toList()),
                "slave_frames", hex(withoutRepeats(cut(relay.fromSlave(), slaveFrame))),
                "master_frames", hex(dataAndOneHeartbeat(cut(relay.fromMaster(), masterFrame), SWITCH_HEADER)));
        }
    }

    private ScratchStore open(String name, BrokerConfig broker, BrokerRole role) throws Exception {
        return ScratchStore.open(scratch.resolve(name), broker, (MessageStoreConfig config) -> {
            config.setBrokerRole(role);
            config.setMappedFileSizeCommitLog(FILE_BYTES);
            config.setHaTransferBatchSize(BATCH_BYTES);
            config.setHaSendHeartbeatInterval(role == BrokerRole.SLAVE ? SLAVE_REPORT_MS : MASTER_HEARTBEAT_MS);
            config.setStorePathEpochFile(scratch.resolve(name).resolve("epochFileCheckpoint").toString());
        });
    }

    private static void append(ScratchStore master, int count) throws Exception {
        for (int number = 0; number < count; number++) {
            master.append(ScratchStore.message("TopicA", 0, ("body " + number).repeat(8).getBytes(UTF_8), Map.of()));
        }
        master.awaitDispatch();
    }

    private static Relay between(ScratchStore master, ScratchStore slave) throws Exception {
        master.thawClock();
        slave.thawClock();
        Relay relay = new Relay(master.getMessageStoreConfig().getHaListenPort());
        slave.getHaService().updateHaMasterAddress(relay.address());
        return relay;
    }

    /** Waits until the slave has said that it holds the whole log, and the master has nothing left but heartbeats. */
    private static void await(Relay relay, ScratchStore master, ToIntFunction<ByteBuffer> masterFrame, int emptyFrame,
        ToIntFunction<ByteBuffer> slaveFrame) throws Exception {
        ScratchStore.await(() -> {
            byte[] report = last(cut(relay.fromSlave(), slaveFrame));
            byte[] frame = last(cut(relay.fromMaster(), masterFrame));
            return report.length >= 8 && frame.length == emptyFrame
                && ByteBuffer.wrap(report).getLong(report.length - 8) == master.getMaxPhyOffset();
        }, "the slave to hold the whole log");
    }

    private static byte[] last(List<byte[]> frames) {
        return frames.isEmpty() ? new byte[0] : frames.get(frames.size() - 1);
    }

    private static boolean isHandshake(ByteBuffer frame) {
        return frame.getInt(0) == HAConnectionState.HANDSHAKE.ordinal();
    }

    /** Cuts a stream into frames of the lengths that their own headers say; an unfinished one is left out. */
    private static List<byte[]> cut(byte[] stream, ToIntFunction<ByteBuffer> length) {
        List<byte[]> frames = new ArrayList<>();
        int position = 0;
        while (stream.length - position >= CLASSIC_REPORT) {
            // Longer than any header, so that a length can be read from a header that is not all there yet.
            byte[] rest = Arrays.copyOfRange(stream, position, Math.max(stream.length, position + SWITCH_HEADER));
            int end = position + length.applyAsInt(ByteBuffer.wrap(rest));
            if (end > stream.length) {
                break;
            }
            frames.add(Arrays.copyOfRange(stream, position, end));
            position = end;
        }
        return frames;
    }

    private static List<byte[]> withoutRepeats(List<byte[]> frames) {
        List<byte[]> kept = new ArrayList<>();
        for (byte[] frame : frames) {
            if (!Arrays.equals(frame, last(kept))) {
                kept.add(frame);
            }
        }
        return kept;
    }

    private static List<byte[]> dataAndOneHeartbeat(List<byte[]> frames, int emptyFrame) {
        List<byte[]> kept = frames.stream().filter(frame -> frame.length != emptyFrame).collect(Collectors.toList());
        kept.add(last(frames));
        return kept;
    }

    private static List<String> hex(List<byte[]> frames) {
        return frames.stream().map(Golden::hex).collect(Collectors.toList());
    }
}
