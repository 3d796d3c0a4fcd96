// Send turns to memstream with franz-go: go run . localhost:9092 < turns.ndjson
// Prints the partition and offset of each turn.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"example/memstream-producer/sessionkey"
)

const maxLine = 1 << 20

type turn struct {
	TenantID  string `json:"tenant_id"`
	UserID    string `json:"user_id"`
	SessionID string `json:"session_id"`
	TurnID    string `json:"turn_id"`
}

// partitioner returns the partitioner of Java's producer: murmur2 over the key.
func partitioner() kgo.Partitioner { return kgo.StickyKeyPartitioner(nil) }

func main() {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...),
		kgo.ClientID("chat-service"),
		kgo.DefaultProduceTopic("memory.turns"),
		kgo.RequiredAcks(kgo.AllISRAcks()), // idempotence is on by default: retries neither lose nor duplicate
		kgo.RecordPartitioner(partitioner()),
		kgo.RecordDeliveryTimeout(time.Minute),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, maxLine)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		line := append([]byte(nil), lines.Bytes()...)
		if len(strings.TrimSpace(string(line))) == 0 {
			continue
		}
		var said turn
		if err := json.Unmarshal(line, &said); err != nil {
			log.Fatal(err)
		}
		key := sessionkey.Of(said.TenantID, said.UserID, said.SessionID)
		record := &kgo.Record{Key: []byte(key), Value: line}
		if err := client.ProduceSync(context.Background(), record).FirstErr(); err != nil {
			log.Fatal(err)
		}
		_ = answers.Encode(map[string]any{
			"partition": record.Partition, "offset": record.Offset, "turn_id": said.TurnID,
		})
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}
