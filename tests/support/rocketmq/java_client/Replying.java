package tanist.client;

import com.alibaba.fastjson.JSONObject;
import java.util.Base64;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** A service that answers requests: at once, or when it is told to. */
final class Replying implements Scenario.Named {
    private static final String PREFIX = "re: ";
    private static final long SLACK_MS = 20_000;

    private final DefaultMQPushConsumer consumer;
    private final DefaultMQProducer producer;
    private final BlockingQueue<MessageExt> requests = new LinkedBlockingQueue<>();

    private Replying(JSONObject options) throws Exception {
        String name = options.getString("name");
        String group = options.getString("group");
        boolean isPrompt = options.getBooleanValue("isPrompt");
        producer = new DefaultMQProducer(group + "-replies", Credentials.hook(options));
        producer.setNamesrvAddr(options.getString("nameServer"));
        producer.setInstanceName(name + "-replies");
        producer.start();
        consumer = new DefaultMQPushConsumer(group, Credentials.hook(options),
            new AllocateMessageQueueAveragely());
        consumer.setNamesrvAddr(options.getString("nameServer"));
        consumer.setInstanceName(name);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(options.getString("topic"), "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            requests.addAll(messages);
            if (isPrompt) {
                requests.forEach(this::tryToReply);
                requests.clear();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.setConsumeThreadMin(1);
        consumer.setConsumeThreadMax(1);
        consumer.start();
    }

    static void addTo(Scenario scenario) {
        scenario.step("replier", options -> {
            scenario.keep(options.getString("name"), new Replying(options));
            return null;
        });
        scenario.step("reply", options -> {
            Replying replying = scenario.find(options, Replying.class);
            MessageExt request = replying.requests.poll(options.getLongValue("timeoutMs"), TimeUnit.MILLISECONDS);
            if (request == null) {
                throw new IllegalStateException("no request came");
            }
            return replying.reply(request).getSendStatus().name();
        });
        scenario.step("request", options -> {
            Message reply = request(scenario.find(options, Sending.class).producer, options);
            return Map.of("bodyBase64", Base64.getEncoder().encodeToString(reply.getBody()),
                "properties", reply.getProperties());
        });
    }

    /** Not the call that waits itself: in 5.3 it returns as soon as the request is sent. */
    private static Message request(DefaultMQProducer producer, JSONObject options) throws Exception {
        Message request = new Message(options.getString("topic"),
            Base64.getDecoder().decode(options.getString("bodyBase64")));
        CompletableFuture<Message> reply = new CompletableFuture<>();
        producer.request(request, new RequestCallback() {
            @Override
            public void onSuccess(Message message) {
                // In 5.3 this is called without a reply too, when the request is sent.
                if (message != null) {
                    reply.complete(message);
                }
            }

            @Override
            public void onException(Throwable failure) {
                reply.completeExceptionally(failure);
            }
        }, options.getLongValue("timeoutMs"));
        try {
            return reply.get(options.getLongValue("timeoutMs") + SLACK_MS, TimeUnit.MILLISECONDS);
        } catch (ExecutionException failure) {
            throw (Exception) failure.getCause();
        }
    }

    @Override
    public void shutdown() {
        consumer.shutdown();
        producer.shutdown();
    }

    private void tryToReply(MessageExt request) {
        try {
            reply(request);
        } catch (Exception failure) {
            failure.printStackTrace();
        }
    }

    private SendResult reply(MessageExt request) throws Exception {
        byte[] start = PREFIX.getBytes();
        byte[] body = new byte[start.length + request.getBody().length];
        System.arraycopy(start, 0, body, 0, start.length);
        System.arraycopy(request.getBody(), 0, body, start.length, request.getBody().length);
        return producer.send(MessageUtil.createReplyMessage(request, body));
    }
}
