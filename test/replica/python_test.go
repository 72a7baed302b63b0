// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/python"
)

func TestPythonConsumesAsItsFunctionAndReportsEveryMessage(t *testing.T) {
	b := sharedBroker.Need(t)
	in := instance(t, b, "python")
	in.ID, in.ServiceTime, in.ReceiverQueueSize = 3, time.Millisecond, 7
	in.Output = broker.TopicName("python-out")
	require.NoError(t, b.CreateTopic(t.Context(), in.Output, 0))
	publish(t, b, in.Topics[0], 20)

	var got completions
	runner, err := NewPython(t.Context(), os.Stderr, got.add)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, runner.Close())
		require.NoDirExists(t, runner.dir)
	})
	r, err := runner.Start(t.Context(), in)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Kill()) })
	ready(t, r)

	got.sequences(t, 20)
	requireOutputs(t, b, in, 20)
	require.Eventually(t, func() bool { return observe(t, b, in).MsgBacklog == 0 }, patience, often)
	seen := observe(t, b, in)
	require.Equal(t, Shared, seen.Type)
	require.Len(t, seen.Consumers, 1)
	require.Equal(t,
		map[string]string{"application": "pulsar-function", "id": "public/default/python", "instance_id": "3"},
		seen.Consumers[0].Metadata)
	values, labels := scrape(t, r)
	require.InDelta(t, 20, values["pulsar_function_received_total"], 0)
	require.Equal(t, "public/default/python", labels["pulsar_function_received_total"]["fqfn"])
	require.NoError(t, r.Stop(t.Context()))
	require.NoError(t, r.(*Process).Err())
	require.Empty(t, observe(t, b, in).Consumers)
}

func TestPythonRefusesWhatItCannotDo(t *testing.T) {
	for name, spoil := range map[string]func(*Instance){
		"another time of redelivery": func(in *Instance) { in.RedeliverAfter = time.Second },
		"futures":                    func(in *Instance) { in.AsyncRequests = 2 },
		"a token":                    func(in *Instance) { in.Token = "t" },
	} {
		t.Run(name, func(t *testing.T) {
			in := good()
			spoil(&in)
			_, err := (&Python{}).Start(t.Context(), in)
			require.ErrorContains(t, err, "Python replicas have none of them")
		})
	}
}

func TestMissingPythonSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := NewPython(t.Context(), nil, nil)
	require.ErrorIs(t, err, python.ErrNoPython)
}
