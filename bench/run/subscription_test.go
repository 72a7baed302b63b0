// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// of is a subject with a subscription.
func of(subscription string) subject {
	return subject{stages: []stage{{input: topic, subscription: subscription}}}
}

func TestRedeliveredMessagesAreCounted(t *testing.T) {
	for name, test := range map[string]struct {
		published, delivered, backlog int64
		subscription                  string
		want                          *int64
	}{
		"some":                       {100, 120, 0, "f", new(int64(20))},
		"none":                       {100, 100, 0, "f", new(int64(0))},
		"some are not acknowledged":  {100, 120, 5, "f", nil},
		"counters began again":       {100, 80, 0, "f", nil},
		"the topic of a target":      {100, 120, 0, "", nil},
		"Pulsar has no subscription": {100, 120, 0, "g", nil},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, fmt.Sprintf(
					`{"msgInCounter": %d, "subscriptions": {"f": {"msgOutCounter": %d, "msgBacklog": %d}}}`,
					test.published, test.delivered, test.backlog))
			}))
			t.Cleanup(server.Close)
			r := &runner{admin: adminAt(t, server.URL)}
			require.Equal(t, test.want, r.redelivered(t.Context(), of(test.subscription)))
		})
	}
}
