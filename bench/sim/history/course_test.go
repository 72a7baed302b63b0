// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hour is the mean of the known seconds of an hour.
func (tr truth) hour(end int, value func(second int) float64) (mean float64, known bool) {
	seconds, sum := 0, 0.0
	for second := max(0, end-3600); second < min(end, len(tr.late)); second++ {
		if !tr.unknown(second) {
			seconds, sum = seconds+1, sum+value(second)
		}
	}
	return sum / float64(seconds), seconds > 0
}

// sums are the series that Prometheus would compute of all policies.
func sums(all []truth) map[string]func(int) float64 {
	// of has the sum of an hour's figure.
	of := func(figure func(tr truth, end int) (float64, bool)) func(int) float64 {
		return func(minute int) float64 {
			sum, some := 0.0, false
			for _, tr := range all {
				if value, known := figure(tr, minute*60); known {
					sum, some = sum+value, true
				}
			}
			if !some {
				return math.NaN()
			}
			return sum
		}
	}
	load := func(tr truth, end int) (float64, bool) {
		return tr.hour(end, func(s int) float64 { return tr.load[s] })
	}
	return map[string]func(int) float64{
		"avg_over_time(" + policyPrefix + "publish_rate": of(load),
		"count_over_time(" + policyPrefix + "publish_rate": of(func(tr truth, end int) (float64, bool) {
			_, known := load(tr, end)
			return 1, known
		}),
		"max_over_time(sum(max by (namespace, policy) (" + policyPrefix + "ready_messages": func(minute int) float64 {
			return largestBacklog(all, minute*60)
		},
	}
}

// largestBacklog of all known policies together in an hour.
func largestBacklog(all []truth, end int) float64 {
	largest := math.NaN()
	for second := end - 3600; second < end; second++ {
		sum, some := 0.0, false
		for _, tr := range all {
			if second >= 0 && second < len(tr.backlog) && !tr.unknown(second) {
				sum, some = sum+float64(tr.backlog[second]), true
			}
		}
		if some && !(sum <= largest) {
			largest = sum
		}
	}
	return largest
}

// requireCourse compares the course with the truth in each hour, in some of which a policy is unknown.
func requireCourse(t *testing.T, all []truth, course []Step) {
	t.Helper()
	require.Len(t, course, len(all[0].late)/3600)
	partly := 0
	for n, step := range course {
		require.Equal(t, begin.Add(time.Duration(n)*time.Hour), step.Start)
		var scaled, replicas, peak, load, withLoad float64
		for _, tr := range all {
			mean, known := tr.hour((n+1)*3600, func(s int) float64 { return float64(tr.replicas[s]) })
			if !known {
				continue
			}
			if !tr.recommend(n * 3600) {
				day := tr.days(n/24, n/24+1, false)
				scaled, replicas, peak = scaled+1, replicas+mean, peak+day.PeakSeconds/day.RunningSeconds
			}
			rate, _ := tr.hour((n+1)*3600, func(s int) float64 { return tr.load[s] })
			load, withLoad = load+rate, withLoad+1
		}
		if withLoad < float64(len(all)) {
			partly++
		}
		for name, of := range map[string]struct {
			got  *float64
			want float64
		}{
			"scaled": {step.Scaled, scaled}, "replicas": {step.Replicas, replicas}, "peak": {step.Peak, peak},
			"load": {step.Load, load}, "with load": {step.WithLoad, withLoad},
			"backlog": {step.Backlog, largestBacklog(all, (n+1)*3600)},
		} {
			require.NotNil(t, of.got, "%s in hour %d", name, n)
			require.InDelta(t, of.want, *of.got, 1e-6, "%s in hour %d", name, n)
		}
	}
	require.Positive(t, partly)
}
