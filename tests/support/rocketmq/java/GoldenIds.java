package tanist.partner;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.time.ZonedDateTime;
import java.time.temporal.ChronoUnit;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.common.TopicFilterType;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.message.MessageClientIDSetter;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RequestCode;

/** Message ids, hash codes, checksums and the signature of a request. */
final class GoldenIds {
    private final Golden golden;

    private GoldenIds(Golden golden) {
        this.golden = golden;
    }

    static void capture(Golden golden) throws Exception {
        GoldenIds ids = new GoldenIds(golden);
        ids.offsetId("offset_id_ipv4", "127.0.0.1", 20911, 1351);
        ids.offsetId("offset_id_ipv6", "2001:db8:0:0:0:0:0:1", 65535, Long.MAX_VALUE);
        ids.uniqueId();
        ids.hashes();
        ids.signature("signature", new TreeMap<>(Map.of("topic", "主题", "queueId", "3", "Zone", "z", "_tail", "")),
            "hello".getBytes(UTF_8), null);
        ids.signature("signature_with_token", new TreeMap<>(Map.of("topic", "TopicA")), null, "token");
    }

    private void offsetId(String name, String address, int port, long logOffset) throws Exception {
        byte[] host = InetAddress.getByName(address).getAddress();
        ByteBuffer place = ByteBuffer.allocate(host.length + 4).put(host).putInt(port);
        place.flip();
        String id = MessageDecoder.createMessageId(ByteBuffer.allocate(host.length + 12), place, logOffset);
        golden.add("ids", name, "address", address, "port", port, "log_offset", logOffset, "id", id);
    }

    /** An id counts from the first of the month in local time, so that moment is kept with it. */
    private void uniqueId() {
        ZonedDateTime now = ZonedDateTime.now();
        long monthStartMs = now.truncatedTo(ChronoUnit.DAYS).withDayOfMonth(1).toInstant().toEpochMilli();
        long notBeforeMs = System.currentTimeMillis();
        String id = MessageClientIDSetter.createUniqID();
        golden.add("ids", "unique_id",
            "varies", true,
            "id", id,
            "address", MessageClientIDSetter.getIPStrFromID(id),
            "process_id", MessageClientIDSetter.getPidFromID(id),
            "month_start_ms", monthStartMs,
            "made_from_ms", notBeforeMs,
            "made_to_ms", System.currentTimeMillis());
    }

    private void hashes() {
        Map<String, Object> tags = new TreeMap<>();
        Map<String, Object> checksums = new TreeMap<>();
        for (String text : new String[] {"", "TagA", "中文", "😀", "zzzzzzzzzz", "polygenelubricants"}) {
            tags.put(text, MessageExtBrokerInner.tagsString2tagsCode(TopicFilterType.SINGLE_TAG, text));
            checksums.put(text, UtilAll.crc32(text.getBytes(UTF_8)));
        }
        golden.add("ids", "tag_codes", tags);
        golden.add("ids", "checksums", checksums);
    }

    private void signature(String name, Map<String, String> fields, byte[] body, String token) {
        RemotingCommand request = RemotingCommand.createRequestCommand(RequestCode.SEND_MESSAGE_V2, null);
        fields.forEach(request::addExtField);
        request.setBody(body);
        new AclClientRPCHook(new SessionCredentials("RocketMQ", "12345678", token)).doBeforeRequest("", request);
        golden.add("ids", name,
            "access_key", "RocketMQ",
            "secret_key", "12345678",
            "ext_fields", fields,
            "body", body == null ? "" : Golden.hex(body),
            "signed_ext_fields", new TreeMap<>(request.getExtFields()));
    }
}
