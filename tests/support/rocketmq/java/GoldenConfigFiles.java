package tanist.partner;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.parser.Feature;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.store.LocalFileOffsetStore;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.ConfigManager;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;

/** The JSON files that a broker, and a broadcasting consumer, keep beside the log. */
final class GoldenConfigFiles {
    private final Golden golden;
    private final BrokerController broker;

    private GoldenConfigFiles(Golden golden, BrokerController broker) {
        this.golden = golden;
        this.broker = broker;
    }

    static void capture(Golden golden, Path scratch) throws Exception {
        ScratchStore store = ScratchStore.open(scratch.resolve("broker"), settings -> { });
        BrokerConfig config = new BrokerConfig();
        config.setBrokerName("broker-a");
        config.setBrokerIP1("10.0.0.1");
        // Made but never started: what keeps its configuration works without the rest.
        BrokerController broker = new BrokerController(config, new NettyServerConfig(), new NettyClientConfig(),
            store.getMessageStoreConfig());
        broker.setMessageStore(store);
        GoldenConfigFiles files = new GoldenConfigFiles(golden, broker);
        files.topics();
        files.groups();
        files.consumerOffsets();
        files.delayOffsets();
        files.broadcastOffsets();
    }

    private void topics() throws Exception {
        broker.getTopicConfigManager().updateTopicConfig(new TopicConfig("TopicA", 4, 8, 6));
        broker.getTopicConfigManager().getDataVersion().assignNewOne(GoldenBodies.dataVersion());
        add("topics", broker.getTopicConfigManager());
    }

    private void groups() throws Exception {
        SubscriptionGroupConfig group = new SubscriptionGroupConfig();
        group.setGroupName("GroupA");
        broker.getSubscriptionGroupManager().updateSubscriptionGroupConfig(group);
        broker.getSubscriptionGroupManager().getDataVersion().assignNewOne(GoldenBodies.dataVersion());
        add("subscription_group", broker.getSubscriptionGroupManager());
    }

    private void consumerOffsets() throws Exception {
        for (int queueId = 0; queueId < 12; queueId += 11) {
            broker.getConsumerOffsetManager().commitOffset("1.2.3.4", "GroupA", "TopicA", queueId, 10 + queueId);
        }
        broker.getConsumerOffsetManager().commitOffset("1.2.3.4", "GroupA", "%RETRY%GroupA", 0, 0);
        broker.getConsumerOffsetManager().getDataVersion().assignNewOne(GoldenBodies.dataVersion());
        add("consumer_offset", broker.getConsumerOffsetManager());
    }

    private void delayOffsets() throws Exception {
        String version = GoldenBodies.dataVersion().toJson();
        broker.getScheduleMessageService().decode("{\"offsetTable\":{1:5,3:7},\"dataVersion\":" + version + "}");
        add("delay_offset", broker.getScheduleMessageService());
    }

    private void broadcastOffsets() throws Exception {
        MQClientInstance client = new MQClientInstance(new ClientConfig(), 0, "10.0.0.5@DEFAULT");
        LocalFileOffsetStore offsets = new LocalFileOffsetStore(client, "GroupA");
        offsets.updateOffset(GoldenBodies.queue(0), 5, false);
        offsets.updateOffset(GoldenBodies.queue(3), 42, false);
        offsets.persistAll(Set.of(GoldenBodies.queue(0), GoldenBodies.queue(3)));
        add("broadcast_offsets", Path.of(System.getProperty("user.home"),
            ".rocketmq_offsets", "10.0.0.5@DEFAULT", "GroupA", "offsets.json"));
    }

    private void add(String name, ConfigManager manager) throws Exception {
        manager.persist();
        add(name, Path.of(manager.configFilePath()));
    }

    private void add(String name, Path file) throws Exception {
        String text = new String(Files.readAllBytes(file), UTF_8);
        golden.add("config_files", name,
            "file_name", file.getFileName().toString(),
            "text", text,
            "value", GoldenBodies.standard(JSON.parse(text, Feature.OrderedField)));
    }
}
