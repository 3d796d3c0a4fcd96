package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestPartitionsAreThoseOfTheContract(t *testing.T) {
	content, err := os.ReadFile("../keys.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Key       string `json:"key"`
		Partition int    `json:"partition_of_12"`
	}
	if err := json.Unmarshal(content, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("keys.json holds no keys")
	}
	topic := partitioner().ForTopic("memory.turns")
	for _, each := range all {
		if got := topic.Partition(&kgo.Record{Key: []byte(each.Key)}, 12); got != each.Partition {
			t.Errorf("%s: partition %d, should be %d", each.Key, got, each.Partition)
		}
	}
}
