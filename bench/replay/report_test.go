// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
)

// replayed returns a result with an invented real run, without a server.
func replayed(t testing.TB) result {
	t.Helper()
	s := all()[0].lasting(20 * time.Second)
	o := happened()
	o.scenario, o.ended = s, o.begun.Add(s.length)
	m := facts()
	m.Starts, m.Redelivered = 2, known(int64(7))
	return compare(s, m, o.score(), o.trace(), simulate(s, m, o.arrived()))
}

func TestTheTwoAreWithinTheirGoals(t *testing.T) {
	simulated := simulated{figures: figures{Mean: score{ReplicaHours: known(2.0), LatePct: known(3.0)}}}
	for name, test := range map[string]struct {
		real score
		want *bool
	}{
		"equal":            {score{ReplicaHours: known(2.0), LatePct: known(3.0)}, known(true)},
		"at the edge":      {score{ReplicaHours: known(2.3), LatePct: known(1.0)}, known(true)},
		"more replicas":    {score{ReplicaHours: known(2.4), LatePct: known(3.0)}, known(false)},
		"fewer":            {score{ReplicaHours: known(1.6), LatePct: known(3.0)}, known(false)},
		"later":            {score{ReplicaHours: known(2.0), LatePct: known(5.5)}, known(false)},
		"an unknown value": {score{ReplicaHours: known(2.0)}, nil},
		"nothing is known": {score{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, compare(all()[0], measured{}, test.real, trace{}, simulated).Within)
		})
	}
}

func TestAReportIsReadAsItWasWritten(t *testing.T) {
	r := report{Pulsar: "4.0.8", Kubernetes: "v1.36.3", Processors: 2, Begun: begun(), Scenarios: []result{replayed(t)}}
	text, err := r.encode()
	require.NoError(t, err)
	got, err := decode(text)
	require.NoError(t, err)
	again, err := got.encode()
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
	require.Equal(t, r.Scenarios[0].Measured, got.Scenarios[0].Measured)

	var fields map[string]any
	require.NoError(t, json.Unmarshal(text, &fields))
	first := fields["scenarios"].([]any)[0].(map[string]any)
	for _, name := range []string{
		"name", "seconds", "real", "sim", "replica_hours_ratio", "late_difference_pp",
		"measured", "within", "trace",
	} {
		require.Contains(t, first, name)
	}
	require.Nil(t, first["measured"].(map[string]any)["busy_at_saturation"], "unknown is null")
	require.Contains(t, first["measured"], "busy_at_saturation")
}

func TestReportsThatCannotBeSimulatedAnewAreRefused(t *testing.T) {
	for name, change := range map[string]func(*result){
		"of another length than the trace":  func(r *result) { r.Trace.Real = r.Trace.Real[1:] },
		"of no length":                      func(r *result) { r.Seconds = 0 },
		"of years":                          func(r *result) { r.Seconds = 1 << 40 },
		"with a start before its beginning": func(r *result) { r.Measured.StartSeconds = known(-1.0) },
		"with a capacity without bounds":    func(r *result) { r.Measured.CapacityPerReplica = known(1e300) },
		"with less than nothing arriving":   func(r *result) { r.Trace.Arrived[3] = -1 },
		"with arrivals of another length":   func(r *result) { r.Trace.Arrived = r.Trace.Arrived[1:] },
		"with an objective of the past":     func(r *result) { r.ObjectiveSeconds = -1 },
		"with polls out of order":           func(r *result) { r.Measured.Timetable.Polls = []float64{3, 2} },
		"with syncs after hours":            func(r *result) { r.Measured.Timetable.Syncs = []float64{3, longest + 1} },
	} {
		t.Run(name, func(t *testing.T) {
			one := replayed(t)
			change(&one)
			text, err := report{Scenarios: []result{one}}.encode()
			require.NoError(t, err)
			_, err = decode(text)
			require.ErrorIs(t, err, errReport)
		})
	}
	_, err := decode([]byte(`{"speed": 1}`))
	require.ErrorIs(t, err, errReport)
}

func FuzzDecode(f *testing.F) {
	text, err := report{Scenarios: []result{replayed(f)}}.encode()
	require.NoError(f, err)
	f.Add(text)
	f.Add([]byte(`{"scenarios":[{"name":"step","seconds":20}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := decode(text)
		if err != nil {
			return
		}
		if _, err := r.encode(); err != nil {
			t.Fatal(err)
		}
		for _, one := range r.Scenarios {
			if len(one.Trace.Real) != one.Seconds {
				t.Fatalf("%d replicas for %d seconds", len(one.Trace.Real), one.Seconds)
			}
		}
	})
}

func TestTheTableTellsWhatIsUnknown(t *testing.T) {
	one := replayed(t)
	one.Within = known(false)
	var out strings.Builder
	shown := []coverage{{CallMillis: known(20.0), Busy: known(0.98), OverheadMillis: known(0.25)}, {}}
	require.NoError(t, report{Pulsar: "4.0.8", Scenarios: []result{one, {Name: "nothing"}}, Coverage: shown}.table(&out))
	require.Regexp(t, `(?m)^ +20\.00 +0\.980 +0\.25$`, out.String())
	require.Regexp(t, `(?m)^ +- +- +-$`, out.String())
	require.Regexp(t, `(?m)^step +0\.\d{3} +0\.\d{3} \(0\.\d{3}\.\.0\.\d{3}\) .* NO$`, out.String())
	require.Regexp(t, `(?m)^nothing +(- +){10,}`, out.String())
	require.Regexp(t, `(?m)^step +20\.0 +- +2 +50\.0 `, out.String())
}

func TestAnEarlierReportIsSimulatedAnew(t *testing.T) {
	dir := t.TempDir()
	earlier := filepath.Join(dir, "earlier.json")
	one := replayed(t)
	one.Sim, one.SimLow, one.SimHigh, one.Within = score{}, score{}, score{}, nil
	one.ObjectiveSeconds = 31
	text, err := report{Pulsar: "4.0.8", Scenarios: []result{one}}.encode()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(earlier, text, 0o600))

	now := filepath.Join(dir, "made", "replay.json")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-again=" + earlier, "-out=" + now, "-plots=" + dir}, &out, io.Discard))
	text, err = os.ReadFile(now)
	require.NoError(t, err)
	got, err := decode(text)
	require.NoError(t, err)
	require.Equal(t, "4.0.8", got.Pulsar)
	require.Equal(t, one.Real, got.Scenarios[0].Real)
	require.InDelta(t, 31, got.Scenarios[0].ObjectiveSeconds, 0)
	require.NotNil(t, got.Scenarios[0].Sim.ReplicaHours)
	require.NotNil(t, got.Scenarios[0].Within)
	require.FileExists(t, filepath.Join(dir, "replay-step.html"))
}

func TestAPageIsWrittenOfEveryResult(t *testing.T) {
	for name, r := range map[string]result{
		"a whole result":         replayed(t),
		"one without anything":   {Name: "nothing"},
		"one that was not timed": {Name: "half", Seconds: 20, Trace: trace{Real: []float64{1}, SimLow: []float64{1, 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, r.page().Write(io.Discard))
			charts := r.page().Charts
			require.Len(t, charts, 3)
			require.Equal(t, page.EachSecond("real", r.Trace.RealBacklog), charts[1].Series[0])
			require.Equal(t, page.EachSecond("least", r.Trace.SimLow), charts[2].Series[2])
			require.Equal(t, page.EachSecond("real", r.Trace.Real), charts[2].Series[0])
		})
	}
}
