// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

const answerFormat = `{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta2","metadata":{},"items":[
	{"describedObject":{"kind":"Function","name":%q},"metric":{"name":%q},"timestamp":null,"value":"3"}]}`

func TestAskFailsUnlessTheResponseIsTheMetric(t *testing.T) {
	q := question{resource: "functions.compute.functionmesh.io", name: "orders", metric: "pulsar_function_publish_rate"}
	tests := map[string]struct {
		status int
		answer string
		fails  string
	}{
		"takes the metric of the object": {http.StatusOK, fmt.Sprintf(answerFormat, q.name, q.metric), ""},
		"refuses another metric": {
			http.StatusOK, fmt.Sprintf(answerFormat, q.name, "cpu"),
			"the response is of another object",
		},
		"refuses another object": {
			http.StatusOK, fmt.Sprintf(answerFormat, "bills", q.metric),
			"the response is of another object",
		},
		"refuses an empty list": {
			http.StatusOK, `{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta2","items":[]}`,
			"the response is of another object",
		},
		"does not repeat a request with Retry-After": {
			http.StatusTooManyRequests, "",
			"asking for pulsar_function_publish_rate",
		},
		"fails for a server's error": {
			http.StatusInternalServerError, "",
			"asking for pulsar_function_publish_rate",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				if r.URL.Path != "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/functions.compute.functionmesh.io/orders/pulsar_function_publish_rate" {
					t.Errorf("path %s", r.URL.Path)
				}
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.answer)
			}))
			defer server.Close()
			seen := &witness{}
			require.Equal(t, manner{}, seen.manner())
			client, err := newClient(&rest.Config{Host: server.URL}, seen)
			require.NoError(t, err)

			err = route{name: "test", client: client, seen: seen}.ask(t.Context(), q)
			require.Equal(t, int32(1), requests.Load())
			require.Equal(t, manner{protocol: "HTTP/1.1", contentType: "application/json"}, seen.manner())
			if tt.fails == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.fails)
			if tt.status == http.StatusTooManyRequests {
				require.True(t, apierrors.IsTooManyRequests(err))
			}
		})
	}
}
