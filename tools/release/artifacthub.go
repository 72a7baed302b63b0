// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/semver"
)

// packageFile is what Artifact Hub calls the metadata of a package.
const packageFile = "artifacthub-pkg.yml"

// artifactHub is the scaler of this version as a package of Artifact Hub's kind "KEDA scaler". Its time is that of the
// commit, which any of its binaries knows.
func (r release) artifactHub(b binary) ([]byte, error) {
	committed, err := b.committed()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(r.root, "deploy", "artifacthub", packageFile))
	if err != nil {
		return nil, err
	}
	registry := cmp.Or(r.registry, placeholder)
	text, err = withLines(file{name: packageFile, data: text}, map[string]string{
		"version: 0.0.0":                    "version: " + r.chartVersion(),
		"appVersion: VERSION":               "appVersion: " + r.version,
		`createdAt: "1970-01-01T00:00:00Z"`: fmt.Sprintf("createdAt: %q", committed.Format(time.RFC3339)),
		"prerelease: false":                 fmt.Sprintf("prerelease: %t", semver.Prerelease(r.version) != ""),
		"  image: example.invalid/pulsar-autoscaler/scaler:VERSION": "  image: " + registry + "/scaler:" + r.version,
		"    pulsar-autoscaler-VERSION.tgz \\":                      "    " + r.chartFile() + " \\",
	})
	return r.versioned(text), err
}
