// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Equal requires that got equals a file under testdata. With update it writes the file instead.
func Equal(t *testing.T, update bool, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "if this change is wanted: go test . -update, in the folder of this test")
}

// Written compares the output of write likewise.
func Written(t *testing.T, update bool, name string, write func(io.Writer) error) {
	t.Helper()
	var got bytes.Buffer
	require.NoError(t, write(&got))
	Equal(t, update, name, got.Bytes())
}

// JSON compares the value as indented JSON likewise.
func JSON(t *testing.T, update bool, name string, value any) {
	t.Helper()
	text, err := json.MarshalIndent(value, "", "  ")
	require.NoError(t, err)
	Equal(t, update, name, append(text, '\n'))
}
