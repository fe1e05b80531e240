package tanist.client;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/** What RocketMQ's own strategies give the members of a group. */
final class Allocating {
    private Allocating() {
    }

    static void addTo(Scenario scenario) {
        scenario.step("allocate", options -> {
            List<Object> answers = new ArrayList<>();
            for (String line : Files.readAllLines(Path.of(options.getString("questions")))) {
                answers.add(answer(JSON.parseObject(line)));
            }
            return answers;
        });
    }

    /** Sorts the queues and members as clients do, and says what one member takes. */
    private static Map<String, ?> answer(JSONObject question) {
        AllocateMessageQueueStrategy strategy = strategy(question);
        List<MessageQueue> queues = new ArrayList<>();
        for (Object queue : question.getJSONArray("queues")) {
            queues.add(((JSONObject) queue).toJavaObject(MessageQueue.class));
        }
        List<String> clientIds = question.getJSONArray("clientIds").toJavaList(String.class);
        Collections.sort(queues);
        Collections.sort(clientIds);
        List<MessageQueue> taken = Collections.emptyList();
        // They throw if there is nothing to share out or nobody to have it, and clients then leave it at that.
        if (!queues.isEmpty() && !clientIds.isEmpty()) {
            taken = strategy.allocate("G", question.getString("clientId"), queues, clientIds);
        }
        return Map.of("name", strategy.getName(), "queues", queues, "clientIds", clientIds, "taken", taken);
    }

    private static AllocateMessageQueueStrategy strategy(JSONObject question) {
        String[] names = question.getString("strategy").split("-");
        if (names.length == 2) {
            return new AllocateMachineRoomNearby(named(names[1], question), new Rooms());
        }
        return named(names[0], question);
    }

    private static AllocateMessageQueueStrategy named(String name, JSONObject question) {
        switch (name) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONSISTENT_HASH":
                return new AllocateMessageQueueConsistentHash(question.getIntValue("virtualNodes"));
            case "MACHINE_ROOM":
                AllocateMessageQueueByMachineRoom byRoom = new AllocateMessageQueueByMachineRoom();
                byRoom.setConsumeridcs(new HashSet<>(question.getJSONArray("rooms").toJavaList(String.class)));
                return byRoom;
            default:
                throw new IllegalArgumentException("unknown strategy " + name);
        }
    }

    /** The room stands before the first at sign; all that have none there share one. */
    private static final class Rooms implements AllocateMachineRoomNearby.MachineRoomResolver {
        @Override
        public String brokerDeployIn(MessageQueue queue) {
            return room(queue.getBrokerName());
        }

        @Override
        public String consumerDeployIn(String clientId) {
            return room(clientId);
        }

        private static String room(String name) {
            int end = name.indexOf('@');
            String room = end < 0 ? name : name.substring(0, end);
            return room.isEmpty() ? "nowhere" : room;
        }
    }
}
