// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/golden"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
)

var update = flag.Bool("update", false, "write the golden files")

// sampleOptions are the flags' defaults.
func sampleOptions(t *testing.T, args ...string) options {
	t.Helper()
	o, err := parseOptions(args, io.Discard)
	require.NoError(t, err)
	return o
}

// sampleReport has a contender that was measured in every part, one in some and one in a part that did not come to an
// end.
func sampleReport(t *testing.T) *report {
	t.Helper()
	o := sampleOptions(t)
	r := &report{
		KEDA: "v2.21.0", Pulsar: "4.0.8", Kubernetes: "v1.2.3", CPUs: 2, Begun: at(0).UTC(), Settings: newSettings(o),
		LoadAverage: map[string][]float64{partBeside: {0.5, 1.25}}, Contenders: map[string]*contender{},
	}
	one := r.of(ours, o)
	one.follow([]mesh.Sample{{Time: at(4), Desired: 4, Started: 4}, {Time: at(9), Desired: 4, Started: 4, Ready: 4}},
		span{at(0), at(60)}, o.enough())
	one.LatePct, one.BrokerRequests, one.BrokerBytes = new(0.25), new(int64(40)), new(int64(123456))
	early := one.account
	early.EnoughReplicasSeconds = nil
	one.FirstStep = &early
	one.fall = newFall([][]mesh.Sample{{{Time: at(-1), Desired: 6}}}, span{at(0), at(180)})
	one.awakening = newAwakening([]time.Duration{time.Second, 2 * time.Second}, 2)
	one.BurstRightSized, one.BurstSetUpSeconds = new(2), new(150.0)
	r.of(kedaTuned, o).fall = newFall([][]mesh.Sample{{{Time: at(-1), Desired: 6}, {Time: at(57), Desired: 0}}},
		span{at(0), at(180)})
	r.of(externalPull, o).awakening = newAwakening([]time.Duration{22 * time.Second}, 2)
	return r
}

func TestReport(t *testing.T) {
	r := sampleReport(t)
	var table bytes.Buffer
	require.NoError(t, r.table(&table))
	golden.Equal(t, *update, "table.txt", table.Bytes())
	text, err := json.MarshalIndent(r, "", "  ")
	require.NoError(t, err)
	golden.Equal(t, *update, "keda.json", append(text, '\n'))
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
			"first_replica_seconds", "enough_replicas_seconds", "late_pct", "replica_seconds", "replica_changes",
			"broker_requests",
			"broker_bytes", "outage_min_replicas", "burst_p50_seconds", "burst_p99_seconds",
		} {
			require.Contains(t, written.Contenders[name], key, name)
		}
	}
	require.Nil(t, written.Contenders[kedaTuned]["late_pct"])
	require.Zero(t, written.Contenders[kedaTuned]["outage_min_replicas"], "which is a number")
	require.Equal(t, 0.25, written.Contenders[ours]["late_pct"])
}
