// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseOptions(t *testing.T) {
	standard := filepath.Join("bench", "out", "demo")
	for name, test := range map[string]struct {
		args []string
		want options
		err  string
	}{
		"nothing is needed":               {want: options{out: standard}},
		"everything can be kept running":  {args: []string{"-keep"}, want: options{keep: true, out: standard}},
		"results can go elsewhere":        {args: []string{"-out", "x/y"}, want: options{out: "x/y"}},
		"a page can be drawn again":       {args: []string{"-from", "s.json"}, want: options{out: standard, from: "s.json"}},
		"an empty directory is no place":  {args: []string{"-out="}, err: "must name a directory"},
		"a word that is no flag is named": {args: []string{"keep"}, err: `argument "keep" is not a flag`},
		"an unknown flag is named":        {args: []string{"-kept"}, err: "-kept"},
		"help is no run":                  {args: []string{"-help"}, err: flag.ErrHelp.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseOptions(test.args, io.Discard)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestARunSaysWhatIsWrongWithItsFlagsAndStartsNothing(t *testing.T) {
	var out, complaints strings.Builder
	require.Equal(t, exitUsage, program(t.Context(), []string{"-out="}, &out, &complaints))
	require.Contains(t, complaints.String(), "demo: -out is empty: it must name a directory\n")
	require.Zero(t, program(t.Context(), []string{"-help"}, &out, &complaints))
	require.Contains(t, complaints.String(), "after the result leave everything running until Ctrl-C")
	require.Empty(t, out.String())
}
