// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// scraped returns a scrape some seconds after the first one of a test.
func scraped(seconds int, lines ...string) scrape {
	return newScrape(time.Unix(1_800_000_000+int64(seconds), 0), []byte(strings.Join(lines, "\n")))
}

func TestAScrapeHasTheSamplesOfAllLabels(t *testing.T) {
	s := scraped(0, `# HELP rest_client_requests_total Number of HTTP requests.`,
		`rest_client_requests_total{code="200",host="[::1]:6443"} 40`, `rest_client_requests_total{code="409"} 2`,
		`pulsar_autoscaler_policy_limited{by="two words"} 1`, `go_memstats_next_gc_bytes 3e+08`, `go_gc_gogc_percent 50`, ``)
	require.InDelta(t, 42, s.Sum(apiRequests), 1e-9)
	require.Equal(t, []float64{1}, s.Metrics["pulsar_autoscaler_policy_limited"])
	require.InDelta(t, 2e8, s.liveHeap(), 1e-3)
	require.Zero(t, s.Sum("missing"))
}

func TestARowHasRatesAndHighestValuesOfTheSteadyState(t *testing.T) {
	at := func(seconds, megabytes, cpu, writes int) scrape {
		return scraped(seconds, fmt.Sprintf("%s %d", resident, megabytes*mb), fmt.Sprintf("%s %d", cpuSeconds, cpu),
			fmt.Sprintf("%s %d", statusWrites, writes))
	}
	r := row{Policies: 1000}
	r.setSteady([]scrape{at(0, 130, 0, 0)}, []scrape{at(100, 90, 50, 600), at(115, 110, 52, 700), at(140, 95, 54, 1000)})
	require.InDelta(t, 110, r.RSSMB, 1e-9)
	require.InDelta(t, 130, r.PeakRSSMB, 1e-9)
	require.InDelta(t, 0.1, r.CPUCores, 1e-9)
	require.InDelta(t, 10, r.StatusWritesPerSecond, 1e-9)
	require.InDelta(t, 40, r.SteadySeconds, 1e-9)
}

func TestAgesCountPoliciesWithoutOneAsOld(t *testing.T) {
	one := scraped(0, readingAge+`{policy="a"} 3`, readingAge+`{policy="b"} 1`, decisionAge+`{policy="a"} 4`)
	r := row{Policies: 2}
	r.setAges([]scrape{one, one})
	require.InDelta(t, 1, *r.ReadingAgeP50Seconds, 1e-9)
	require.InDelta(t, 3, *r.ReadingAgeP99Seconds, 1e-9)
	require.InDelta(t, 4, *r.DecisionAgeP50Seconds, 1e-9)
	require.Nil(t, r.DecisionAgeP99Seconds)
	var out bytes.Buffer
	require.NoError(t, report{Kubernetes: "v1.2.3", CPUs: 2, Rows: []row{r}}.writeTable(&out))
	require.Contains(t, out.String(), "1.0, 3.0")
	require.Contains(t, out.String(), "4.0, -")
}

func TestABurstCountsFromTheFirstDecisionForMoreToTheFirstReplica(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(1_800_000_000+int64(seconds), 0) }
	policy := func(name string, desired int32) *v1alpha1.AutoscalingPolicy {
		p := &v1alpha1.AutoscalingPolicy{}
		p.Name, p.Status.DesiredReplicas = name, &desired
		return p
	}
	b := newBurst([]string{"by-hpa", "direct", "waits", "other"})
	b.scaled("by-hpa", replicas+2, at(0))
	b.saw(policy("by-hpa", replicas+2), at(0))
	b.begin([]string{"by-hpa", "direct", "waits"}, at(0))
	b.saw(policy("by-hpa", replicas+2), at(1)) // as before
	b.saw(policy("by-hpa", replicas+8), at(2))
	b.saw(policy("by-hpa", replicas+9), at(8))
	b.scaled("by-hpa", replicas+8, at(9))
	b.scaled("direct", replicas+5, at(3)) // the status follows
	direct := policy("direct", replicas+5)
	direct.Status.Actuator = &v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorDirect}
	b.saw(direct, at(4))
	b.saw(policy("waits", replicas+5), at(4))
	b.saw(policy("other", replicas+5), at(4))
	b.scaled("other", replicas+5, at(5))
	fromDecision, fromLoad := b.waits()
	require.Equal(t, []time.Duration{0, 7 * time.Second}, fromDecision)
	require.Equal(t, []time.Duration{3 * time.Second, 9 * time.Second}, fromLoad)
	require.Equal(t, 1, b.directs())
}

func TestEachPolicyGetsAnotherLoadAndAnotherPod(t *testing.T) {
	for _, policies := range []int{1, 2, 3, 999, 1000, 7919, 10000} {
		loads, pods := map[int]int{}, map[int]int{}
		for number := range 2 * policies {
			if policy, load := change(number, policies); load {
				loads[policy]++
			} else {
				pods[policy]++
			}
		}
		for policy := range policies {
			require.Equal(t, []int{1, 1}, []int{loads[policy], pods[policy]}, "policy %d of %d", policy, policies)
		}
	}
}

func TestRunRefusesWhatMakesNoSense(t *testing.T) {
	for flags, want := range map[string]string{
		"-burst=1001": "-burst is 1001: it must be from 0 to the number of policies",
		"-policies=0": "each must be from 1 to 10000", "-policies=1000,": `-policies has ""`,
		"-steady=1s": "-steady 1s: they must be from 0 to 20, and at least 0s and 30s", "-clients=3": "-clients",
	} {
		require.ErrorContains(t, run(t.Context(), []string{flags}, io.Discard, io.Discard), want)
	}
	require.ErrorIs(t, run(t.Context(), []string{"-h"}, io.Discard, io.Discard), flag.ErrHelp)
}
