package tanist.partner;

import com.alibaba.fastjson.JSONObject;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** Looks messages up as an operator does: by key, by id and by time. One line answers one question. */
final class LookingUp {
    private static final int MAX_FOUND = 64;

    private LookingUp() {
    }

    /** Where a message begins in the log is what tells it from every other. */
    static void byKey(JSONObject options, Consumer<Map<String, ?>> answer) throws Exception {
        ask(options, (admin, question) ->
            answer.accept(Map.of("logOffsets", find(admin, question))));
    }

    static void byId(JSONObject options, Consumer<Map<String, ?>> answer) throws Exception {
        ask(options, (admin, question) -> {
            MessageExt found = admin.viewMessage(question.getString("topic"), question.getString("id"));
            // The answer does not tell which broker gave it.
            answer.accept(Consuming.describe("", question.getString("id"), found));
        });
    }

    static void byTime(JSONObject options, Consumer<Map<String, ?>> answer) throws Exception {
        ask(options, (admin, question) -> {
            MessageQueue queue = new MessageQueue(question.getString("topic"), question.getString("brokerName"),
                question.getIntValue("queueId"));
            boolean isUpper = question.getString("boundary").equals("UPPER");
            List<Long> offsets = new ArrayList<>();
            for (long time : question.getJSONArray("timestamps").toJavaList(Long.class)) {
                offsets.add(isUpper ? admin.searchUpperBoundaryOffset(queue, time)
                    : admin.searchLowerBoundaryOffset(queue, time));
            }
            answer.accept(Map.of("queueOffsets", offsets));
        });
    }

    private static void ask(JSONObject options, Question question) throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt();
        admin.setNamesrvAddr(options.getString("nameServer"));
        admin.start();
        try {
            for (Object asked : options.getJSONArray("questions")) {
                question.put(admin, (JSONObject) asked);
            }
        } finally {
            admin.shutdown();
        }
    }

    private static List<Long> find(DefaultMQAdminExt admin, JSONObject question) throws Exception {
        String topic = question.getString("topic");
        String key = question.getString("key");
        List<MessageExt> found;
        try {
            found = (question.getBooleanValue("isUnique")
                ? admin.queryMessageByUniqKey(null, topic, key, MAX_FOUND, 0, Long.MAX_VALUE)
                : admin.queryMessage(topic, key, MAX_FOUND, 0, Long.MAX_VALUE)).getMessageList();
        } catch (MQClientException failure) {
            if (failure.getResponseCode() != ResponseCode.NO_MESSAGE) {
                throw failure;
            }
            found = Collections.emptyList();
        }
        List<Long> logOffsets = new ArrayList<>();
        for (MessageExt message : found) {
            logOffsets.add(message.getCommitLogOffset());
        }
        return logOffsets;
    }

    private interface Question {
        void put(DefaultMQAdminExt admin, JSONObject question) throws Exception;
    }
}
