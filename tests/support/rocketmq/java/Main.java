package tanist.partner;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * The Java side of the tests: one command a run, its options as one JSON object, its answer as JSON lines.
 *
 * <pre>Main produce '{"nameServer": "127.0.0.1:9876", "topic": "T", "count": 10, ...}'</pre>
 */
public final class Main {
    private final PrintStream answers;

    private Main(PrintStream answers) {
        this.answers = answers;
    }

    public static void main(String[] arguments) throws Exception {
        // RocketMQ prints here and there; only answers may reach the standard output.
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        int exitCode = 0;
        try {
            new Main(answers).run(arguments[0], JSON.parseObject(arguments[1]));
        } catch (Exception failure) {
            failure.printStackTrace();
            exitCode = 1;
        }
        // Some services leave threads behind that would keep the process alive.
        Runtime.getRuntime().halt(exitCode);
    }

    private void run(String command, JSONObject options) throws Exception {
        switch (command) {
            case "produce":
                Producing.run(options, this::answer);
                break;
            case "consume-all":
                Consuming.run(options, this::answer);
                break;
            case "query-key":
                LookingUp.byKey(options, this::answer);
                break;
            case "query-id":
                LookingUp.byId(options, this::answer);
                break;
            case "search-time":
                LookingUp.byTime(options, this::answer);
                break;
            case "read-properties":
                Configuring.readProperties(options, this::answer);
                break;
            case "settings":
                Configuring.settings(options, this::answer);
                break;
            case "judge":
                Judging.run(options, this::answer);
                break;
            case "capture":
                Golden.run(options, this::answer);
                break;
            default:
                throw new IllegalArgumentException("unknown command " + command);
        }
    }

    private void answer(Map<String, ?> line) {
        answers.println(JSON.toJSONString(line, SerializerFeature.DisableCircularReferenceDetect,
            SerializerFeature.WriteMapNullValue));
    }
}
