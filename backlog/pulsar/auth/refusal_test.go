// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// jwt has the claims and an invalid signature.
func jwt(claims string) string {
	return "eyJhbGciOiJIUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmF0dXJl"
}

func TestRefusalSaysWhetherTheTokenHasExpired(t *testing.T) {
	const either = "does not accept the token: is it expired, or signed with another key?"
	now := time.Date(2026, 11, 22, 6, 30, 0, 0, time.UTC)
	tests := map[string]struct{ token, want string }{
		"it has expired": {
			jwt(`{"sub":"me","exp":1795329000}`),
			"does not accept the token, which expired at 2026-11-22T06:30:00Z: put a new one in its place",
		},
		"it has expired with a fraction": {
			jwt(`{"exp":1795328999.75}`),
			"does not accept the token, which expired at 2026-11-22T06:29:59Z: put a new one in its place",
		},
		"it has not expired": {
			jwt(`{"exp":1795329001}`),
			"does not accept the token, which has not expired: is it signed with another key?",
		},
		"its claims are padded": {
			"e30." + base64.URLEncoding.EncodeToString([]byte(`{"exp":1}`)) + ".e30",
			"does not accept the token, which expired at 1970-01-01T00:00:01Z: put a new one in its place",
		},
		"it has no end":                          {jwt(`{"sub":"me"}`), either},
		"its expiry is empty":                    {jwt(`{"exp":null}`), either},
		"its end is a text":                      {jwt(`{"exp":"1795329000"}`), either},
		"its end is before time began":           {jwt(`{"exp":-1}`), either},
		"its expiry exceeds the range of a time": {jwt(`{"exp":1e300}`), either},
		"its claims are no JSON":                 {jwt(`exp=1`), either},
		"its claims are no base64":               {"e30.{}.e30", either},
		"it has two parts":                       {"e30.e30", either},
		"it has four parts":                      {jwt(`{"exp":1}`) + ".e30", either},
		"it is none":                             {"garbage", either},
		"an empty text":                          {"", either},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, tokenRefusal(tt.token, now))
		})
	}
}

func FuzzTokenEnd(f *testing.F) {
	for _, token := range []string{jwt(`{"exp":1795329000.5}`), jwt(`{"exp":1e400}`), "a.b.c", "..", "e30.e30=.e30"} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		ends, known := tokenEnd(token)
		require.Equal(t, known, !ends.IsZero())
		require.False(t, known && (ends.Year() < 1970 || ends.Year() > 9999), ends)
	})
}
