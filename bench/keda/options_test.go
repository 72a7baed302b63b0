// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOptionsRefuseWhatMakesNoSense(t *testing.T) {
	for args, want := range map[string]string{
		"-parts=beside,x":  `-parts names "x": it may name beside, outage, burst`,
		"-contenders=me":   `-contenders names "me": it may name ours, keda_pulsar, keda_pulsar_default, keda_external_push, keda_external_pull`,
		"-rate=0":          "-rate is 0: it must be from 1 to 5000",
		"-rate=NaN":        "-rate is NaN: it must be from 1 to 5000",
		"-rate=700":        "-rate is 700 at 50 messages per second and replica, 14 replicas: at most 12 may be there",
		"-service-time=0s": "-service-time is 0s: it must be from 1ms to 10s",
		"-objective=1h":    "-objective is 1h0m0s: it must be from 1s to 10m0s",
		"-first=0s":        "-first is 0s: it must be from 1s to 1h0m0s",
		"-second=2h":       "-second is 2h0m0s: it must be from 1s to 1h0m0s",
		"-outage=0s":       "-outage is 0s: it must be from 1s to 1h0m0s",
		"-cooldown=0s":     "-cooldown is 0s: it must be from 1s to 1h0m0s",
		"-cooldown=1500ms": "-cooldown is 1.5s: it must be whole seconds",
		"-targets=0":       "-targets is 0: it must be from 1 to 50",
		"-burst=0":         "-burst is 0: it must be from 1 to 5000",
		"-nothing":         "-nothing",
		"beside":           `argument "beside" is not a flag`,
	} {
		_, err := parseOptions([]string{args}, io.Discard)
		require.ErrorContains(t, err, want)
	}
	_, err := parseOptions([]string{"-h"}, io.Discard)
	require.ErrorIs(t, err, flag.ErrHelp)
	require.ErrorContains(t, run(t.Context(), []string{"-burst=0"}, io.Discard, io.Discard), "-burst is 0")
}

func TestOptionsSayWhoPlaysWhat(t *testing.T) {
	o := sampleOptions(t)
	for _, part := range parts() {
		require.True(t, o.runs(part))
		require.Equal(t, contendersOf(part), o.of(part))
		require.Contains(t, o.of(part), ours)
		require.Contains(t, o.of(part), kedaTuned)
	}
	o = sampleOptions(t, "-parts=burst", "-contenders=keda_external_pull,ours")
	require.False(t, o.runs(partBeside))
	require.Equal(t, []string{ours, externalPull}, o.of(partBurst))
	require.Equal(t, []string{ours}, o.of(partOutage))
}

func TestTheTunedThresholdIsHalfTheObjectivesWorkOfAReplica(t *testing.T) {
	o := sampleOptions(t)
	require.Equal(t, 50.0, o.capacity())
	require.Equal(t, 4, o.enough(), "200/s at 50/s each")
	require.Equal(t, int64(750), o.tuned(), "15 s of 50/s")
	o.rate++
	require.Equal(t, 5, o.enough())
	o.serviceTime, o.objective = 10*time.Second, time.Second
	require.Equal(t, int64(1), o.tuned())
}
