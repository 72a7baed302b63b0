// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
)

// authorization is what one request sends to authenticate. The zero value sends nothing.
type authorization struct {
	method authparams.Method
	// secret is a token or user:password, as the binary protocol sends it; empty for none.
	secret string
}

// set also sets the method: a broker with strictAuthMethod=true refuses requests without it, even with a client
// certificate (seen on 4.2.4).
func (a authorization) set(headers http.Header) {
	if a.secret != "" {
		headers.Set("Authorization", a.header())
	}
	if name := a.methodName(); name != "" {
		headers.Set("X-Pulsar-Auth-Method-Name", name)
	}
}

// methodName is Pulsar's name of the method; empty for none.
func (a authorization) methodName() string {
	switch a.method {
	case authparams.None:
		return ""
	case authparams.OAuth2: // its token is a token like any other
		return string(authparams.Token)
	default:
		return string(a.method)
	}
}

// header is the value of the header Authorization. A user and a password are encoded as in RFC 7617.
func (a authorization) header() string {
	if a.method == authparams.Basic {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(a.secret))
	}
	return "Bearer " + a.secret
}

// redact removes what a server in between may echo.
func (a authorization) redact(text string) string {
	_, sent, _ := strings.Cut(a.header(), " ")
	secrets := []string{sent}
	if a.method == authparams.Basic {
		_, password, _ := strings.Cut(a.secret, ":")
		secrets = append(secrets, password)
	}
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "["+string(a.method)+"]")
		}
	}
	return text
}

// tokenEnd is the expiry that a token claims, which is not verified: brokers answer the same for an expired token and
// for one with an invalid signature. It is false if the text is not a JSON Web Token or has no expiry.
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
	const latest = 253402300799 // the last second that RFC 3339 can represent
	if json.Unmarshal(text, &claim) != nil || claim.Ends == nil || *claim.Ends < 0 || *claim.Ends > latest {
		return time.Time{}, false
	}
	return time.Unix(int64(*claim.Ends), 0).UTC(), true
}

func tokenRefusal(token string, now time.Time) string {
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
