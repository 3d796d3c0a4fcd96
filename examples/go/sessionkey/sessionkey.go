// Package sessionkey makes the Kafka key of a turn.
package sessionkey

import (
	"net/url"
	"strings"
)

// Of returns tenant/user/session, each part percent-encoded. url.PathEscape leaves $&+=:@ as they are, and
// url.QueryEscape writes a space as "+"; the key needs "%20".
func Of(tenantID, userID, sessionID string) string {
	return part(tenantID) + "/" + part(userID) + "/" + part(sessionID)
}

func part(id string) string {
	return strings.ReplaceAll(url.QueryEscape(id), "+", "%20")
}
