// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/response"
)

func testObject() types.NamespacedName {
	return types.NamespacedName{Namespace: "media", Name: "resize"}
}

func TestMetadataBecomesATrigger(t *testing.T) {
	for name, test := range good() {
		t.Run(name, func(t *testing.T) {
			have, err := Decode(testObject(), test.metadata)
			require.NoError(t, err)
			want := test.want
			want.Object, want.Subject.Namespace = testObject(), "media"
			require.Equal(t, want, have)
			requireSteady(t, have)
		})
	}
}

// requireSteady checks invariants of every trigger.
func requireSteady(t *testing.T, trigger Trigger) {
	t.Helper()
	subjects := 0
	subject := trigger.Subject
	for _, set := range []bool{
		subject.Policy != "", subject.Target != Target{}, subject.Component != function.Component{},
		subject.Topics != "",
	} {
		if set {
			subjects++
		}
	}
	require.Equal(t, 1, subjects, "exactly one subject: %+v", subject)
	require.Equal(t, subject.Topics != "", subject.Subscription != "")
	_, has := thresholds()[trigger.Strategy]
	require.Equal(t, has && subject.Policy == "", trigger.Threshold > 0,
		"a threshold for the strategies that have one: %+v", trigger)
	require.True(t, trigger.ActivationMessages == 0 || has)
	require.True(t, has || subject.Policy != "", "whatever is no policy has a strategy with a threshold: %+v", trigger)
	again, err := Decode(trigger.Object, metadataOf(trigger))
	require.NoError(t, err, "%v", metadataOf(trigger))
	require.Equal(t, trigger, again)
	require.Equal(t, metadataOf(trigger), metadataOf(again))
}

// metadataOf is complete metadata for the trigger, without KEDA's own keys: Decode returns the same trigger for it.
func metadataOf(t Trigger) map[string]string {
	metadata := map[string]string{}
	set := func(name, value string) {
		if value != "" {
			metadata[name] = value
		}
	}
	subject := t.Subject
	set(string(formPolicy), subject.Policy)
	set(string(formTopic), subject.Topics)
	set(keySubscription, subject.Subscription)
	set(keyConnection, subject.Connection)
	if subject.Target != (Target{}) {
		set(string(formTarget), subject.Target.Kind+"/"+subject.Target.Name)
	}
	if c := subject.Component; c != (function.Component{}) {
		set(string(c.Kind), c.Tenant+"/"+c.Namespace+"/"+c.Name)
	}
	set(keyStrategy, string(t.Strategy))
	if t.Threshold != 0 {
		set(thresholds()[t.Strategy], strconv.FormatFloat(t.Threshold, 'f', -1, 64))
	}
	if t.ActivationMessages != 0 {
		set(keyActivationMessages, strconv.FormatInt(t.ActivationMessages, 10))
	}
	return metadata
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	for name, test := range bad() {
		t.Run(name, func(t *testing.T) {
			trigger, err := Decode(testObject(), test.metadata)
			require.Equal(t, response.Invalid, response.ReasonOf(err))
			require.Zero(t, trigger)
			require.EqualError(t, err, problemText(test.want))
			require.NotContains(t, err.Error(), "hidden")
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

func TestProblemsAreSeparated(t *testing.T) {
	require.Equal(t, "trigger metadata: a; b", problemText([]string{"a", "b"}))
}

func TestARequestNamesItsScaledObject(t *testing.T) {
	_, err := Decode(types.NamespacedName{Name: "resize"}, metadata{"policy": "resize"})
	require.EqualError(t, err,
		"trigger metadata: the request names no ScaledObject: scaledObjectRef must have a name and a "+
			"namespace")
}

func TestAnErrorStaysShort(t *testing.T) {
	wrong := metadata{
		"topic": strings.Repeat("é", 10_000), "subscription": "\x00", "connection": "A", "strategy": "s",
		"activationMessages": "l",
	}
	for i := range 100 {
		wrong[fmt.Sprintf("%03d%s", i, strings.Repeat("x", 1000))] = strings.Repeat("y", 1000)
		wrong[fmt.Sprintf("%03dFromEnv", i)] = "y"
	}
	_, err := Decode(testObject(), wrong)
	require.Equal(t, response.Invalid, response.ReasonOf(err))
	require.LessOrEqual(t, len(err.Error()), response.MaxTextBytes)
	require.Contains(t, err.Error(), "and 96 more")
	require.Regexp(t, `; and \d more$`, err.Error())
}

func FuzzDecode(f *testing.F) {
	join := func(metadata metadata) string {
		var lines []string
		for name, value := range metadata {
			lines = append(lines, name+"="+value)
		}
		return strings.Join(lines, "\n")
	}
	for _, test := range good() {
		f.Add(join(test.metadata))
	}
	for _, test := range bad() {
		f.Add(join(test.metadata))
	}
	schema := readSchema(f)
	f.Fuzz(func(t *testing.T, text string) {
		fuzzed := metadata{}
		for line := range strings.SplitSeq(text, "\n") {
			name, value, _ := strings.Cut(line, "=")
			fuzzed[name] = value
		}
		before := maps.Clone(fuzzed)
		trigger, err := Decode(testObject(), fuzzed)
		again, errAgain := Decode(testObject(), fuzzed)
		require.Equal(t, trigger, again)
		require.Equal(t, err, errAgain, "and the problems in the same order")
		require.Equal(t, before, fuzzed)
		if err != nil {
			require.Equal(t, response.Invalid, response.ReasonOf(err))
			require.LessOrEqual(t, len(err.Error()), response.MaxTextBytes)
			require.NotContains(t, err.Error(), "\n")
			require.True(t, utf8.ValidString(err.Error()), "it is put into a message of protobuf")
			return
		}
		requireSteady(t, trigger)
		require.NoError(t, schema.check(fuzzed), "the schema takes what Decode takes")
		require.NoError(t, schema.check(metadataOf(trigger)))
	})
}
