package tanist.partner;

import com.alibaba.fastjson.JSONObject;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * Asks RocketMQ's own classes for the bytes they would write, and answers with one line a case.
 *
 * <p>A line is {@code {"file": ..., "name": ..., "case": {...}}}. Inputs are fixed, so that two captures agree; a case
 * that cannot (its bytes hold the clock or a process number) says {@code "varies": true}.
 */
final class Golden {
    /** A moment for every timestamp that a class takes from its caller. */
    static final long BORN_MS = 1_700_000_000_000L;
    static final long STORED_MS = 1_700_000_001_000L;

    private final Consumer<Map<String, ?>> answer;

    private Golden(Consumer<Map<String, ?>> answer) {
        this.answer = answer;
    }

    static void run(JSONObject options, Consumer<Map<String, ?>> answer) throws Exception {
        // As every RocketMQ process does first: commands carry its version.
        System.setProperty(RemotingCommand.REMOTING_VERSION_KEY, Integer.toString(MQVersion.CURRENT_VERSION));
        Golden golden = new Golden(answer);
        Path scratch = Files.createDirectories(Path.of(options.getString("directory")));
        GoldenFrames.capture(golden);
        GoldenBodies.capture(golden);
        GoldenIds.capture(golden);
        GoldenTraces.capture(golden);
        GoldenRecords.capture(golden, scratch);
        GoldenStoreFiles.capture(golden, scratch);
        GoldenConfigFiles.capture(golden, scratch);
        GoldenReplication.capture(golden, scratch);
    }

    /** Adds a case to a file; the rest are the keys and values of the case, in turn. */
    void add(String file, String name, Object... keysAndValues) {
        add(file, name, map(keysAndValues));
    }

    void add(String file, String name, Map<String, ?> values) {
        answer.accept(map("file", file, "name", name, "case", values));
    }

    static Map<String, Object> map(Object... keysAndValues) {
        Map<String, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < keysAndValues.length; i += 2) {
            map.put((String) keysAndValues[i], keysAndValues[i + 1]);
        }
        return map;
    }

    static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }
}
