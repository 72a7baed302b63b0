// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOptionsRefuseWhatMakesNoSense(t *testing.T) {
	for args, want := range map[string]string{
		"-parts=burst,x":   `-parts names "x": it may name outage, burst`,
		"-contenders=me":   `-contenders names "me": it may name ours, keda_pulsar, keda_external_push, keda_external_pull`,
		"-outage=0s":       "-outage is 0s: it must be from 1s to 1h0m0s",
		"-cooldown=0s":     "-cooldown is 0s: it must be from 1s to 1h0m0s",
		"-cooldown=1500ms": "-cooldown is 1.5s: it must be whole seconds",
		"-targets=0":       "-targets is 0: it must be from 1 to 50",
		"-burst=0":         "-burst is 0: it must be from 1 to 5000",
		"-nothing":         "-nothing",
		"burst":            `argument "burst" is not a flag`,
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
	require.False(t, o.runs(partOutage))
	require.Equal(t, []string{ours, externalPull}, o.of(partBurst))
	require.Equal(t, []string{ours}, o.of(partOutage))
}
