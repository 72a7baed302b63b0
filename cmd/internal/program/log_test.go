// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLogLines(t *testing.T) {
	tests := map[string]struct {
		level, format string
		want          string
	}{
		"JSON by default":       {"info", "json", `"level":"INFO","msg":"something changed","replicas":3}`},
		"text for people":       {"info", "text", `level=INFO msg="something changed" replicas=3`},
		"quiet below its level": {"error", "json", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := LogOptions{Level: tt.level, Format: tt.format}
			var out bytes.Buffer
			slog.New(o.handler(&out)).Info("something changed", slog.Int("replicas", 3))
			if tt.want == "" {
				require.Empty(t, out.String())
			} else {
				require.Contains(t, out.String(), tt.want)
			}
		})
	}
}
