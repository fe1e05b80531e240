package tanist.client;

import com.alibaba.fastjson.JSONObject;
import java.util.List;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.common.message.MessageExt;

/** What a listener makes of its messages: how often it fails, how it wants them again, how slow it is. */
final class Failing {
    private static final int SUSPEND_MS = 50;

    private final int failures;
    private final int delayLevel;
    private final int consumeMs;

    Failing(JSONObject options) {
        failures = options.getIntValue("failures");
        delayLevel = options.getIntValue("delayLevel");
        consumeMs = options.getIntValue("consumeMs");
    }

    ConsumeConcurrentlyStatus consume(List<MessageExt> messages, ConsumeConcurrentlyContext context) {
        context.setDelayLevelWhenNextConsume(delayLevel);
        return isFailing(messages) ? ConsumeConcurrentlyStatus.RECONSUME_LATER
            : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    }

    ConsumeOrderlyStatus consume(List<MessageExt> messages, ConsumeOrderlyContext context) {
        context.setSuspendCurrentQueueTimeMillis(SUSPEND_MS);
        return isFailing(messages) ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
            : ConsumeOrderlyStatus.SUCCESS;
    }

    private boolean isFailing(List<MessageExt> messages) {
        try {
            Thread.sleep(consumeMs);
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
        return messages.stream().anyMatch(message -> message.getReconsumeTimes() < failures);
    }
}
