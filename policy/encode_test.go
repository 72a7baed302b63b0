// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/base64"
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// opaque is a checkpoint with this JSON.
func opaque(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func TestAStateThatWasWrittenAndReadDecidesTheSame(t *testing.T) {
	decisions, differing, short, ceilings, bytes := 0, 0, 0, 0, 0
	for seed := range uint64(40) {
		l := newLife(seed)
		for range 100 {
			l.step()
			text, err := l.state.Encode()
			require.NoError(t, err)
			require.Less(t, len(text), 2560)
			read, err := policy.DecodeState(text, noon().AddDate(1, 0, 0))
			require.NoError(t, err, text)
			again, err := read.Encode()
			require.NoError(t, err)
			require.Equal(t, text, again, "a rounded value does not change")

			in := l.next()
			want, wantState := policy.Decide(in, l.state)
			have, haveState := policy.Decide(in, read)
			require.GreaterOrEqual(t, have.Replicas, want.Replicas-1, "%+v and %+v", want, have)
			if len(l.state.Recommendations) <= 12 { // longer ones hold replicas longer
				require.LessOrEqual(t, have.Replicas, want.Replicas+1, "%+v and %+v", want, have)
			}
			require.Equal(t, wantState.Plateau.Ceiling(), haveState.Plateau.Ceiling())
			require.Equal(t, wantState.Plateau.Stage, haveState.Plateau.Stage)
			decisions++
			bytes += base64.StdEncoding.DecodedLen(len(text))
			if want.Replicas != have.Replicas {
				differing++
				if len(l.state.Recommendations) <= 12 {
					short++
				}
			}
			if wantState.Plateau.Ceiling() > 0 {
				ceilings++
			}
			l.state, l.in.CurrentReplicas = wantState, want.Replicas
		}
	}
	require.Less(t, bytes/decisions, 1200, "on average")
	t.Logf("%d of %d decisions differ, %d of them by rounding, %d bytes on average", differing, decisions, short,
		bytes/decisions)
	require.LessOrEqual(t, short, decisions/500, "of %d decisions", decisions)
	require.LessOrEqual(t, differing, decisions/250, "of %d decisions, with windows that are thinned out", decisions)
	require.Positive(t, ceilings, "some of the lives have a plateau")
}

// fill sets every part of a state to a non-zero value.
func fill(v reflect.Value, n *int) {
	*n++
	switch value := v.Addr().Interface().(type) {
	case *time.Time:
		*value = noon().Add(time.Duration(*n) * time.Second)
		return
	case *time.Duration:
		*value = time.Duration(*n) * time.Minute
		return
	}
	switch v.Kind() { //nolint:exhaustive // the others fail when they are encoded
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(strconv.Itoa(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) / 100)
	case reflect.Int, reflect.Int8, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	}
}

// complete is a state in which every field is set, including new ones.
func complete() policy.State {
	var state policy.State
	n := 1 // the file keeps its numbers: version 1 once had another field before the first
	fill(reflect.ValueOf(&state).Elem(), &n)
	state.Plateau.Stage, state.Plateau.Reference.Replicas = policy.Limited, 8
	return state
}

// The file is from the first version of the encoding. If it differs because a field was added, rewrite it with -update;
// if a field has another meaning, raise the version.
func TestTheEncodingIsStillThatOfVersion1(t *testing.T) {
	path := filepath.Join("testdata", "state-v1.json")
	checkpoint, err := complete().Encode()
	require.NoError(t, err)
	text, err := base64.StdEncoding.DecodeString(checkpoint)
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, append(text, '\n'), 0o600))
	}
	golden, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(golden)), strings.TrimSpace(string(text)))
	state, err := policy.DecodeState(opaque(string(golden)), noon().AddDate(1, 0, 0))
	require.NoError(t, err)
	require.Equal(t, complete(), state)
}

// TestAnEarlierCheckpointIsRead: fields that ended keep their names, so that no later one has another meaning.
func TestAnEarlierCheckpointIsRead(t *testing.T) {
	const at = `"2026-11-21T12:00:00Z"`
	state, err := policy.DecodeState(opaque(`{"v":1,"arrivals":{"fast":2,"calm":3},"floor":{"messages":1,"idle":2},`+
		`"zero":{"backoff":1,"until":`+at+`},"plateau":{"quiet":`+at+`,"falseAt":`+at+`},"surplus":{"since":`+at+
		`},"contradiction":{"since":`+at+`}}`), noon())
	require.NoError(t, err)
	require.Equal(t, policy.State{Arrivals: &policy.Arrivals{Rate: 2}, Floor: policy.Floor{Messages: 1}}, state)
}

func TestALongReactionKeepsFewRates(t *testing.T) {
	state := policy.State{}
	for i := range 120 {
		in := input(1, reading(0, 100))
		in.Now, in.Lag = noon().Add(time.Duration(i)*10*time.Second), policy.LongestSync
		in.Reading.At = in.Now
		_, state = policy.Decide(in, state)
	}
	require.LessOrEqual(t, len(state.Arrivals.Past), 11)
}

func TestAStateFromElsewhereIsRefused(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"nothing":                        {"", "unexpected EOF"},
		"no object":                      {"[]", "unmarshal JSON array into Go"},
		"no version":                     {"{}", `version "" is not 1`},
		"something behind it":            {`{"v":1}{"v":1}`, "after top-level value"},
		"a negative rate":                {`{"v":1,"arrivals":{"fast":-1}}`, "-1 is no number from 0"},
		"a rate without bounds":          {`{"v":1,"arrivals":{"fast":1e16}}`, "1e16 is no number from 0"},
		"a rate that is no number":       {`{"v":1,"arrivals":{"fast":1e999}}`, "1e999 is no number"},
		"a negative number of replicas":  {`{"v":1,"decided":{"n":-1}}`, "-1 is no number from 0"},
		"more replicas than can be":      {`{"v":1,"decided":{"n":2000000}}`, "2000000 is no number from 0"},
		"a time that is none":            {`{"v":1,"read":"noon"}`, "cannot parse"},
		"a pause of a year":              {`{"v":1,"plateau":{"block":31536000000000000}}`, "31536000000000000 is no number"},
		"a capacity of nothing":          {`{"v":1,"capacity":{"var":1}}`, "a replica processes 0 messages per second"},
		"a coverage of more than all":    {`{"v":1,"capacity":{"rate":1,"cover":1.5}}`, "the coverage is 1.5"},
		"an impossible variance":         {`{"v":1,"capacity":{"rate":1,"var":100000}}`, "the variance is 100000"},
		"a verification of no replicas":  {`{"v":1,"plateau":{"stage":"verifying","each":1}}`, "0 replicas that each process 1"},
		"a ceiling that nothing showed":  {`{"v":1,"plateau":{"stage":"limited","replicas":3}}`, "0 replicas that each process 0"},
		"a stage that is none":           {`{"v":1,"plateau":{"stage":"guessing","each":1}}`, "the plateau is guessing"},
		"more bytes than a status keeps": {`{"v":1,` + strings.Repeat(" ", 6144) + `"n":1}`, "at most 6144 are read"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state, err := policy.DecodeState(opaque(test.text), noon().AddDate(1, 0, 0))
			require.ErrorContains(t, err, test.want)
			require.Equal(t, policy.State{}, state)
		})
	}
}

func TestACheckpointIsOpaque(t *testing.T) {
	text, err := complete().Encode()
	require.NoError(t, err)
	require.Regexp(t, "^[A-Za-z0-9+/]+=*$", text)
	_, err = policy.DecodeState(`{"v":1}`, noon())
	require.ErrorContains(t, err, "decoding the checkpoint: illegal base64 data")
	require.Zero(t, policy.CeilingIn(`{"v":1,"plateau":{"stage":"limited","replicas":3}}`))
}

// TestACheckpointIsReadAsFarAsItIsUnderstood: after a rollback it is that of a newer controller.
func TestACheckpointIsReadAsFarAsItIsUnderstood(t *testing.T) {
	const at = `"read":"2026-11-21T12:00:00Z"`
	known := policy.State{ReadAt: noon(), Capacity: &policy.LearnedCapacity{MessagesPerSecond: 5, Variance: 0.01}}
	for name, test := range map[string]struct{ text, leftOut string }{
		"a field of a newer controller": {`{"v":1,"mood":3,"capacity":{"rate":5,"var":0.01},` + at + `}`, ""},
		"a field further down":          {`{"v":1,"capacity":{"rate":5,"var":0.01,"mood":3},` + at + `}`, ""},
		"the next version": {
			`{"v":2,"capacity":{"rate":5,"var":0.01},` + at + `}`, `version "2" is not 1`,
		},
		"a part that became something else": {
			`{"v":1,"plateau":[1],"capacity":{"rate":5,"var":0.01},` + at + `}`, "unmarshal JSON array into Go",
		},
		"a part with a number that none has": {
			`{"v":1,"arrivals":{"fast":-1},"capacity":{"rate":5,"var":0.01},` + at + `}`, "-1 is no number",
		},
	} {
		t.Run(name, func(t *testing.T) {
			state, err := policy.DecodeState(opaque(test.text), noon().AddDate(1, 0, 0))
			require.Equal(t, known, state)
			if test.leftOut == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.leftOut)
		})
	}
}

func TestAnInvalidStateIsNotWritten(t *testing.T) {
	for name, state := range map[string]policy.State{
		"no number":             {Arrivals: &policy.Arrivals{Rate: math.NaN()}},
		"a negative rate":       {Arrivals: &policy.Arrivals{Rate: -1}},
		"a capacity of nothing": {Capacity: &policy.LearnedCapacity{}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := state.Encode()
			require.ErrorContains(t, err, "encoding the state: ")
			require.Empty(t, text)
		})
	}
}

func TestALongHistoryIsThinnedOutAndHoldsReplicasNoLess(t *testing.T) {
	state := complete()
	state.Recommendations, state.Budget.Counts = nil, nil
	for i := range 12 {
		state.Budget.Counts = append(state.Budget.Counts, policy.Count{All: 12345.678 * float64(i+1), Late: 234.5678})
	}
	for i := range 600 {
		at := noon().Add(time.Duration(i) * 6 * time.Second)
		r := policy.ReplicasAt{At: at, Replicas: int32(9000 - 10*i)}
		state.Recommendations = append(state.Recommendations, r)
	}
	text, err := state.Encode()
	require.NoError(t, err)
	require.Less(t, len(text), 6144)
	read, err := policy.DecodeState(text, noon().AddDate(1, 0, 0))
	require.NoError(t, err)
	require.Len(t, read.Recommendations, 12)
	largestSince := func(window []policy.ReplicasAt, since time.Time) (most int32) {
		for _, r := range window {
			if !r.At.Before(since) {
				most = max(most, r.Replicas)
			}
		}
		return most
	}
	for _, r := range state.Recommendations {
		require.GreaterOrEqual(t, largestSince(read.Recommendations, r.At), largestSince(state.Recommendations, r.At))
	}
}

func TestLaterDecisionsDoNotChangeAWrittenState(t *testing.T) {
	state := complete()
	state.Arrivals.Past = append(state.Arrivals.Past, make([]policy.RateAt, 40)...)
	before := complete()
	before.Arrivals.Past = append(before.Arrivals.Past, make([]policy.RateAt, 40)...)
	_, err := state.Encode()
	require.NoError(t, err)
	require.Equal(t, before, state)
}

func FuzzDecodeState(f *testing.F) {
	for seed := range uint64(5) {
		l := newLife(seed)
		for range 40 {
			l.step()
		}
		checkpoint, err := l.state.Encode()
		require.NoError(f, err)
		text, err := base64.StdEncoding.DecodeString(checkpoint)
		require.NoError(f, err)
		f.Add(string(text), seed)
	}
	golden, err := os.ReadFile(filepath.Join("testdata", "state-v1.json"))
	require.NoError(f, err)
	f.Add(string(golden), uint64(7))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		state, _ := policy.DecodeState(opaque(text), noon().AddDate(1, 0, 0)) // the rest is valid in any case
		_, err := state.Encode()
		require.NoError(t, err, "a decoded state can be encoded")
		l := newLife(seed)
		l.state = state
		for range 20 {
			decision := l.step()
			require.GreaterOrEqual(t, decision.Replicas, *l.in.Spec.MinReplicas)
			require.LessOrEqual(t, decision.Replicas, l.in.Spec.MaxReplicas)
			require.NotContains(t, decision.Equation, "NaN")
			require.NotContains(t, decision.Equation, "Inf")
			if seconds, err := decision.Wait.Value(); err == nil {
				require.False(t, math.IsNaN(seconds) || math.IsInf(seconds, 0), "%v", seconds)
			}
			_, err := l.state.Encode()
			require.NoError(t, err, "a state after a decoded one can be encoded")
		}
	})
}
