// Turns into memory with kafkajs. npm install, then: node producer.mjs localhost:9092 < turns.ndjson
// Prints where each turn lies.
import { createInterface } from "node:readline";
import { CompressionTypes, Kafka, Partitioners } from "kafkajs";
import { sessionKey } from "./key.mjs";

const kafka = new Kafka({ clientId: "chat-service", brokers: process.argv[2].split(",") });
const producer = kafka.producer({
  createPartitioner: Partitioners.DefaultPartitioner, // murmur2, as Java's; not LegacyPartitioner
  idempotent: true, // retries neither lose nor double
  maxInFlightRequests: 1, // kafkajs keeps the order of a session only so
});

await producer.connect();
try {
  for await (const line of createInterface({ input: process.stdin })) {
    if (!line.trim()) continue;
    const turn = JSON.parse(line);
    const [lies] = await producer.send({
      topic: "memory.turns",
      acks: -1, // all replicas
      compression: CompressionTypes.None,
      messages: [{ key: sessionKey(turn), value: line }],
    });
    console.log(JSON.stringify({ partition: lies.partition, offset: Number(lies.baseOffset), turn_id: turn.turn_id }));
  }
} finally {
  await producer.disconnect();
}
