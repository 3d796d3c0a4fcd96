// Sends turns to memstream with kafkajs. npm install, then: node producer.mjs localhost:9092 < turns.ndjson
// Prints the partition and offset of each turn.
import { createInterface } from "node:readline";
import { CompressionTypes, Kafka, Partitioners } from "kafkajs";
import { sessionKey } from "./key.mjs";

const kafka = new Kafka({ clientId: "chat-service", brokers: process.argv[2].split(",") });
const producer = kafka.producer({
  createPartitioner: Partitioners.DefaultPartitioner, // murmur2 as in Java; not LegacyPartitioner
  idempotent: true, // retries neither lose nor duplicate
  maxInFlightRequests: 1, // with more, kafkajs does not keep the order of a session
});

await producer.connect();
try {
  for await (const line of createInterface({ input: process.stdin })) {
    if (!line.trim()) continue;
    const turn = JSON.parse(line);
    const [sent] = await producer.send({
      topic: "memory.turns",
      acks: -1, // all replicas
      compression: CompressionTypes.None,
      messages: [{ key: sessionKey(turn), value: line }],
    });
    console.log(JSON.stringify({ partition: sent.partition, offset: Number(sent.baseOffset), turn_id: turn.turn_id }));
  }
} finally {
  await producer.disconnect();
}
