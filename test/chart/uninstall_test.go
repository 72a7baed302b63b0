// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/jsonpath"
)

var jsonPathOption = regexp.MustCompile(`kubectl get pap -A -o jsonpath='([^']*)'`)

// TestTheListBeforeUninstall: what the notes and the page have users run lists the policies that have suspended
// something, and no other.
func TestTheListBeforeUninstall(t *testing.T) {
	policy := func(name string, status map[string]any) map[string]any {
		object := map[string]any{"metadata": map[string]any{"namespace": "media", "name": name}}
		if status != nil {
			object["status"] = status
		}
		return object
	}
	policies := map[string]any{"items": []any{
		policy("new", nil),
		policy("alone", map[string]any{"desiredReplicas": int64(3)}),
		policy("taken", map[string]any{"takenOver": map[string]any{"maxReplicas": int64(9)}}),
		policy("paused", map[string]any{"takenOver": map[string]any{"scaledObjects": []any{"resize"}}}),
	}}
	for _, page := range []string{"docs/install.md", "deploy/chart/templates/NOTES.txt"} {
		text, err := os.ReadFile(filepath.Join("..", "..", page))
		require.NoError(t, err)
		option := jsonPathOption.FindSubmatch(text)
		require.NotNil(t, option, page)
		path := jsonpath.New(page).AllowMissingKeys(true) // as kubectl does
		require.NoError(t, path.Parse(string(option[1])))
		var out bytes.Buffer
		require.NoError(t, path.Execute(&out, policies))
		require.Equal(t, "media/taken\nmedia/paused\n", out.String(), page)
	}
}
