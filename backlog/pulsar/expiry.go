// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// tokenEnd is when a token ends by its own words, which nobody has checked: brokers say the same of a token that has
// expired and of one that is signed by others. It is false for what is no JSON Web Token and for one without an end.
//
// Source: RFC 7519 §4.1.4 (exp, in seconds, perhaps with a fraction).
func tokenEnd(token string) (time.Time, bool) {
	_, rest, _ := strings.Cut(token, ".")
	claims, signature, found := strings.Cut(rest, ".")
	if !found || strings.Contains(signature, ".") {
		return time.Time{}, false
	}
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(claims, "="))
	if err != nil {
		return time.Time{}, false
	}
	var claim struct {
		Ends *float64 `json:"exp"`
	}
	const latest = 253402300799 // the last second that RFC 3339 can write
	if json.Unmarshal(text, &claim) != nil || claim.Ends == nil || *claim.Ends < 0 || *claim.Ends > latest {
		return time.Time{}, false
	}
	return time.Unix(int64(*claim.Ends), 0).UTC(), true
}

// tokenDisbelief is what a broker means by 401 to a token.
func tokenDisbelief(token string, now time.Time) string {
	ends, known := tokenEnd(token)
	switch {
	case !known:
		return "does not accept the token: is it expired, or signed with another key?"
	case ends.After(now):
		return "does not accept the token, which has not expired: is it signed with another key?"
	default:
		return "does not accept the token, which expired at " + ends.Format(time.RFC3339) + ": put a new one in its place"
	}
}
