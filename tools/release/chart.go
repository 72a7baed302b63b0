// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const chartName = "pulsar-autoscaler"

// placeholder is the registry of deploy/, which does not exist.
const placeholder = "example.invalid/" + chartName

// chartFile is what Helm calls the archive of the chart.
func (r release) chartFile() string { return chartName + "-" + r.chartVersion() + ".tgz" }

// chartVersion is without the v of Go modules, as is usual for charts.
func (r release) chartVersion() string { return strings.TrimPrefix(r.version, "v") }

// chart is the archive of deploy/chart for this version, with the digests of its images by program.
func (r release) chart(digests map[string]string, notes string) ([]byte, error) {
	files, err := r.chartFiles()
	if err != nil {
		return nil, err
	}
	shown, err := r.shown(digests, notes)
	if err != nil {
		return nil, err
	}
	// By file: a line, and what takes its place.
	set := map[string]map[string]string{"Chart.yaml": shown, "values.yaml": {}}
	if r.registry != "" {
		set["values.yaml"]["  registry: "+placeholder] = "  registry: " + r.registry
	}
	for program, digest := range digests {
		set["values.yaml"][fmt.Sprintf("    %s: %q", program, "")] = fmt.Sprintf("    %s: %s", program, digest)
	}
	for i, f := range files {
		name := strings.TrimPrefix(f.name, chartName+"/")
		if files[i].data, err = withLines(f, set[name]); err != nil {
			return nil, err
		}
		if strings.HasPrefix(name, "files/monitoring/") {
			files[i].data = r.versioned(files[i].data)
		}
	}
	return compressed(files)
}

// shown has the lines of Chart.yaml: versions, and for Artifact Hub what is new and the images.
//
// Source: https://artifacthub.io/docs/topics/annotations/helm/
func (r release) shown(digests map[string]string, notes string) (map[string]string, error) {
	images := []map[string]string{}
	for _, program := range slices.Sorted(maps.Keys(digests)) {
		images = append(images, map[string]string{
			"name": program, "image": cmp.Or(r.registry, placeholder) + "/" + program + "@" + digests[program],
		})
	}
	set := map[string]string{
		"version: 0.0.0": "version: " + r.chartVersion(), "appVersion: VERSION": "appVersion: " + r.version,
	}
	for name, value := range map[string]any{"changes": changes(notes), "images": images} {
		text, err := yaml.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("writing the %s of the chart: %w", name, err)
		}
		line := "  artifacthub.io/" + name + ": "
		set[line+`""`] = line + "|\n    " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n    ")
	}
	return set, nil
}

// withLines returns the text with other lines in place of those that a release sets.
func withLines(f file, set map[string]string) ([]byte, error) {
	data := f.data
	for line, value := range set {
		old := []byte("\n" + line + "\n")
		if bytes.Count(data, old) != 1 {
			return nil, fmt.Errorf("%s must have the line %q once: a release sets it", f.name, line)
		}
		data = bytes.Replace(data, old, []byte("\n"+value+"\n"), 1)
	}
	return data, nil
}

// versioned has links to pages lead to those of this version: the pages of later ones may say something else.
func (r release) versioned(text []byte) []byte {
	return bytes.ReplaceAll(text, []byte("/blob/main/"), []byte("/blob/"+r.version+"/"))
}

// chartFiles are the files of deploy/chart by their names in the archive, without what only tests need.
func (r release) chartFiles() ([]file, error) {
	files, err := filesOf(os.DirFS(filepath.Join(r.root, "deploy", "chart")), chartName)
	return slices.DeleteFunc(files, func(f file) bool {
		dirs := strings.Split(path.Dir(f.name), "/")
		return slices.Contains(dirs, "ci") || slices.Contains(dirs, "tests") || path.Base(f.name) == ".helmignore"
	}), err
}

func compressed(files []file) ([]byte, error) {
	packed, err := tarball(files)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	if _, err := writer.Write(packed); err != nil {
		return nil, fmt.Errorf("compressing an archive: %w", err)
	}
	err = writer.Close() // before the bytes are looked at: it writes the last of them
	return out.Bytes(), err
}
