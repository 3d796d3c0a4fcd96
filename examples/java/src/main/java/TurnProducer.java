import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Sends turns to memstream with kafka-clients:
 * mvn -q compile exec:java -Dexec.mainClass=TurnProducer -Dexec.args=localhost:9092 < turns.ndjson
 * Prints the partition and offset of each turn.
 */
public final class TurnProducer {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("client.id", "chat-service");
        settings.put("acks", "all");
        settings.put("enable.idempotence", "true"); // retries neither lose nor duplicate, and keep the order
        settings.put("delivery.timeout.ms", "60000");
        // No partitioner.class, and partitioner.ignore.keys stays false: murmur2 over the key.

        ObjectMapper json = new ObjectMapper();
        try (KafkaProducer<String, String> producer =
                 new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
             BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line; (line = lines.readLine()) != null; ) {
                if (line.isBlank()) continue;
                JsonNode turn = json.readTree(line);
                String key = SessionKey.of(
                    turn.get("tenant_id").asText(), turn.get("user_id").asText(), turn.get("session_id").asText());
                RecordMetadata sent = producer.send(new ProducerRecord<>("memory.turns", key, line)).get(); // acknowledged
                System.out.printf("{\"partition\": %d, \"offset\": %d, \"turn_id\": %s}%n",
                    sent.partition(), sent.offset(), json.writeValueAsString(turn.get("turn_id").asText()));
            }
        }
    }
}
