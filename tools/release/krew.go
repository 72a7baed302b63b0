// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"fmt"
	"path"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// krewManifest is a plugin of kubectl as krew installs it.
//
// Source: sigs.k8s.io/krew v0.4.5, pkg/index/types.go.
type krewManifest struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   map[string]string `yaml:"metadata"`
	Spec       krewSpec          `yaml:"spec"`
}

type krewSpec struct {
	Version          string         `yaml:"version"`
	Homepage         string         `yaml:"homepage"`
	ShortDescription string         `yaml:"shortDescription"`
	Description      string         `yaml:"description"`
	Platforms        []krewPlatform `yaml:"platforms"`
}

type krewPlatform struct {
	Selector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	} `yaml:"selector"`
	URI    string `yaml:"uri"`
	SHA256 string `yaml:"sha256"`
	Bin    string `yaml:"bin"`
}

// plugin is the only program for kubectl.
const plugin = "kubectl-pap"

// krew returns the archives of the plugin by name, and its manifest, which names the release's own files.
func (r release) krew(binaries []binary) (map[string][]byte, error) {
	all := map[string][]byte{}
	manifest := newKrewManifest(r.version, "https://"+binaries[0].info.Main.Path)
	for _, b := range binaries {
		if b.program != plugin {
			continue
		}
		files, err := programFiles(b, filepath.Join(r.root, "LICENSE"))
		if err != nil {
			return nil, err
		}
		if b.platform.os == "windows" {
			files[0].name += ".exe"
		}
		packed, err := compressed(files)
		if err != nil {
			return nil, err
		}
		archive := plugin + "-" + b.platform.String() + ".tar.gz"
		all[archive] = packed
		p := krewPlatform{
			URI:    manifest.Spec.Homepage + "/releases/download/" + path.Join(r.version, archive),
			SHA256: fmt.Sprintf("%x", sha256.Sum256(packed)), Bin: files[0].name,
		}
		p.Selector.MatchLabels = map[string]string{"os": b.platform.os, "arch": b.platform.arch}
		manifest.Spec.Platforms = append(manifest.Spec.Platforms, p)
	}
	if len(manifest.Spec.Platforms) == 0 {
		return all, nil
	}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		return nil, fmt.Errorf("writing krew's manifest of %s: %w", plugin, err)
	}
	all["pap.krew.yaml"] = text
	return all, nil
}

func newKrewManifest(version, homepage string) krewManifest {
	return krewManifest{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin",
		Metadata: map[string]string{"name": "pap"},
		Spec: krewSpec{
			Version: version, Homepage: homepage, ShortDescription: "Autoscaling of Pulsar Functions",
			Description: "Lists policies by how far messages are from their latency objective, explains decisions,\n" +
				"simulates a policy on a load, and compares autoscalers on a cluster.\n",
		},
	}
}
