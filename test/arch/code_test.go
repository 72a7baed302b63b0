// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// codePath is a file or folder of the source that a page names.
	codePath = regexp.MustCompile(
		"`((?:api|backlog|bench|cmd|controllers|deploy|docs|examples|policy|provider|test|tools)/[\\w./-]*)`")
	// nameInFile is `Name` in `folder/file.go` or `Name` (`folder/file.go`), fileWithNames the other way round.
	nameInFile    = regexp.MustCompile("`([\\w.]+)`\\s+(?:in\\s+|\\()`([\\w/]+/\\w+\\.go)`")
	fileWithNames = regexp.MustCompile("`([\\w/]+/\\w+\\.go)`\\s+\\(((?:`\\w+`(?:, )?)+)\\)")
	aName         = regexp.MustCompile("`(\\w+)`")
)

// TestPagesNameCodeThatExists keeps the pages for contributors up to date when code is moved or renamed.
func TestPagesNameCodeThatExists(t *testing.T) {
	root := rootDir(t)
	pages, err := filepath.Glob(filepath.Join(root, "docs", "adr", "*.md"))
	require.NoError(t, err)
	pages = append(pages, filepath.Join(root, "CONTRIBUTING.md"), filepath.Join(root, "docs", "architecture.md"))
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, path := range codePath.FindAllStringSubmatch(string(text), -1) {
			if strings.HasPrefix(path[1], "bench/out") {
				continue // written by commands
			}
			_, err := os.Stat(filepath.Join(root, path[1]))
			require.NoError(t, err, "%s names it", page)
		}
		for _, found := range nameInFile.FindAllStringSubmatch(string(text), -1) {
			requireName(t, filepath.Join(root, found[2]), found[1])
		}
		for _, found := range fileWithNames.FindAllStringSubmatch(string(text), -1) {
			for _, name := range aName.FindAllStringSubmatch(found[2], -1) {
				requireName(t, filepath.Join(root, found[1]), name[1])
			}
		}
	}
}

// requireName fails if a file lacks the last part of a name, such as record of Store.record.
func requireName(t *testing.T, file, name string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	last := name[strings.LastIndex(name, ".")+1:]
	found, err := regexp.Match(`\b`+last+`\b`, text)
	require.NoError(t, err)
	require.True(t, found, "%s has no %s", file, last)
}
