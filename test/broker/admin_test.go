// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACallThatTheMetadataStoreEndedIsMadeAgain(t *testing.T) {
	const locked = `{"reason":"ManagedLedgerException: Error while using MetaStore error code: -18"}`
	type response struct {
		status int
		body   string
	}
	failed, full := response{http.StatusInternalServerError, locked}, response{http.StatusInternalServerError, "full"}
	exists := response{http.StatusConflict, "exists"}
	for name, test := range map[string]struct {
		responses []response
		calls     int
		want      string
	}{
		"and succeeds":                                  {[]response{failed, {http.StatusNoContent, ""}}, 2, ""},
		"and finds what it had created":                 {[]response{failed, exists}, 2, ""},
		"but a topic that was there before is an error": {[]response{exists}, 1, "answered 409"},
		"but not after another error":                   {[]response{full}, 1, "answered 500: full"},
		"but not for ever":                              {slices.Repeat([]response{failed}, 5), 5, "answered 500"},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				r := test.responses[calls]
				calls++
				w.WriteHeader(r.status)
				_, _ = fmt.Fprint(w, r.body) // the client notices
			}))
			t.Cleanup(server.Close)
			address, err := url.Parse(server.URL)
			require.NoError(t, err)
			port, err := strconv.Atoi(address.Port())
			require.NoError(t, err)
			b := &Broker{client: newClient(), ports: ports{admin: port}}

			err = b.CreateTopic(t.Context(), "orders", 2)
			if test.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.want)
			}
			require.Equal(t, test.calls, calls)
		})
	}
}
