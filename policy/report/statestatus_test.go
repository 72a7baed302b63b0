// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// written is the status after a decision with this state.
func written(t *testing.T, state policy.State) v1alpha1.AutoscalingPolicyStatus {
	t.Helper()
	in := input(3, reading(100, 500))
	decision, _ := policy.Decide(in, known())
	status := statusOf(v1alpha1.AutoscalingPolicyStatus{}, world(),
		&decided{Decision: decision, State: state, Reading: in.Reading})
	return status
}

// known is a state in which 3 replicas suffice for 500/s.
func known() policy.State { return policy.State{Arrivals: arrivals(500), Capacity: learned(250)} }

func TestAStatusCarriesTheStateToTheNextProcess(t *testing.T) {
	state := learnedState(t)
	state.Arrivals.Past[0].At, state.Arrivals.Past[1].At = noon().Add(-20*time.Second), noon().Add(-10*time.Second)
	status := written(t, state)
	require.NotEmpty(t, status.WorkingCheckpoint)
	now := noon().Add(3 * time.Minute) // the times of the state are before it
	resumed, err := policy.Resume(status.WorkingCheckpoint, 40, now)
	require.NoError(t, err)
	require.Equal(t, state.Capacity, resumed.Capacity)
	require.Equal(t, state.Plateau, resumed.Plateau)
	require.Equal(t, state.LearnedAt, resumed.LearnedAt, "values that decay do so for the time between")
	require.InDelta(t, state.Arrivals.Rise, resumed.Arrivals.Rise, 1e-9)
	require.Equal(t, []policy.ReplicasAt{
		state.Recommendations[0], state.Recommendations[1], {At: now, Replicas: 40},
	}, resumed.Recommendations, "those that were larger stay in force, and the present replicas are held")
}

func TestTheRatesOfAMomentAgoAreResumed(t *testing.T) {
	state := learnedState(t)
	state.Arrivals.Past[0].At, state.Arrivals.Past[1].At = noon().Add(-10*time.Second), noon()
	resumed, err := policy.Resume(written(t, state).WorkingCheckpoint, 40, noon().Add(5*time.Second))
	require.NoError(t, err)
	require.Equal(t, state.Arrivals.Past, resumed.Arrivals.Past)
}

func TestAClockThatIsBehindHoldsNothingForLonger(t *testing.T) {
	state := learnedState(t) // of noon, resumed by a clock that has it a day before
	now := noon().Add(-24 * time.Hour)
	resumed, err := policy.Resume(written(t, state).WorkingCheckpoint, 1, now)
	require.NoError(t, err)
	require.Equal(t, now, resumed.LearnedAt)
	require.Equal(t, now, resumed.Capacity.LearnedAt)
	require.Equal(t, now, resumed.Plateau.Since)
	require.Equal(t, now, resumed.Plateau.Seen.From)
	in := input(40, reading(0, 1))
	in.Spec.MaxReplicas = 100
	resumed.Plateau, resumed.Decided, resumed.Start = policy.Plateau{}, policy.Decided{}, policy.Start{}
	for second := 0; second <= 130; second += 10 {
		in.Now = now.Add(time.Duration(second) * time.Second)
		in.Reading.At = in.Now
		var decision policy.Decision
		decision, resumed = policy.Decide(in, resumed)
		if second > 120 {
			require.Less(t, decision.Replicas, int32(40))
		}
	}
}

func TestAStateCausesAWriteOnlyIfItTakesLongToLearn(t *testing.T) {
	quiet := policy.State{Arrivals: arrivals(500), Capacity: learned(100)}
	capped := quiet
	capped.Plateau = policy.Plateau{
		Stage: policy.Limited, Replicas: 5, Each: 100, Reference: policy.Output{Replicas: 8, Processed: 500},
		Since: noon(), Pause: 10 * time.Minute,
	}
	lower := capped
	lower.Plateau.Replicas = 4
	older := capped
	older.Plateau.Since, older.Plateau.Pause, older.ReadAt = noon().Add(
		-time.Minute), time.Hour, noon().Add(time.Minute)
	later := quiet
	later.Arrivals, later.ReadAt = arrivals(600), noon().Add(time.Minute)
	later.Recommendations = []policy.ReplicasAt{{At: noon(), Replicas: 7}}
	absent := func(s v1alpha1.AutoscalingPolicyStatus) v1alpha1.AutoscalingPolicyStatus {
		s.WorkingCheckpoint = ""
		return s
	}
	tests := map[string]struct {
		before, after v1alpha1.AutoscalingPolicyStatus
		want          bool
	}{
		"rates and recommendations moved": {written(t, quiet), written(t, later), false},
		"no status was written before":    {absent(written(t, quiet)), written(t, quiet), false},
		"a ceiling was found":             {written(t, quiet), written(t, capped), true},
		"a ceiling was found at once":     {absent(written(t, quiet)), written(t, capped), true},
		"a ceiling was lifted":            {written(t, capped), written(t, quiet), true},
		"a ceiling was set lower":         {written(t, capped), written(t, lower), true},
		"a ceiling lasts":                 {written(t, capped), written(t, older), false},
		"another version wrote the last status": {func() v1alpha1.AutoscalingPolicyStatus {
			s := written(t, quiet)
			s.WorkingCheckpoint = base64.StdEncoding.EncodeToString([]byte(`{"v":9,"plateau":"flat"}`))
			return s
		}(), written(t, quiet), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, statusDue(test.before, test.after, noon().Add(time.Second)))
		})
	}
}

func TestAStateStaysWhereNothingWasDecided(t *testing.T) {
	before := written(t, learnedState(t))
	w := world()
	w.Target = nil
	w.Violation = plan.Check(w.Subject, w.Autoscalers)
	require.Equal(t, before.WorkingCheckpoint, statusOf(before, w, nil).WorkingCheckpoint)
}

func TestACoverageOfNearlyNothingIsShownAsOnePercent(t *testing.T) {
	c := learned(100)
	c.Coverage = 0.001
	status := written(t, policy.State{Capacity: c})
	require.Equal(t, int32(1), *status.Capacity.MeasuredBusyPercent, "the API's minimum")
}

func TestAStateIsRenewedWithEveryWriteAndLeftAloneBetween(t *testing.T) {
	before := written(t, policy.State{Arrivals: arrivals(500), Capacity: learned(100)})
	tests := map[string]struct {
		after   time.Duration
		ready   float64
		renewed bool
	}{
		"no write":               {time.Second, 100, false},
		"another decision":       {time.Second, 900_000, true},
		"messages of 0.1 s more": {61 * time.Second, 150, false},
		"messages of 1.1 s more": {61 * time.Second, 650, true},
		"a heartbeat":            {5 * time.Minute, 100, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := world()
			o.Now = noon().Add(test.after)
			in := input(3, reading(test.ready, 500))
			in.Now, in.Reading.Consumers = o.Now, backlog.Known(3)
			decision, _ := policy.Decide(in, known())
			state := policy.State{ReadAt: o.Now, Arrivals: arrivals(501), Capacity: learned(100)}
			after := statusOf(before, o, &decided{Decision: decision, State: state, Reading: in.Reading})
			require.Equal(t, test.renewed, statusDue(before, after, o.Now))
			text, err := state.Encode()
			require.NoError(t, err)
			if test.renewed {
				require.Equal(t, text, after.WorkingCheckpoint)
			} else {
				require.Equal(t, before.WorkingCheckpoint, after.WorkingCheckpoint)
			}
		})
	}
}

func TestAHeartbeatWritesTheStateOfNow(t *testing.T) {
	before := written(t, policy.State{ReadAt: noon(), Arrivals: arrivals(500)})
	after := written(t, policy.State{ReadAt: noon().Add(5 * time.Minute), Arrivals: arrivals(501)})
	after.Decision.Time = metav1.NewTime(noon().Add(5 * time.Minute))
	require.True(t, statusDue(before, after, noon().Add(5*time.Minute)))
	require.NotEqual(t, before.WorkingCheckpoint, after.WorkingCheckpoint)
	resumed, err := policy.Resume(after.WorkingCheckpoint, 3, noon().Add(5*time.Minute))
	require.NoError(t, err)
	require.InDelta(t, 501, resumed.Arrivals.Rate, 1e-9)
}
