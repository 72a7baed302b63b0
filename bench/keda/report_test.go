// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"flag"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/golden"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
)

var update = flag.Bool("update", false, "write the golden files")

// sampleOptions are the flags' defaults.
func sampleOptions(t *testing.T, args ...string) options {
	t.Helper()
	o, err := parseOptions(args, io.Discard)
	require.NoError(t, err)
	return o
}

// sampleReport has a contender that was measured in every part, one in some and one in an unfinished part.
// end.
func sampleReport(t *testing.T) *report {
	t.Helper()
	o := sampleOptions(t)
	r := &report{
		KEDA: "v2.21.0", Pulsar: "4.0.8", Kubernetes: "v1.2.3", CPUs: 2, Begun: at(0).UTC(), Settings: newSettings(o),
		LoadAverage: map[string][]float64{partOutage: {0.5, 1.25}}, Contenders: map[string]*contender{},
	}
	one := r.of(ours)
	one.fall = newFall([][]pods.Sample{{{Time: at(-1), Desired: 6}}}, span{at(0), at(180)})
	one.awakening = newAwakening([]time.Duration{time.Second, 2 * time.Second}, 2)
	one.BurstRightSized, one.BurstSetUpSeconds = new(2), new(150.0)
	r.of(kedaTuned).fall = newFall([][]pods.Sample{{{Time: at(-1), Desired: 6}, {Time: at(57), Desired: 0}}},
		span{at(0), at(180)})
	r.of(externalPull).awakening = newAwakening([]time.Duration{22 * time.Second}, 2)
	return r
}

func TestReport(t *testing.T) {
	r := sampleReport(t)
	golden.Written(t, *update, "table.txt", r.table)
	golden.JSON(t, *update, "keda.json", r)
}

func TestEveryContenderHasEveryFigureAndNullIsWhatWasNotMeasured(t *testing.T) {
	text, err := json.Marshal(sampleReport(t))
	require.NoError(t, err)
	var written struct {
		Contenders map[string]map[string]any `json:"contenders"`
	}
	require.NoError(t, json.Unmarshal(text, &written))
	for _, name := range []string{ours, kedaTuned} {
		for _, key := range []string{
			"outage_min_replicas", "outage_first_fall_seconds", "burst_p50_seconds", "burst_p99_seconds",
		} {
			require.Contains(t, written.Contenders[name], key, name)
		}
	}
	require.Nil(t, written.Contenders[kedaTuned]["burst_p50_seconds"])
	require.Zero(t, written.Contenders[kedaTuned]["outage_min_replicas"], "0 is a number")
	require.Equal(t, 1.0, written.Contenders[ours]["burst_p50_seconds"])
}
