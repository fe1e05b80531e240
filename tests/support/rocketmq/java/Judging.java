package tanist.partner;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.rocketmq.broker.filter.MessageEvaluationContext;
import org.apache.rocketmq.common.filter.ExpressionType;
import org.apache.rocketmq.filter.FilterFactory;
import org.apache.rocketmq.filter.expression.Expression;
import org.apache.rocketmq.filter.expression.MQFilterException;

/** What RocketMQ's own filter says about messages. */
final class Judging {
    private Judging() {
    }

    /**
     * Answers for each line of the file {@code questions}, which has an {@code expression} and {@code properties}:
     * true, false, unknown, fails (at these properties) or refused (at any).
     */
    static void run(JSONObject options, Consumer<Map<String, ?>> answer) throws Exception {
        for (String line : Files.readAllLines(Path.of(options.getString("questions")))) {
            JSONObject question = JSON.parseObject(line);
            Map<String, String> properties = new HashMap<>();
            question.getJSONObject("properties").forEach((name, value) -> properties.put(name, (String) value));
            answer.accept(Map.of("answer", judge(question.getString("expression"), properties)));
        }
    }

    private static String judge(String text, Map<String, String> properties) {
        Expression expression;
        try {
            expression = FilterFactory.INSTANCE.get(ExpressionType.SQL92).compile(text);
        } catch (MQFilterException refused) {
            return "refused";
        }
        try {
            Object found = expression.evaluate(new MessageEvaluationContext(properties));
            return found == null ? "unknown" : found.toString();
        } catch (Exception failure) {
            return "fails";
        }
    }
}
