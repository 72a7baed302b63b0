// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// entries are the texts below the headings of level 3, which are alerts and reasons.
func entries(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile("../../docs/runbook.md")
	require.NoError(t, err)
	found := map[string]string{}
	for _, part := range strings.Split(string(content), "\n### ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		require.NotContains(t, found, name, "two entries of one name")
		text, _, _ = strings.Cut(text, "\n## ")
		found[name] = text
	}
	return found
}

// reasons are the values of the constants Reason... of the API.
func reasons(t *testing.T) (values []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/v1alpha1/conditions.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if strings.HasPrefix(name.Name, "Reason") {
				literal, ok := spec.Values[i].(*ast.BasicLit)
				require.True(t, ok, name.Name)
				value, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				values = append(values, value)
			}
		}
		return true
	})
	require.Greater(t, len(values), 80)
	return values
}

func TestTheRunbookHasEveryAlertAndEveryReason(t *testing.T) {
	var have []string
	for name := range entries(t) {
		have = append(have, name)
	}
	require.ElementsMatch(t, slices.Concat(alerts(t), reasons(t)), have)
}

func TestEachEntryOfTheRunbookSaysWhatHowAndWhatToDo(t *testing.T) {
	shape := regexp.MustCompile("^\n(?s:.+)\n\n- Confirm: (?s:.*`.+`.*)\n- Fix: (?s:.+)\\.\n")
	// A command, a field or a value, another entry or page, or nothing to do.
	fix := regexp.MustCompile("- Fix: (?s:none|.*`.+`|.*\\]\\()")
	for name, text := range entries(t) {
		require.Regexp(t, fix, text, "%s: what to do, and not only where to look", name)
		require.NotRegexp(t, "(follow|as) the message", text, name)
		require.NotRegexp(t, "get (hpa|statefulsets),|,(hpa|statefulsets) ", text,
			"%s: kubectl prints nothing at all if one of the kinds is not installed", name)
		require.Regexp(t, shape, text+"\n", "%s: what it means, - Confirm: with a command, - Fix:", name)
	}
}
