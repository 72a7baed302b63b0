// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

var sf = function.Component{Kind: function.KindFunction, Tenant: "public", Namespace: "default", Name: "sf"}

// as is sf with another kind or name.
func as(kind function.Kind, name string) function.Component {
	c := sf
	c.Kind, c.Name = kind, name
	return c
}

func TestInvalidConfigurations(t *testing.T) {
	const head = `{"tenant":"public","namespace":"default","name":"sf",`
	for name, tt := range map[string]struct{ config, problem string }{
		"of another namespace":  {`{"tenant":"public","namespace":"x","name":"sf"}`, "it is about public/x/sf"},
		"incomplete":            {head, "unexpected EOF"},
		"with text for numbers": {head + `"parallelism":"1"}`, "parallelism is a string"},
	} {
		t.Run(name, func(t *testing.T) {
			f, _, err := decodeConfig(strings.NewReader(tt.config), sf)
			require.EqualError(t, err, tt.problem)
			require.Zero(t, f)
		})
	}
}

// The status has the same counters as the stats of the same time, for each instance: so one call is enough.
func TestStatusHasTheCountersOfStats(t *testing.T) {
	for stats, status := range map[string]string{
		"4.0.8-function-stats-idle.json":    "4.0.8-function-status-idle.json",
		"4.0.8-function-stats-after20.json": "4.0.8-function-status-after20.json",
	} {
		var counted struct {
			Instances []struct {
				ID      int `json:"instanceId"`
				Metrics struct {
					Received   int64   `json:"receivedTotal"`
					Processed  int64   `json:"processedSuccessfullyTotal"`
					System     int64   `json:"systemExceptionsTotal"`
					User       int64   `json:"userExceptionsTotal"`
					AvgLatency float64 `json:"avgProcessLatency"`
				} `json:"metrics"`
			} `json:"instances"`
		}
		require.NoError(t, json.Unmarshal(fixture(t, stats), &counted))
		sample, err := decodeStatus(bytes.NewReader(fixture(t, status)), sf, function.Java)
		require.NoError(t, err)
		require.Len(t, sample.Instances, len(counted.Instances))
		for _, want := range counted.Instances {
			i := slices.IndexFunc(sample.Instances,
				func(s backlog.InstanceSample) bool { return s.ID == "public/default/sf#"+strconv.Itoa(want.ID) })
			require.GreaterOrEqual(t, i, 0)
			got := sample.Instances[i]
			require.Equal(t, want.Metrics.Received, got.Received)
			require.Equal(t, want.Metrics.Processed, got.Processed)
			require.Equal(t, want.Metrics.System, got.SystemExceptions)
			require.Equal(t, want.Metrics.User, got.UserExceptions)
			require.InDelta(t, want.Metrics.AvgLatency*float64(want.Metrics.Processed+want.Metrics.User),
				float64(got.BusyTime.Nanoseconds())/1e6, 1e-5)
		}
	}
}

// instance is one instance of a function's status, with other fields of the status.
func instance(t *testing.T, id int, changes string) string {
	t.Helper()
	status := map[string]any{
		"running": true, "error": "", "numReceived": 12, "numSuccessfullyProcessed": 10, "numUserExceptions": 2,
		"numSystemExceptions": 1, "averageLatency": 5.5,
	}
	decoder := json.NewDecoder(strings.NewReader("{" + changes + "}"))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&status))
	text, err := json.Marshal(map[string]any{"instanceId": id, "status": status})
	require.NoError(t, err)
	return string(text)
}

func TestInstancesThatDidNotAnswerAreSilent(t *testing.T) {
	tests := map[string]struct {
		status string
		ids    []string
		silent int
	}{
		"all answer": {
			`{"numInstances":2,"instances":[` + instance(t, 1, "") + "," + instance(t, 0, "") + `]}`,
			[]string{"1", "0"},
			0,
		},
		"one is down": {`{"numInstances":2,"instances":[` + instance(t, 1, "") + "," +
			instance(t, 0, `"running":false`) + `]}`, []string{"1"}, 1},
		"one was never scheduled": {
			`{"numInstances":3,"instances":[` + instance(t, 1, "") + "," + instance(t, 0, "") + `]}`,
			[]string{"1", "0"},
			1,
		},
		"one failed before it could run": {`{"numInstances":1,"instances":[` +
			instance(t, 0, `"error":"boom","numReceived":0`) + `]}`, nil, 1},
		"one works and had a failure": {
			`{"numInstances":1,"instances":[` + instance(t, 0, `"error":"boom"`) + `]}`,
			[]string{"0"},
			0,
		},
		"more run than were requested": {`{"numInstances":1,"instances":[` + instance(t, 1, "") + "," +
			instance(t, 0, `"running":false`) + `]}`, []string{"1"}, 1},
		"no instance is known": {`{"numInstances":2,"instances":[]}`, nil, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			sample, err := decodeStatus(strings.NewReader(tt.status), sf, function.Java)
			require.NoError(t, err)
			var ids []string
			for _, i := range sample.Instances {
				ids = append(ids, strings.TrimPrefix(i.ID, "public/default/sf#"))
			}
			require.Equal(t, tt.ids, ids)
			require.Equal(t, tt.silent, sample.Silent)
		})
	}
}

func TestFailedCallsAreInTheTimeOfJavaAlone(t *testing.T) {
	for runtime, calls := range map[function.Runtime]int64{
		function.Java: 12, function.Python: 10,
		function.Go: 10,
	} {
		sample, err := decodeStatus(strings.NewReader(`{"numInstances":1,"instances":[`+instance(t, 0, "")+`]}`), sf, runtime)
		require.NoError(t, err)
		require.Equal(t, calls, *sample.Instances[0].Calls)
		require.Equal(t, calls*5_500_000, sample.Instances[0].BusyTime.Nanoseconds())
		require.Equal(t, runtime == function.Java, sample.Instances[0].FailedCallsCounted)
	}
}

func TestInvalidStatuses(t *testing.T) {
	for name, tt := range map[string]struct{ status, problem string }{
		"no number of instances": {`{"instances":[]}`, "numInstances is missing"},
		"a negative one":         {`{"numInstances":-1}`, "numInstances is -1"},
		"an instance twice": {
			`{"numInstances":2,"instances":[` + instance(t, 0, "") + "," + instance(t, 0, "") + `]}`,
			"an instance has no id of its own",
		},
		"an instance without id": {
			`{"numInstances":1,"instances":[{"status":{"running":true}}]}`,
			"an instance has no id of its own",
		},
		"no word on running": {`{"numInstances":1,"instances":[{"instanceId":0,"status":{}}]}`, "running is missing"},
		"a counter is missing": {
			`{"numInstances":1,"instances":[{"instanceId":0,"status":{"running":true}}]}`,
			"instance 0: the number of messages received is missing",
		},
		"a counter is negative": {
			`{"numInstances":1,"instances":[` + instance(t, 0, `"numUserExceptions":-1`) + `]}`,
			"instance 0: the number of exceptions is -1",
		},
		"a counter that nothing reaches": {
			`{"numInstances":1,"instances":[` + instance(t, 0, `"numReceived":9007199254740993`) + `]}`,
			"instance 0: the number of messages received is 9007199254740993, " + errTooLarge.Error(),
		},
		"a counter beyond 64 bits": {
			`{"numInstances":1,"instances":[` + instance(t, 0, `"numReceived":9223372036854775808`) + `]}`,
			"numReceived is 9223372036854775808, " + errTooLarge.Error(),
		},
		"a counter with a fraction": {
			`{"numInstances":1,"instances":[` + instance(t, 0, `"numReceived":1.5`) + `]}`, "numReceived is a number",
		},
		"a list": {`[]`, "it is a list"},
		"a sink's status": {
			string(fixture(t, "4.0.8-sink-status.json")),
			"instance 0: the number of messages received is missing",
		},
		"no latency": {
			`{"numInstances":1,"instances":[` + instance(t, 0, `"averageLatency":null`) + `]}`,
			"instance 0: averageLatency is missing",
		},
		"a negative latency": {
			`{"numInstances":1,"instances":[` + instance(t, 0, `"averageLatency":-1`) + `]}`,
			"instance 0: averageLatency is -1",
		},
		"a latency of centuries": {
			`{"numInstances":1,"instances":[` + instance(t, 0, `"averageLatency":1e300`) + `]}`,
			"instance 0: averageLatency is 1e+300",
		},
	} {
		t.Run(name, func(t *testing.T) {
			sample, err := decodeStatus(strings.NewReader(tt.status), sf, function.Java)
			require.EqualError(t, err, tt.problem)
			require.Zero(t, sample)
		})
	}
}

func FuzzDecodeConfig(f *testing.F) {
	addFixtures(f, "*-config*.json")
	f.Add([]byte(`{"tenant":"public","namespace":"default","name":"sf","parallelism":1,"batchSourceConfig":{}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, component := range []function.Component{sf, as(function.KindSink, "sk"), as(function.KindSource, "sf")} {
			f, parallelism, err := decodeConfig(bytes.NewReader(content), component)
			if err != nil {
				require.Zero(t, f)
				continue
			}
			config, err := describe(f, component, parallelism)
			if err != nil {
				require.ErrorIs(t, err, backlog.ErrUnsupported)
				require.Zero(t, config)
				continue
			}
			require.NotEmpty(t, config.Subscription.Name)
			require.NotEmpty(t, len(config.Subscription.Topics)+len(config.Subscription.Patterns))
			require.True(t, slices.IsSorted(config.Subscription.Topics) && slices.IsSorted(config.Subscription.Patterns))
			require.NotContains(t, config.Subscription.Topics, "")
			require.GreaterOrEqual(t, config.Parallelism, 0)
		}
	})
}

func FuzzDecodeStatus(f *testing.F) {
	addFixtures(f, "*-status*.json")
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, component := range []function.Component{sf, as(function.KindSink, "sf"), as(function.KindSource, "sf")} {
			sample, err := decodeStatus(bytes.NewReader(content), component, function.Java)
			if err != nil {
				require.Zero(t, sample)
				continue
			}
			ids := map[string]bool{}
			require.GreaterOrEqual(t, sample.Silent, 0)
			for _, i := range sample.Instances {
				require.False(t, ids[i.ID])
				ids[i.ID] = true
				require.False(t, i.Received < 0 || i.Processed < 0 || i.UserExceptions < 0 || i.SystemExceptions < 0)
				require.Equal(t, component.Kind == function.KindFunction, i.Calls != nil && i.BusyTime != nil)
				if i.Calls != nil {
					require.False(t, *i.Calls < 0 || *i.BusyTime < 0)
				}
			}
		}
	})
}

func TestNamesOfComponentsAreEscaped(t *testing.T) {
	broker := newFakeBroker(t)
	_, err := newSource(t, Config{}, broker).Worker(0).Describe(t.Context(),
		broker.component(function.KindFunction, "a b?c#d%2F+ü"))
	require.ErrorIs(t, err, backlog.ErrFunctionNotFound)
	require.Equal(t, "/admin/v3/functions/public/default/a%20b%3Fc%23d%252F+%C3%BC", broker.request(0).URL.EscapedPath())
}
