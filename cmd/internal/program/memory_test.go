// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"log/slog"
	"math"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLimitMemoryRespectsGOMEMLIMIT(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	var lines bytes.Buffer
	t.Setenv("GOMEMLIMIT", "123456789")
	debug.SetMemoryLimit(123456789) // as the runtime does when it starts
	LimitMemory(slog.New(slog.NewTextHandler(&lines, nil)))
	require.EqualValues(t, 123456789, debug.SetMemoryLimit(-1))
	require.Contains(t, lines.String(), "gomemlimit=123456789")
}

func TestLimitMemoryNamesTheProblem(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	var lines bytes.Buffer
	t.Setenv("AUTOMEMLIMIT", "most")
	LimitMemory(slog.New(slog.NewTextHandler(&lines, nil)))
	require.Contains(t, lines.String(), "level=WARN")
	require.Contains(t, lines.String(), "AUTOMEMLIMIT: most")
	require.Equal(t, before, debug.SetMemoryLimit(-1))
}
