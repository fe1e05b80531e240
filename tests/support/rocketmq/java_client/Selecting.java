package tanist.client;

import com.alibaba.fastjson.JSONObject;
import org.apache.rocketmq.client.consumer.MessageSelector;

/** What a consumer wants of a topic: tags as {@code expression}, or {@code sql}. */
final class Selecting {
    private Selecting() {
    }

    static MessageSelector selector(JSONObject options) {
        String sql = options.getString("sql");
        return sql != null ? MessageSelector.bySql(sql) : MessageSelector.byTag(options.getString("expression"));
    }
}
