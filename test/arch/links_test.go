// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fence   = regexp.MustCompile("(?s)```.*?```")
	// dropped of a heading in its anchor, as GitHub does it.
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

func TestLinksOfThePagesLeadSomewhere(t *testing.T) {
	root := rootDir(t)
	pages := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" || strings.Contains(path, "/node_modules/") {
			return err
		}
		text, err := os.ReadFile(path)
		pages[path] = fence.ReplaceAllString(string(text), "")
		return err
	}))
	require.Contains(t, pages, filepath.Join(root, "README.md"))
	for page, text := range pages {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			file, anchor, hasAnchor := strings.Cut(found[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			_, err := os.Stat(target)
			require.NoError(t, err, "%s links to %s", page, found[1])
			if hasAnchor {
				require.Contains(t, anchors(pages[target]), anchor, "%s links to %s", page, found[1])
			}
		}
	}
}

func anchors(text string) []string {
	var all []string
	for _, found := range heading.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-"))
	}
	return all
}
