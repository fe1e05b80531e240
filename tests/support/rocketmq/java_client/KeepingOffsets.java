package tanist.client;

import com.alibaba.fastjson.JSONObject;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.store.LocalFileOffsetStore;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.common.message.MessageQueue;

/** The file in which a broadcasting consumer keeps its offsets. */
final class KeepingOffsets {
    private KeepingOffsets() {
    }

    static void addTo(Scenario scenario) {
        scenario.step("offset-files", options -> LocalFileOffsetStore.LOCAL_OFFSET_STORE_DIR);
        scenario.step("write-offsets", options -> {
            LocalFileOffsetStore store = store(options);
            Set<MessageQueue> queues = new HashSet<>();
            for (Object row : options.getJSONArray("rows")) {
                MessageQueue queue = ((JSONObject) row).toJavaObject(MessageQueue.class);
                store.updateOffset(queue, ((JSONObject) row).getLongValue("offset"), false);
                queues.add(queue);
            }
            store.persistAll(queues);
            return null;
        });
        scenario.step("read-offsets", options -> {
            List<Object> rows = new ArrayList<>();
            store(options).cloneOffsetTable(null).forEach((queue, offset) -> rows.add(Map.of(
                "topic", queue.getTopic(),
                "brokerName", queue.getBrokerName(),
                "queueId", queue.getQueueId(),
                "offset", offset)));
            return rows;
        });
    }

    /** The store as a consumer has it once it is started. */
    private static LocalFileOffsetStore store(JSONObject options) throws Exception {
        MQClientInstance client = new MQClientInstance(new ClientConfig(), 0, options.getString("clientId"));
        LocalFileOffsetStore store = new LocalFileOffsetStore(client, options.getString("group"));
        store.load();
        return store;
    }
}
