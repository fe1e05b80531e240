package tanist.partner;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.List;
import java.util.TreeSet;
import org.apache.rocketmq.client.AccessChannel;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.trace.TraceBean;
import org.apache.rocketmq.client.trace.TraceContext;
import org.apache.rocketmq.client.trace.TraceDataEncoder;
import org.apache.rocketmq.client.trace.TraceTransferBean;
import org.apache.rocketmq.client.trace.TraceType;
import org.apache.rocketmq.common.message.MessageType;

/** What clients tell of a message's life. */
final class GoldenTraces {
    private static final String ID = "7F0000010001070DEA4E000000000000";
    private static final String REQUEST_ID = "7F0000010001070DEA4E000000000001";

    private final Golden golden;

    private GoldenTraces(Golden golden) {
        this.golden = golden;
    }

    static void capture(Golden golden) {
        GoldenTraces traces = new GoldenTraces(golden);
        traces.add("send", sent("paid", "o-17 顾客", MessageType.Normal_Msg, true));
        traces.add("send_without_tags_and_keys", sent(null, null, MessageType.Delay_Msg, false));
        traces.add("before", consumed(TraceType.SubBefore, "o-17", 0, true));
        traces.add("before_without_keys", consumed(TraceType.SubBefore, null, 0, true));
        traces.add("after", consumed(TraceType.SubAfter, "o-17", 0, true));
        traces.add("after_failure", consumed(TraceType.SubAfter, null, 2, false));
        traces.add("end", ended(LocalTransactionState.COMMIT_MESSAGE, false));
        traces.add("end_after_check", ended(LocalTransactionState.UNKNOW, true));
    }

    private void add(String name, TraceContext context) {
        TraceTransferBean made = TraceDataEncoder.encoderFromContextBean(context);
        golden.add("traces", name,
            "text", Golden.hex(made.getTransData().getBytes(UTF_8)),
            "keys", new TreeSet<>(made.getTransKey()));
    }

    private static TraceContext sent(String tags, String keys, MessageType kind, boolean isOk) {
        TraceBean bean = bean(tags, keys);
        bean.setBodyLength(42);
        bean.setMsgType(kind);
        bean.setOffsetMsgId("7F000001000051AF0000000000000547");
        TraceContext context = context(TraceType.Pub, bean);
        context.setCostTime(12);
        context.setSuccess(isOk);
        return context;
    }

    private static TraceContext consumed(TraceType type, String keys, int code, boolean isOk) {
        TraceBean bean = bean("paid", keys);
        bean.setRetryTimes(3);
        TraceContext context = context(type, bean);
        context.setCostTime(12);
        context.setSuccess(isOk);
        context.setContextCode(code);
        return context;
    }

    private static TraceContext ended(LocalTransactionState state, boolean isFromCheck) {
        TraceBean bean = bean("paid", "o-17");
        bean.setMsgType(MessageType.Trans_msg_Commit);
        bean.setTransactionId(ID);
        bean.setTransactionState(state);
        bean.setFromTransactionCheck(isFromCheck);
        return context(TraceType.EndTransaction, bean);
    }

    private static TraceBean bean(String tags, String keys) {
        TraceBean bean = new TraceBean();
        bean.setTopic("OrderTopic");
        bean.setMsgId(ID);
        bean.setTags(tags);
        bean.setKeys(keys);
        bean.setStoreHost("127.0.0.1:10911");
        return bean;
    }

    private static TraceContext context(TraceType type, TraceBean bean) {
        TraceContext context = new TraceContext();
        context.setTraceType(type);
        context.setTimeStamp(Golden.BORN_MS);
        context.setRegionId("DefaultRegion");
        context.setGroupName("billing");
        context.setRequestId(REQUEST_ID);
        context.setAccessChannel(AccessChannel.LOCAL);
        context.setTraceBeans(List.of(bean));
        return context;
    }
}
