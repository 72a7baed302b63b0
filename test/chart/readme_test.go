// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the README instead of comparing it")

func TestTheReadmeHasEveryValue(t *testing.T) {
	chart := filepath.Join("..", "..", "deploy", "chart")
	values, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	require.NoError(t, err)
	var document yaml.Node
	require.NoError(t, yaml.Unmarshal(values, &document))
	rows := describe(t, "", document.Content[0])

	readme := filepath.Join(chart, "README.md")
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	const heading = "| value | default | |\n|---|---|---|\n"
	above, _, found := strings.Cut(string(text), heading)
	require.True(t, found, "%s has no table of values", readme)
	wanted := above + heading + strings.Join(rows, "")
	if *update {
		require.NoError(t, os.WriteFile(readme, []byte(wanted), 0o600))
		return
	}
	require.Equal(t, wanted, string(text), "write it with: go test ./test/chart -run TestTheReadmeHasEveryValue -update")
}

// describe returns a row for each value: one with a comment above, without values below it that have one. Every value
// needs a comment.
func describe(t *testing.T, prefix string, values *yaml.Node) (rows []string) {
	t.Helper()
	for i := 0; i < len(values.Content); i += 2 {
		key, value := values.Content[i], values.Content[i+1]
		path := prefix + key.Value
		var below []string
		if isDescribed(value) {
			below = describe(t, path+".", value)
		}
		text := strings.ReplaceAll(strings.ReplaceAll(key.HeadComment, "\n# ", " "), "# ", "")
		if i == 0 && prefix == "" { // the file's own comment is above the first
			_, text, _ = strings.Cut(text, "\n\n")
		}
		if below == nil {
			require.NotEmpty(t, text, "%s has no comment", path)
		}
		if text != "" {
			rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", path, inWords(t, value, below != nil), text))
		}
		rows = append(rows, below...)
	}
	return rows
}

func isDescribed(values *yaml.Node) bool {
	if values.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i < len(values.Content); i += 2 {
		if values.Content[i].HeadComment != "" || isDescribed(values.Content[i+1]) {
			return true
		}
	}
	return false
}

func inWords(t *testing.T, value *yaml.Node, hasBelow bool) string {
	t.Helper()
	if hasBelow {
		return ""
	}
	var content any
	require.NoError(t, value.Decode(&content))
	text, err := json.Marshal(content)
	require.NoError(t, err)
	return "`" + string(text) + "`"
}
