// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// source makes values of bytes, and zeros if there are no more.
type source struct{ left []byte }

func (s *source) next() uint64 {
	var eight [8]byte
	s.left = s.left[copy(eight[:min(4, len(s.left))], s.left):]
	return binary.LittleEndian.Uint64(eight[:])
}

func (s *source) below(n uint64) int64 { return int64(s.next() % n) }

// quantity is 0, whole, a fraction, tiny or huge, and never negative.
func (s *source) quantity() float64 {
	switch kind := s.next(); kind % 8 {
	case 0:
		return 0
	case 1:
		return float64(kind % 10)
	case 2:
		return math.Exp2(float64(s.below(200)) - 150)
	case 3:
		return math.Exp2(float64(s.below(110)))
	default:
		return float64(s.next()) / 100
	}
}

func (s *source) measurement() backlog.Measurement {
	if s.below(6) == 0 {
		return backlog.Unknown(backlog.ErrPartial)
	}
	return backlog.Known(s.quantity())
}

// around is a time near noon, at most a day off.
func (s *source) around() time.Time {
	return noon().Add(time.Duration(s.below(2*86_400)-86_400) * time.Second)
}

// set sets every part of a value.
func (s *source) set(v reflect.Value) {
	switch value := v.Addr().Interface().(type) {
	case *time.Time:
		if s.below(3) > 0 {
			*value = s.around()
		}
		return
	case *time.Duration:
		*value = time.Duration(s.below(7200)) * time.Second
		return
	case *backlog.Measurement:
		*value = s.measurement()
		return
	case *error:
		if s.below(4) == 0 {
			*value = errors.New("connection refused")
		}
		return
	}
	switch v.Kind() { //nolint:exhaustive // texts stay empty
	case reflect.Bool:
		v.SetBool(s.below(2) == 0)
	case reflect.Float64:
		v.SetFloat(s.quantity())
	case reflect.Int8:
		v.SetInt(s.below(3) - 1)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(s.below([]uint64{3, 50, 1_000_000}[s.below(3)]))
	case reflect.Pointer:
		if s.below(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			s.set(v.Elem())
		}
	case reflect.Slice:
		n := int(s.below(6))
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			s.set(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				s.set(v.Field(i))
			}
		}
	}
}

// input is any input, for a spec that the CRD admits.
func (s *source) input() policy.Input {
	in := policy.Input{Spec: spec(), Now: s.around(), PollInterval: time.Duration(s.below(40)) * time.Second}
	in.Spec.MinReplicas = new(int32(s.below(5)))
	in.Spec.MaxReplicas = max(1, *in.Spec.MinReplicas+int32(s.below(2000)))
	in.Spec.LatencyObjective.Duration = time.Duration(s.below(3600)) * time.Second
	window := int32(s.below(3600))
	in.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{StabilizationWindowSeconds: &window}}
	all := []v1alpha1.Strategy{
		{Type: v1alpha1.StrategyCapacity}, backlogStrategy(1 + s.below(1000)), rateStrategy("1m"), utilizationStrategy(1 +
			int32(s.below(100))),
	}
	first := s.below(4)
	in.Spec.Strategies = all[first : first+1+s.below(uint64(4-first))]
	in.CurrentReplicas = int32(s.below([]uint64{3, 100, 10_000}[s.below(3)]))
	if s.below(10) == 0 {
		in.Unknown = backlog.ErrStale
	}
	s.set(reflect.ValueOf(&in.Reading).Elem())
	in.Reading.Type = []backlog.SubscriptionType{
		backlog.Shared, backlog.KeyShared, backlog.Failover, backlog.Exclusive,
		backlog.NoType,
	}[s.below(5)]
	s.set(reflect.ValueOf(&in.Partitions).Elem())
	for i := range in.Partitions {
		in.Partitions[i].Index = in.Partitions[i].Index%300 - 1
	}
	s.set(reflect.ValueOf(&in.Pods).Elem())
	return in
}

func FuzzDecide(f *testing.F) {
	r := rand.New(rand.NewPCG(71, 72))
	for range 50 {
		bytes := make([]byte, 2000)
		for i := range bytes {
			bytes[i] = byte(r.UintN(256))
		}
		f.Add(bytes)
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		s := &source{left: bytes}
		var arbitrary policy.State
		s.set(reflect.ValueOf(&arbitrary).Elem())
		state := policy.State{}
		if text, err := arbitrary.Encode(); err == nil { // no decision and no status has an impossible value
			state, err = policy.DecodeState(text, noon().AddDate(1, 0, 0))
			require.NoError(t, err)
		}
		for range 3 {
			in := s.input()
			decision, after := policy.Decide(in, state)
			require.GreaterOrEqual(t, decision.Replicas, *in.Spec.MinReplicas)
			require.LessOrEqual(t, decision.Replicas, in.Spec.MaxReplicas)
			require.GreaterOrEqual(t, decision.Wanted, int32(0))
			require.NotContains(t, decision.Equation, "NaN")
			if seconds, err := decision.Wait.Value(); err == nil {
				require.False(t, math.IsNaN(seconds), "%v", decision.Wait)
			}
			if in.Unknown != nil || in.Now.Sub(in.Reading.At) > policy.FreshPolls*in.PollInterval {
				kept := in.CurrentReplicas
				if d := state.Decided; d.Replicas < kept && kept <= d.From { // a scale-down that was decided before
					kept = d.Replicas
				}
				require.GreaterOrEqual(t, decision.Replicas, min(kept, in.Spec.MaxReplicas))
			}
			_, err := after.Encode()
			require.NoError(t, err)
			state = after
		}
	})
}
