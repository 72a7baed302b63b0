// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// npmLibraries are the packages of npm that a program embeds files of: those of each package-lock.json beside such a
// file. The toolchain records modules alone.
func (r release) npmLibraries(ctx context.Context, program string) ([]cdx.Component, error) {
	const embedded = `{{if .Module}}{{if .Module.Main}}{{range .EmbedFiles}}{{$.Dir}}/{{.}}` + "\n{{end}}{{end}}{{end}}"
	files, err := r.goTool(ctx, serverPlatforms()[0], "list", "-deps", "-f", embedded, "./cmd/"+program)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, file := range strings.Fields(files) {
		dirs = append(dirs, filepath.Dir(file))
	}
	slices.Sort(dirs)
	var libraries []cdx.Component
	for _, dir := range slices.Compact(dirs) {
		path := filepath.Join(dir, "package-lock.json")
		lock, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		locked, err := lockedPackages(lock)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		libraries = append(libraries, locked...)
	}
	return libraries, nil
}

// lockedPackages are those of a package-lock.json, without what only builds them.
func lockedPackages(lock []byte) ([]cdx.Component, error) {
	var content struct {
		Packages map[string]struct {
			Version   string `json:"version"`
			Integrity string `json:"integrity"`
			License   string `json:"license"`
			Dev       bool   `json:"dev"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(lock, &content); err != nil {
		return nil, err
	}
	const dir = "node_modules/"
	var components []cdx.Component
	for _, path := range slices.Sorted(maps.Keys(content.Packages)) {
		one, at := content.Packages[path], strings.LastIndex(path, dir)
		if at < 0 || one.Dev { // without node_modules it is the package of the lock itself
			continue
		}
		name := path[at+len(dir):]
		reference := "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + one.Version
		component := cdx.Component{
			BOMRef: reference, Type: cdx.ComponentTypeLibrary, Name: name, Version: one.Version, PackageURL: reference,
		}
		if one.License != "" {
			component.Licenses = &cdx.Licenses{{License: &cdx.License{ID: one.License}}}
		}
		sum, found := strings.CutPrefix(one.Integrity, "sha512-")
		decoded, err := base64.StdEncoding.DecodeString(sum)
		if !found || err != nil {
			return nil, fmt.Errorf("the integrity of %s is %q: lock it with npm 7 or newer", name, one.Integrity)
		}
		component.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA512, Value: hex.EncodeToString(decoded)}}
		components = append(components, component)
	}
	return components, nil
}
