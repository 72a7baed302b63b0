// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package flags_test

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/flags"
)

func TestVersionIsThatOfTheCommit(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	tests := map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"a tagged commit": {
			debug.BuildInfo{
				GoVersion: "go1.26.8", Main: debug.Module{Version: "v0.2.0"},
				Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "19c8d7e"}},
			},
			"v0.2.0 (commit 19c8d7e, go1.26.8 " + platform + ")",
		},
		"built outside a checkout": {
			debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "(devel)"}},
			"(devel) (go1.26.8 " + platform + ")",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, flags.Version(&test.info)) })
	}
}

func TestVersionEndsTheProgram(t *testing.T) {
	var out bytes.Buffer
	err := flags.Parse(flags.Program{Name: "adapter"}, []string{"--version", "--unknown-before-it=no"}, &out, nil)
	require.ErrorContains(t, err, "unknown flag")
	require.Empty(t, out.String())

	err = flags.Parse(flags.Program{Name: "adapter"}, []string{"--version"}, &out, nil)
	require.ErrorIs(t, err, pflag.ErrHelp)
	require.Regexp(t, `^adapter \S+ \(.*go\S+ \S+/\S+\)\n$`, out.String())
}
