// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestTheSubscriptionTypeOfAWorkersFunction(t *testing.T) {
	tests := map[string]struct {
		kind   Kind
		config string
		want   backlog.SubscriptionType
	}{
		"by default": {config: `"runtime":"JAVA"`, want: backlog.Shared},
		"at most once": {
			config: `"runtime":"JAVA","processingGuarantees":"ATMOST_ONCE"`,
			want:   backlog.Shared,
		},
		"acknowledged by the function": {config: `"runtime":"PYTHON","processingGuarantees":"MANUAL"`, want: backlog.Shared},
		"in order":                     {config: `"runtime":"JAVA","retainOrdering":true`, want: backlog.Failover},
		"in order in total and by key": {
			config: `"runtime":"JAVA","retainOrdering":true,"retainKeyOrdering":true`,
			want:   backlog.Failover,
		},
		"in order by key":        {config: `"runtime":"JAVA","retainKeyOrdering":true`, want: backlog.KeyShared},
		"in order by key in Go":  {config: `"runtime":"GO","retainKeyOrdering":true`, want: backlog.KeyShared},
		"in order in Go":         {config: `"runtime":"GO","retainOrdering":true`, want: backlog.Failover},
		"a sink in order by key": {kind: KindSink, config: `"retainKeyOrdering":true`, want: backlog.KeyShared},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kind := KindFunction
			if test.kind != "" {
				kind = test.kind
			}
			f := decodeWorker(t, kind, `{`+identity+`,"parallelism":1,"inputSpecs":{"in":{}},`+test.config+`}`)
			require.Equal(t, test.want, f.SubscriptionType)
		})
	}
}

func TestAnInvalidAnswerOfAWorkerIsRefused(t *testing.T) {
	tests := map[string]struct{ config, problem string }{
		"without inputs":          {`"parallelism":1,"runtime":"JAVA"`, "inputSpecs is missing"},
		"with a nameless input":   {`"parallelism":1,"runtime":"JAVA","inputSpecs":{"":{}}`, "an input has no name"},
		"without parallelism":     {`"runtime":"JAVA","inputSpecs":{"in":{}}`, "parallelism is missing"},
		"with a negative one":     {`"parallelism":-1,"runtime":"JAVA","inputSpecs":{"in":{}}`, "parallelism is -1"},
		"without a runtime":       {`"parallelism":1,"inputSpecs":{"in":{}}`, "runtime is missing"},
		"with an unknown runtime": {`"parallelism":1,"runtime":"RUST","inputSpecs":{"in":{}}`, `runtime is "RUST"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var c WorkerConfig
			require.NoError(t, json.Unmarshal([]byte(`{`+identity+`,`+test.config+`}`), &c))
			f, err := c.Function(KindFunction)
			require.EqualError(t, err, test.problem)
			require.Zero(t, f)
		})
	}
}
