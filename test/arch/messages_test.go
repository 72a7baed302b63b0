// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// aFlag is one of a program.
var aFlag = regexp.MustCompile(`--[a-z][a-z0-9-]+`)

// TestMessagesNameTheValueOfTheChartBesideAFlag reads declarations that have a message for users with a flag of the
// adapter or the scaler. What checks flags at the start of a program is not among these.
func TestMessagesNameTheValueOfTheChartBesideAFlag(t *testing.T) {
	root := rootDir(t)
	var flags []string
	for _, program := range []string{"adapter", "scaler"} {
		help, err := os.ReadFile(filepath.Join(root, "cmd", program, "testdata", "help.txt"))
		require.NoError(t, err)
		flags = append(flags, aFlag.FindAllString(string(help), -1)...)
	}
	messages := 0
	for _, s := range sources(t) {
		if s.isTest() || !slices.Contains([]string{"backlog", "controllers", "policy", "provider"}, s.top()) {
			continue
		}
		for _, declaration := range s.declarations(t) {
			text := texts(t, declaration)
			for _, flag := range aFlag.FindAllString(text, -1) {
				if slices.Contains(flags, flag) {
					messages++
					require.Contains(t, text, "the chart", "%s has a message with %s", s.path, flag)
				}
			}
		}
	}
	require.NotZero(t, messages)
}

// texts are the parts of all texts of a declaration, without names of flags alone.
func texts(t *testing.T, declaration ast.Decl) string {
	t.Helper()
	var all strings.Builder
	ast.Inspect(declaration, func(node ast.Node) bool {
		literal, isLiteral := node.(*ast.BasicLit)
		if !isLiteral || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		require.NoError(t, err)
		if aFlag.FindString(text) != text {
			all.WriteString(text)
		}
		return true
	})
	return all.String()
}
