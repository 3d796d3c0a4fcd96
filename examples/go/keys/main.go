// Check keys against keys.json, without a broker or a library: go run ./keys ../keys.json
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"example/memstream-producer/sessionkey"
)

type known struct {
	TenantID  string `json:"tenant_id"`
	UserID    string `json:"user_id"`
	SessionID string `json:"session_id"`
	Key       string `json:"key"`
}

func main() {
	content, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	var all []known
	if err := json.Unmarshal(content, &all); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	wrong := false
	for _, each := range all {
		if key := sessionkey.Of(each.TenantID, each.UserID, each.SessionID); key != each.Key {
			fmt.Fprintln(os.Stderr, key, "should be", each.Key)
			wrong = true
		}
	}
	if wrong {
		os.Exit(1)
	}
}
