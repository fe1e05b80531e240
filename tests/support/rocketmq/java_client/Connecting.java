package tanist.client;

import com.alibaba.fastjson.JSONObject;
import org.apache.rocketmq.client.ClientConfig;

/** What a client of any kind may be told: where its name server is, who it is, how it speaks to brokers. */
final class Connecting {
    private Connecting() {
    }

    @SuppressWarnings("deprecation") // Namespaces are deprecated, and in use.
    static void configure(ClientConfig client, JSONObject options) throws Exception {
        client.setNamesrvAddr(options.getString("nameServer"));
        client.setInstanceName(options.getString("name"));
        if (options.containsKey("routePollMs")) {
            client.setPollNameServerInterval(options.getIntValue("routePollMs"));
        }
        if (options.containsKey("heartbeatMs")) {
            client.setHeartbeatBrokerInterval(options.getIntValue("heartbeatMs"));
        }
        if (options.containsKey("namespace")) {
            client.setNamespace(options.getString("namespace"));
        }
        if (options.getBooleanValue("usesFastPort")) {
            client.setVipChannelEnabled(true);
        }
        if (options.getBooleanValue("beatsShortly")) {
            // Only RocketMQ 5 has this, so it is not named here.
            client.getClass().getMethod("setUseHeartbeatV2", boolean.class).invoke(client, true);
        }
    }
}
