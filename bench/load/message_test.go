// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/stretchr/testify/require"
)

func TestStampIsReadFromPropertyOrPayload(t *testing.T) {
	want := stamp{run: "a/b", sequence: 7, due: time.Unix(1_700_000_000, 123_456_789)}
	properties := map[string]string{property: want.property()}
	for name, test := range map[string]struct {
		properties map[string]string
		payload    []byte
		run        string
		ok         bool
	}{
		"both":                               {properties, want.payload(100), "a/b", true},
		"a Function that changes payloads":   {properties, []byte("other"), "a/b", true},
		"a Function that drops properties":   {nil, want.payload(24), "a/b", true},
		"the property of another run":        {properties, want.payload(24), "a", false},
		"the payload of another run":         {nil, want.payload(24), "a", false},
		"a message of no run":                {nil, []byte("hello"), "a/b", false},
		"a property that is no stamp":        {map[string]string{property: "1/x/a/b"}, nil, "a/b", false},
		"a property of message 0":            {map[string]string{property: "0/1/a/b"}, nil, "a/b", false},
		"a property that is no stamp at all": {map[string]string{property: ""}, nil, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := readStamp(test.properties, test.payload, test.run)
			require.Equal(t, test.ok, ok)
			if ok {
				require.Equal(t, want.sequence, got.sequence)
				require.True(t, want.due.Equal(got.due))
			}
		})
	}
}

func FuzzStamp(f *testing.F) {
	one := stamp{run: "r", sequence: 1, due: time.Unix(1, 0)}
	f.Add(one.property(), one.payload(24))
	f.Add("1/2", []byte{})
	f.Fuzz(func(t *testing.T, text string, payload []byte) {
		for _, properties := range []map[string]string{nil, {property: text}} {
			if s, ok := readStamp(properties, payload, "r"); ok {
				require.True(t, s.isValid())
			}
		}
	})
}

func TestSequenceNeedsEightBytes(t *testing.T) {
	_, ok := Sequence([]byte("short"))
	require.False(t, ok)
	got, ok := Sequence([]byte{0, 0, 0, 0, 0, 0, 1, 2, 'x'})
	require.True(t, ok)
	require.EqualValues(t, 258, got)
}

func TestMessagesAreBatchedAsTheySay(t *testing.T) {
	alone := Messages{Bytes: 100, Batching: Batching{MaxMessages: 1}}.WithDefaults().producer("t")
	require.True(t, alone.DisableBatching)
	require.Equal(t, pulsar.DefaultBatchBuilder, alone.BatcherBuilderType)
	require.EqualValues(t, -1, alone.SendTimeout, "after an outage the broker gets all")
	batched := Messages{Keys: Keys{Count: 3}, Batching: Batching{MaxMessages: 100}}.WithDefaults().producer("t")
	require.False(t, batched.DisableBatching)
	require.EqualValues(t, 100, batched.BatchingMaxMessages)
	require.Equal(t, defaultDelay, batched.BatchingMaxPublishDelay)
	require.Equal(t, pulsar.KeyBasedBatchBuilder, batched.BatcherBuilderType)
}

func TestKeysHaveTheirSkew(t *testing.T) {
	count := func(k Keys, seed uint64) map[string]int {
		keyOf, counts := k.keyOf(seed), map[string]int{}
		for i := range uint64(30_000) {
			counts[keyOf(i)]++
		}
		return counts
	}
	require.Equal(t, map[string]int{"": 30_000}, count(Keys{}, 1))
	require.Equal(t, map[string]int{"0": 10_000, "1": 10_000, "2": 10_000}, count(Keys{Count: 3}, 1))
	skewed := count(Keys{Count: 3, Skew: 1}, 1)
	require.InDelta(t, 30_000*6/11., skewed["0"], 500, "1 of 1 + 1/2 + 1/3")
	require.InDelta(t, 30_000*3/11., skewed["1"], 500)
	again := count(Keys{Count: 3, Skew: 1}, 1)
	require.Equal(t, skewed, again)
	require.NotEqual(t, skewed, count(Keys{Count: 3, Skew: 1}, 2))
}

func TestMessagesHaveThePayloadOfAFile(t *testing.T) {
	files := fstest.MapFS{"order.json": {Data: []byte(`{"order": 1}`)}, "empty": {}}
	m, err := Messages{File: "order.json"}.WithDefaults().Open(files)
	require.NoError(t, err)
	require.NoError(t, m.Validate())
	f := &fakePulsar{perMessage: time.Microsecond}
	synctest.Test(t, func(t *testing.T) {
		publish(t, f, "{duration: 1s, constant: {rate: 10}}", m)
		require.Len(t, f.stored, 10)
		require.JSONEq(t, `{"order": 1}`, string(f.stored[9].message.Payload))
	})
	require.ErrorContains(t, Messages{File: "order.json", Bytes: 100}.WithDefaults().Validate(), "set one of them")
	for name, want := range map[string]string{"empty": "has 0 bytes", "missing": "messages.file: open missing"} {
		_, err := Messages{File: name}.Open(files)
		require.ErrorContains(t, err, want)
	}
	_, err = NewPublisher(f, Publishing{Topic: "t", Run: "r", Messages: Messages{File: "order.json"}})
	require.ErrorContains(t, err, "Open it")
}
