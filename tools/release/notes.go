// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"
)

// notes is the section of the changelog about the version. A pre-release has what is unreleased.
func notes(changelog, version string) (string, error) {
	titles := []string{version, strings.TrimPrefix(version, "v")}
	if semver.Prerelease(version) != "" {
		titles = append(titles, "Unreleased")
	}
	for _, title := range titles {
		if text, ok := section(changelog, title); ok {
			return text, nil
		}
	}
	return "", fmt.Errorf("CHANGELOG.md has no section with text for %s: write its changes below a heading \"## %[1]s\"",
		version)
}

// section is the text below a heading of the second level, which may say more after the title, such as a date.
func section(changelog, title string) (string, bool) {
	var text strings.Builder
	in := false
	for line := range strings.Lines(changelog) {
		heading, isHeading := strings.CutPrefix(line, "## ")
		switch {
		case isHeading:
			first, _, _ := strings.Cut(strings.TrimSpace(heading), " ")
			in = strings.Trim(first, "[]") == title
		case in:
			text.WriteString(line)
		}
	}
	found := strings.TrimSpace(text.String())
	return found + "\n", found != ""
}

// notesFile has the notes.
const notesFile = "release-notes.md"

// changes are the entries of notes as Artifact Hub shows them: plain text, each with the heading that it is below.
func changes(notes string) (all []map[string]string) {
	kind := "changed"
	for line := range strings.Lines(notes) {
		heading, isHeading := strings.CutPrefix(line, "### ")
		entry, isEntry := strings.CutPrefix(line, "- ")
		switch {
		case isHeading:
			kind = strings.ToLower(strings.TrimSpace(heading))
		case isEntry:
			all = append(all, map[string]string{"kind": kind, "description": strings.TrimSpace(entry)})
		case strings.HasPrefix(line, "  ") && len(all) > 0:
			all[len(all)-1]["description"] += " " + strings.TrimSpace(line)
		}
	}
	for _, change := range all {
		change["description"] = anyLink.ReplaceAllString(change["description"], "$1")
	}
	return all
}

// anyLink is a link of Markdown.
var anyLink = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)

// relativeLink is a link of Markdown to a file of the tree.
var relativeLink = regexp.MustCompile(`\]\(([^):#][^):]*)\)`)

// withAbsoluteLinks has links lead to the tree at the URL: notes are read where the files beside the changelog are not.
func withAbsoluteLinks(text, tree string) string {
	return relativeLink.ReplaceAllString(text, "]("+tree+"/$1)")
}
