// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"regexp"
	"slices"
	"strings"
)

// Fill puts values in the place of Grafana's variables, such as namespace for $namespace and ${namespace}. Variables
// without a value stay.
func Fill(expression string, values map[string]string) string {
	return variable().ReplaceAllStringFunc(expression, func(found string) string {
		if value, known := values[strings.Trim(found, "${}")]; known {
			return value
		}
		return found
	})
}

// Variables are the names of the variables in an expression.
func Variables(expression string) []string {
	found := variable().FindAllString(expression, -1)
	for i := range found {
		found[i] = strings.Trim(found[i], "${}")
	}
	return found
}

func variable() *regexp.Regexp { return regexp.MustCompile(`\$\{\w+\}|\$\w+`) }

// Series are the names of the series that an expression of PromQL reads, sorted.
func Series(expression string) []string {
	for _, left := range []string{
		`"[^"]*"`, `\{[^}]*\}`, `\[[^]]*\]`, // values, selectors and ranges
		`\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`, // lists of labels
		`\boffset\s+\$?\w+`, `\$\w+`, `\b\d[\w.]*`, // durations, variables and numbers
	} {
		expression = regexp.MustCompile(left).ReplaceAllString(expression, " ")
	}
	var found []string
	for _, at := range regexp.MustCompile(`[a-zA-Z_:][\w:]*`).FindAllStringIndex(expression, -1) {
		name, after := expression[at[0]:at[1]], strings.TrimSpace(expression[at[1]:])
		isFunction := strings.HasPrefix(after, "(") && !isKeyword(name)
		if !isFunction && !isKeyword(name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func isKeyword(name string) bool {
	return slices.Contains([]string{"and", "or", "unless", "bool", "group_left", "group_right"}, name)
}
