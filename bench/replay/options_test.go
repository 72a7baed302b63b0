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

func TestFlagsAreChecked(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"an unknown flag": {[]string{"-speed=3"}, "-speed"},
		"an argument":     {[]string{"step"}, `"step" is not a flag`},
		"too short for the HPA controller": {
			[]string{"-seconds=19"},
			"-seconds is 19: it must be 0, or from 20 to 3600",
		},
		"longer than an hour":   {[]string{"-seconds=3601"}, "-seconds is 3601"},
		"an invalid expression": {[]string{"-scenario=("}, "-scenario"},
		"a scenario that does not exist": {
			[]string{"-scenario=nonesuch"},
			"names none: they are [step wave java surge coverage]",
		},
		"an earlier report that does not exist":  {[]string{"-again=/nonesuch/replay.json"}, "reading an earlier report"},
		"an earlier report that is another file": {[]string{"-again=options_test.go"}, errReport.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, run(t.Context(), test.args, io.Discard, io.Discard), test.want)
		})
	}
	require.ErrorIs(t, run(t.Context(), []string{"-h"}, io.Discard, io.Discard), flag.ErrHelp)
}

func TestScenariosAreThoseAskedForAtTheLengthAskedFor(t *testing.T) {
	o, err := parseOptions([]string{"-scenario=s|v", "-seconds=60"}, io.Discard)
	require.NoError(t, err)
	some := o.scenarios()
	require.Equal(t, []string{"step", "wave", "java", "surge"}, names(some))
	for _, s := range some {
		require.Equal(t, time.Minute, s.length)
	}
	require.False(t, o.covers(), "a shortened run is not a measurement")
	o, err = parseOptions(nil, io.Discard)
	require.NoError(t, err)
	require.True(t, o.covers())
	o, err = parseOptions([]string{"-scenario=^w"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, []string{"wave"}, names(o.scenarios()))
	require.Equal(t, 8*time.Minute, o.scenarios()[0].length)
}
