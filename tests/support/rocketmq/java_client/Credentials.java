package tanist.client;

import com.alibaba.fastjson.JSONObject;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.remoting.RPCHook;

/** What a client signs its requests with. */
final class Credentials {
    private Credentials() {
    }

    /** Returns the hook that signs with the step's access key, or null if it has none. */
    static RPCHook hook(JSONObject options) {
        if (!options.containsKey("accessKey")) {
            return null;
        }
        return new AclClientRPCHook(
            new SessionCredentials(options.getString("accessKey"), options.getString("secretKey")));
    }
}
