// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// recorded are the inputs of a life with the decision on each, some with Failover, with pods and with minReplicas 0.
func recorded(seed uint64, polls int) (inputs []policy.Input, decisions []policy.Decision, states []policy.State) {
	l := newLife(seed)
	r := rand.New(rand.NewPCG(seed, 3))
	l.in.Spec.MinReplicas = new(r.Int32N(2))
	for range polls {
		in := l.next()
		if seed%3 == 0 && in.Unknown == nil {
			in = partitioned(rand.New(rand.NewPCG(seed, 2)), in, 8)
		}
		in.Pods = &policy.Pods{
			Ready: 3, Unready: r.Int32N(3), UnreadySince: in.Now.Add(-time.Duration(r.IntN(600)) * time.Second),
			Updating: r.IntN(30) == 0,
		}
		var decision policy.Decision
		decision, l.state = policy.Decide(in, l.state)
		l.in.CurrentReplicas = decision.Replicas
		inputs, decisions, states = append(inputs, in), append(decisions, decision), append(states, l.state)
	}
	return inputs, decisions, states
}

func TestTheSameInputsGiveTheSameDecisions(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		inputs, decisions, states := recorded(seed, 200)
		state := policy.State{}
		for i, in := range inputs {
			var decision policy.Decision
			decision, state = policy.Decide(in, state)
			require.Equal(t, decisions[i], decision)
			require.Equal(t, states[i], state)
		}
	}
}

// copied is a value that shares nothing with another. Slices have spare capacity, as after an append, so that writes
// into it are found.
func copied(v reflect.Value) reflect.Value {
	after := reflect.New(v.Type()).Elem()
	after.Set(v)      // unexported fields too
	switch v.Kind() { //nolint:exhaustive // the others hold nothing
	case reflect.Pointer:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*time.Location]() {
			after.Set(reflect.New(v.Type().Elem()))
			after.Elem().Set(copied(v.Elem()))
		}
	case reflect.Slice:
		if v.IsNil() {
			return after
		}
		after.Set(reflect.MakeSlice(v.Type(), v.Len()+4, v.Len()+4).Slice(0, v.Len()))
		for i := range v.Len() {
			after.Index(i).Set(copied(v.Index(i)))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				after.Field(i).Set(copied(v.Field(i)))
			}
		}
	}
	return after
}

// roomy are the slices of a state and an input with their spare capacity.
func roomy(in policy.Input, state policy.State) []any {
	past := []policy.RateAt(nil)
	if state.Arrivals != nil {
		past = state.Arrivals.Past
	}
	return []any{
		state.Recommendations[:cap(state.Recommendations)], past[:cap(past)], in.Partitions[:cap(in.Partitions)],
	}
}

func TestDecideDoesNotChangeItsInput(t *testing.T) {
	t.Parallel()
	deep := func(in policy.Input, state policy.State) (policy.Input, policy.State) {
		copiedIn, _ := copied(reflect.ValueOf(in)).Interface().(policy.Input)
		copiedState, _ := copied(reflect.ValueOf(state)).Interface().(policy.State)
		return copiedIn, copiedState
	}
	for seed := range uint64(12) {
		inputs, _, states := recorded(seed, 150)
		for i := 1; i < len(inputs); i++ {
			in, state := deep(inputs[i], states[i-1])
			wantIn, want := deep(inputs[i], states[i-1])
			_, first := policy.Decide(in, state)
			require.Equal(t, want, state)
			require.Equal(t, wantIn, in)
			require.Equal(t, roomy(wantIn, want), roomy(in, state), "beyond their ends")
			_, kept := deep(in, first)
			policy.Decide(in, state)
			policy.Decide(in, first)
			require.Equal(t, kept, first, "no decision writes to the result of another")
		}
	}
}

func TestTheOrderOfPartitionsMattersToNoNumber(t *testing.T) {
	t.Parallel()
	eachInput(9, func(r *rand.Rand, in policy.Input, state policy.State) {
		want, _ := policy.Decide(in, state)
		in.Partitions = append([]backlog.PartitionReading(nil), in.Partitions...)
		r.Shuffle(len(in.Partitions),
			func(i, j int) { in.Partitions[i], in.Partitions[j] = in.Partitions[j], in.Partitions[i] })
		have, _ := policy.Decide(in, state)
		require.Equal(t, want.Replicas, have.Replicas)
	})
}
