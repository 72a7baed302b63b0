// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/jdk"
)

func TestStartRefusesABadConfig(t *testing.T) {
	for name, test := range map[string]struct {
		config Config
		want   string
	}{
		"rejects Kubernetes without a worker": {
			Config{Kubernetes: &Kubernetes{}, WithoutWorker: true}, "Config.Kubernetes is set",
		},
		"names the available versions": {
			Config{Version: "3.0.0"},
			"$PULSAR must be one of 4.0.8, 4.2.4, 5.0.0-M1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Start(t.Context(), test.config)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestSettingsOfTheCallerWin(t *testing.T) {
	got := string(render(settings(ports{service: 1, admin: 2}, map[string]string{"numHttpServerThreads": "3", "zz": "1"})))
	require.Contains(t, got, "\nnumHttpServerThreads=3\n")
	require.NotContains(t, got, "numHttpServerThreads=8")
	require.Contains(t, got, "\nstatsUpdateFrequencyInSecs=60\n")
	require.Contains(t, got, "\nzz=1\n")
}

func TestTopicPathEscapesTheLocalNameTwice(t *testing.T) {
	require.Equal(t, "/admin/v2/persistent/public/default/orders", topicPath("orders"))
	require.Equal(t, "/admin/v2/non-persistent/t/n/a%252Fb", topicPath("non-persistent://t/n/a/b"))
	require.Equal(t, "/admin/v2/persistent/public/default/orders/subscription/public%252Fdefault%252Ffn",
		subscriptionPath("orders", "public/default/fn"))
}

func TestUnsafeMemoryFlagOnlyWhereTheJVMKnowsIt(t *testing.T) {
	flag := "--sun-misc-unsafe-memory-access=allow"
	require.NotContains(t, JVMFlags(jdk.JDK{Version: "17.0.15"}), flag)
	require.Contains(t, JVMFlags(jdk.JDK{Version: "25.0.1"}), flag)
}
