package tanist.client;

import com.alibaba.fastjson.JSONObject;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** A producer of transactions, and all that it was asked about them. */
final class Transacted implements Scenario.Named, TransactionListener {
    private final TransactionMQProducer producer;
    private final List<Map<String, ?>> questions = new ArrayList<>();
    private LocalTransactionState answer = LocalTransactionState.UNKNOW;

    private Transacted(JSONObject options) throws Exception {
        producer = new TransactionMQProducer(options.getString("group"), Credentials.hook(options));
        Connecting.configure(producer, options);
        producer.setTransactionListener(this);
        producer.start();
    }

    static void addTo(Scenario scenario) {
        scenario.step("transaction-producer", options -> {
            scenario.keep(options.getString("name"), new Transacted(options));
            return null;
        });
        scenario.step("send-in-transaction", options -> scenario.find(options, Transacted.class).send(options));
        scenario.step("answer-questions", options -> scenario.find(options, Transacted.class).decide(options));
        scenario.step("questions", options -> scenario.find(options, Transacted.class).await(options));
    }

    @Override
    public void shutdown() {
        producer.shutdown();
    }

    @Override
    public LocalTransactionState executeLocalTransaction(Message message, Object state) {
        return (LocalTransactionState) state;
    }

    @Override
    public synchronized LocalTransactionState checkLocalTransaction(MessageExt message) {
        questions.add(Pushed.describe(message));
        notifyAll();
        return answer;
    }

    private List<Map<String, ?>> send(JSONObject options) throws Exception {
        LocalTransactionState state = LocalTransactionState.valueOf(options.getString("state"));
        List<Map<String, ?>> results = new ArrayList<>();
        for (Object described : options.getJSONArray("messages")) {
            Message message = Sending.message(options.getString("topic"), (JSONObject) described);
            TransactionSendResult result = producer.sendMessageInTransaction(message, state);
            Map<String, Object> line = new LinkedHashMap<>(Sending.describe(result));
            line.put("transactionId", message.getTransactionId());
            line.put("state", result.getLocalTransactionState().name());
            results.add(line);
        }
        return results;
    }

    private synchronized Object decide(JSONObject options) {
        answer = LocalTransactionState.valueOf(options.getString("state"));
        return null;
    }

    /** Waits for this many questions, or until the time is over, and returns all that came. */
    private synchronized List<Map<String, ?>> await(JSONObject options) throws InterruptedException {
        long deadline = System.currentTimeMillis() + options.getLongValue("timeoutMs");
        long left = deadline - System.currentTimeMillis();
        while (questions.size() < options.getIntValue("count") && left > 0) {
            wait(left);
            left = deadline - System.currentTimeMillis();
        }
        return List.copyOf(questions);
    }
}
