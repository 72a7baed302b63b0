// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"flag"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"flags are read":                   {[]string{"-out=file"}, ""},
		"an argument is not a flag":        {[]string{"-out=file", "fast"}, `argument "fast" is not a flag`},
		"a flag that does not exist fails": {[]string{"-fast"}, "-fast"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			flags := Flags("bench", io.Discard)
			out := flags.String("out", "", "file")
			err := Parse(flags, tt.args)
			if tt.want != "" {
				require.ErrorContains(t, err, tt.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "file", *out)
		})
	}
	var help bytes.Buffer
	require.ErrorIs(t, Parse(Flags("bench", &help), []string{"-h"}), flag.ErrHelp)
	require.Contains(t, help.String(), "bench")
}

func TestPauseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		require.NoError(t, Pause(t.Context(), time.Minute))
		require.Equal(t, time.Minute, time.Since(begun))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, Pause(ctx, time.Minute), context.DeadlineExceeded)
		require.ErrorIs(t, Pause(ctx, 0), context.DeadlineExceeded, "also when there is nothing to wait for")
	})
}
