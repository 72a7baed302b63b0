// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func good() Instance {
	return Instance{
		Tenant: "t", Namespace: "n", Name: "f", Topics: []string{"persistent://t/n/in"},
		ServiceURL: "pulsar://127.0.0.1:1",
	}
}

func TestWhatWouldBeIgnoredIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		spoil       func(*Instance)
		light, java string // empty where it is not refused
	}{
		"no topics": {func(in *Instance) { in.Topics = nil }, "it needs one of them", "it needs topics"},
		"topics and a pattern": {
			func(in *Instance) { in.TopicPattern = "persistent://t/n/in.*" }, "it needs one of them", "it needs topics",
		},
		"a type that functions lack": {
			spoil: func(in *Instance) { in.SubscriptionType = "Exclusive" },
			light: `"Exclusive": it must be Shared, Failover or Key_Shared`,
		},
		"an asynchronous function": {
			spoil: func(in *Instance) { in.AsyncRequests = 2 }, light: "processes one message after another",
		},
		"an asynchronous function with an output": {
			func(in *Instance) { in.AsyncRequests, in.Output = 2, "out" }, "processes one message after another", "has none",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := good()
			test.spoil(&in)
			in = in.withDefaults()
			_, ofLight := options(in)
			_, ofJava := describe(in, FunctionClass, "")
			for want, err := range map[string]error{test.light: ofLight, test.java: ofJava} {
				if want == "" {
					require.NoError(t, err)
					continue
				}
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestInstanceTakesPulsarsDefaults(t *testing.T) {
	got := good().withDefaults()
	require.Equal(t, "t/n/f", got.Subscription)
	require.Equal(t, Shared, got.SubscriptionType)
	require.Equal(t, 1000, got.ReceiverQueueSize)
	require.Equal(t, time.Minute, got.RedeliverAfter)
}

func TestDetailsSpeakPulsarsEnums(t *testing.T) {
	for kind, want := range map[string]string{Shared: "SHARED", Failover: "FAILOVER", KeyShared: "KEY_SHARED"} {
		in := good()
		in.SubscriptionType = kind
		in.ServiceTime = 1500 * time.Microsecond
		config, err := configure(in, "127.0.0.1:1", "secret")
		require.NoError(t, err)
		text, err := describe(in.withDefaults(), FunctionClass, config)
		require.NoError(t, err)
		var got struct {
			UserConfig string
			Source     struct{ SubscriptionType, SubscriptionName string }
		}
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		require.Equal(t, want, got.Source.SubscriptionType)
		require.Equal(t, "t/n/f", got.Source.SubscriptionName)
		require.JSONEq(t, `{"collector":"127.0.0.1:1","token":"secret","serviceMicros":"1500","failEvery":"0"}`,
			got.UserConfig)
	}
}

// lateClock simulates a machine on which sleeps end late.
type lateClock struct {
	now  time.Time
	late time.Duration
}

func (c *lateClock) sleepUntil(due time.Time) {
	if due.After(c.now) {
		c.now = due.Add(c.late)
	}
}

func TestPacerKeepsTheRateOverLateSleeps(t *testing.T) {
	for name, test := range map[string]struct {
		service, late time.Duration
	}{
		"10 ms, sleeps 1 ms late":                {10 * time.Millisecond, time.Millisecond},
		"1 ms, sleeps 1 ms late":                 {time.Millisecond, time.Millisecond},
		"1 ms, sleeps 40 ms late":                {time.Millisecond, 40 * time.Millisecond},
		"20 microseconds, sleeps 100 times that": {20 * time.Microsecond, 2 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			clock := lateClock{now: time.Unix(1000, 0), late: test.late}
			var pace pacer
			begin := clock.now
			const n = 10_000
			for range n {
				clock.sleepUntil(pace.due(clock.now, clock.now, test.service))
			}
			require.InDelta(t, n*test.service, clock.now.Sub(begin), float64(debtMax+test.late))
		})
	}
}

func TestPacerDoesNotSaveUpWhileItIsIdle(t *testing.T) {
	var pace pacer
	now := time.Unix(1000, 0)
	require.Equal(t, now.Add(10*time.Millisecond), pace.due(now, now.Add(0), 10*time.Millisecond).Add(debtMax),
		"the first message may owe at most debtMax")
	later := now.Add(time.Minute)
	require.Equal(t, later.Add(10*time.Millisecond), pace.due(later.Add(-time.Second), later, 10*time.Millisecond),
		"a message that was waited for costs its whole time")
}

func TestPacerForgivesALongStall(t *testing.T) {
	var pace pacer
	now := time.Unix(1000, 0)
	pace.due(now.Add(-time.Second), now, time.Millisecond)
	stalled := now.Add(10 * time.Second)
	require.Equal(t, stalled.Add(time.Millisecond-debtMax), pace.due(stalled, stalled, time.Millisecond))
}

func TestParseReadsAReport(t *testing.T) {
	got, err := parse("1795266353803 1795266354803 80123 17")
	require.NoError(t, err)
	require.Equal(t,
		Completion{
			Published: time.UnixMilli(1795266353803), Done: time.UnixMilli(1795266354803),
			Took: 80123 * time.Microsecond, Sequence: 17,
		}, got)
}

func FuzzParse(f *testing.F) {
	for _, line := range []string{
		"1 2 3 4", "", "1 2 3", "1  2 3", "a b c d", "1 2 3 -4", "1 2 99999999999 4",
		"99999999999999999999 1 1 1",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, err := parse(line)
		if err != nil {
			require.Zero(t, got)
			require.ErrorContains(t, err, "reading the report")
		}
	})
}
