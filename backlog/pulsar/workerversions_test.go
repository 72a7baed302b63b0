// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

// The same functions, sinks and sources on each version of Pulsar, as its worker reports them.
func TestWorkersOfEachVersion(t *testing.T) {
	resize, sink, source := as(function.KindFunction, "patterned"), as(function.KindSink, "drain"), as(function.KindSource,
		"tasks")
	for _, version := range []string{"4.0.8", "4.2.4", "5.0.0-M1"} {
		t.Run(version, func(t *testing.T) {
			config := func(component function.Component, file string) function.Description {
				f, parallelism, err := decodeConfig(bytes.NewReader(fixture(t, version+"-"+file)), component)
				require.NoError(t, err)
				config, err := describe(f, component, parallelism)
				require.NoError(t, err)
				return config
			}
			status := func(component function.Component, file string) backlog.InstancesSample {
				sample, err := decodeStatus(bytes.NewReader(fixture(t, version+"-"+file)), component, function.Java)
				require.NoError(t, err)
				return sample
			}
			require.Equal(t, function.Description{
				Subscription: backlog.Subscription{
					Name: "my/custom sub", Topics: []string{"persistent://public/default/literal"},
					Patterns: []string{"persistent://public/default/rx-.*"}, Workload: resize,
				},
				Type: backlog.Failover, Parallelism: 2,
			}, config(resize, "function-config-patterned.json"))
			require.Equal(t, function.Description{
				Subscription: backlog.Subscription{
					Name: "mine", Topics: []string{"persistent://public/default/sink-in"}, Workload: sink,
				},
				Type: backlog.KeyShared, Parallelism: 2,
			}, config(sink, "sink-config-keyed.json"))
			require.Equal(t, function.Description{
				Subscription: backlog.Subscription{
					Name:   "BatchSourceExecutor-public/default/tasks",
					Topics: []string{"persistent://public/default/tasks-intermediate"}, Workload: source,
				},
				Type: backlog.Shared, Parallelism: 2,
			}, config(source, "source-config-batch.json"))

			require.Equal(t, backlog.InstancesSample{Silent: 2},
				status(as(function.KindFunction, "broken"), "function-status-broken.json"))
			for file, messages := range map[string]int64{"sink-status-after30.json": 30, "source-status-batch.json": 5} {
				component := sink
				if messages == 5 {
					component = source
				}
				sample := status(component, file)
				require.Zero(t, sample.Silent)
				require.Len(t, sample.Instances, 2)
				received, processed := int64(0), int64(0)
				for _, i := range sample.Instances {
					received, processed = received+i.Received, processed+i.Processed
				}
				require.Equal(t, [2]int64{messages, messages}, [2]int64{received, processed}, file)
			}
		})
	}
}
