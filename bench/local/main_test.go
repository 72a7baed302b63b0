// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/keda"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

func TestFlagsBecomeTheCluster(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want stage.Config
	}{
		"as it ships": {nil, stage.Config{HPASyncPeriod: 15 * time.Second}},
		"all flags": {
			[]string{"-keda", "-adapter-flag=--poll-interval=2s", "-adapter-flag=--rate-window=4s", "-hpa-sync=5s"},
			stage.Config{
				HPASyncPeriod: 5 * time.Second, KEDA: &keda.Config{},
				AdapterFlags: []string{"--poll-interval=2s", "--rate-window=4s"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.Guests, test.want.Progress = true, io.Discard
			config, err := parse(test.args, io.Discard)
			require.NoError(t, err)
			require.Equal(t, test.want, config)
		})
	}
	_, err := parse([]string{"stray"}, io.Discard)
	require.ErrorContains(t, err, `argument "stray" is not a flag`)
}
