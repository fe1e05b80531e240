package tanist.client;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;

/**
 * Stock clients that do as they are told: one step a line of input, as JSON, and one answer a line of output.
 *
 * <pre>{"do": "producer", "name": "p", "nameServer": "127.0.0.1:9876", "group": "G"}</pre>
 *
 * <p>Producers and consumers stay between the steps under the names they were given. These programs compile
 * against the client jars of every line that the tests run, so they use only what all of them have.
 */
public final class Scenario {
    private final Map<String, Step> steps = new HashMap<>();
    private final Map<String, Named> things = new HashMap<>();

    private Scenario() {
        Sending.addTo(this);
        Pushed.addTo(this);
        Polled.addTo(this);
        Pulled.addTo(this);
        Reading.addTo(this);
        Replying.addTo(this);
        Load.addTo(this);
        Latency.addTo(this);
        Transacted.addTo(this);
        Allocating.addTo(this);
        KeepingOffsets.addTo(this);
        step("shutdown", options -> {
            things.remove(options.getString("name")).shutdown();
            return null;
        });
    }

    public static void main(String[] arguments) throws Exception {
        // RocketMQ prints here and there; only answers may reach the standard output.
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        Scenario scenario = new Scenario();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            answers.println(JSON.toJSONString(scenario.answer(JSON.parseObject(line)),
                SerializerFeature.DisableCircularReferenceDetect, SerializerFeature.WriteMapNullValue));
        }
        // Clients leave threads behind that would keep the process alive.
        Runtime.getRuntime().halt(0);
    }

    void step(String name, Step step) {
        steps.put(name, step);
    }

    void keep(String name, Named thing) {
        if (things.putIfAbsent(name, thing) != null) {
            throw new IllegalArgumentException("there is a " + name + " already");
        }
    }

    <T extends Named> T find(JSONObject options, Class<T> type) {
        return type.cast(things.get(options.getString("name")));
    }

    private Map<String, ?> answer(JSONObject options) {
        Map<String, Object> answer = new LinkedHashMap<>();
        try {
            Step step = steps.get(options.getString("do"));
            if (step == null) {
                throw new IllegalArgumentException("unknown step " + options.getString("do"));
            }
            answer.put("result", step.run(options));
        } catch (Exception failure) {
            failure.printStackTrace();
            answer.putAll(describe(failure));
        }
        return answer;
    }

    static Map<String, ?> describe(Throwable failure) {
        Map<String, Object> described = new LinkedHashMap<>();
        described.put("error", failure.getClass().getSimpleName());
        described.put("message", String.valueOf(failure.getMessage()));
        if (failure instanceof MQBrokerException) {
            described.put("code", ((MQBrokerException) failure).getResponseCode());
        } else if (failure instanceof MQClientException) {
            described.put("code", ((MQClientException) failure).getResponseCode());
        }
        return described;
    }

    /** Carries out one step and returns what to answer. */
    interface Step {
        Object run(JSONObject options) throws Exception;
    }

    /** A client that later steps speak of. */
    interface Named {
        void shutdown();
    }
}
