package tanist.partner;

import com.alibaba.fastjson.JSONObject;
import java.io.IOException;
import java.io.StringReader;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.apache.rocketmq.common.MixAll;

/** What Java reads in the text of a config file, and what RocketMQ makes of it. */
final class Configuring {
    private Configuring() {
    }

    /** Answers for each of {@code texts} its {@code properties}, or the {@code error} of one that makes no sense. */
    static void readProperties(JSONObject options, Consumer<Map<String, ?>> answer) throws IOException {
        for (String text : options.getJSONArray("texts").toJavaList(String.class)) {
            try {
                answer.accept(Map.of("properties", read(text)));
            } catch (IllegalArgumentException malformed) {
                answer.accept(Map.of("error", malformed.getMessage()));
            }
        }
    }

    /** Answers all {@code settings} of a new object of {@code className} that was given {@code text}. */
    static void settings(JSONObject options, Consumer<Map<String, ?>> answer) throws Exception {
        Object config = Class.forName(options.getString("className")).getDeclaredConstructor().newInstance();
        MixAll.properties2Object(read(options.getString("text")), config);
        answer.accept(Map.of("settings", new TreeMap<>(MixAll.object2Properties(config))));
    }

    private static Properties read(String text) throws IOException {
        Properties properties = new Properties();
        properties.load(new StringReader(text));
        return properties;
    }
}
