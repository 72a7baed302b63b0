// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// release is what to build from which checkout. Without a version it is the images alone, for the platform only and of
// the program, or of all where these are empty. The chart names the registry, unless it is empty. If pushed, the
// registry has the images of the programs that the chart deploys.
type release struct {
	root, dist, version, only, program, registry string
	pushed                                       bool
	out                                          io.Writer
}

func (r release) run(ctx context.Context) (err error) {
	var documents map[string][]byte
	if err := r.check(); err != nil {
		return err
	}
	if r.version != "" {
		if documents, err = r.documents(); err != nil {
			return err
		}
	}
	names, err := r.programs()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binaries, err := r.buildAll(ctx, dir, names)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(r.dist); err != nil {
		return fmt.Errorf("emptying %s: %w", r.dist, err)
	}
	digests, err := r.releaseImages(ctx, names, binaries)
	if err == nil && r.pushed {
		err = r.writeValues(digests)
	}
	if err != nil || r.version == "" {
		return err
	}
	if documents[r.chartFile()], err = r.chart(digests, string(documents[notesFile])); err != nil {
		return err
	}
	if documents[packageFile], err = r.artifactHub(binaries[0]); err != nil {
		return err
	}
	name, bundle, err := r.bundle(binaries[0], digests)
	if err != nil {
		return err
	}
	documents[name] = bundle
	return r.writeFiles(binaries, documents)
}

// check fails before minutes of building.
func (r release) check() error {
	switch {
	case r.version != "" && r.only+r.program != "":
		return errors.New("a release has all programs for all platforms: leave -platform and -program out")
	case r.pushed:
		return r.checkRegistry()
	}
	return nil
}

// documents are the files of a release that are not built.
func (r release) documents() (map[string][]byte, error) {
	if semver.Canonical(r.version) != r.version {
		return nil, fmt.Errorf("version %q is no version of a Go module: it must look like v1.2.3 or v1.2.3-rc.1", r.version)
	}
	changelog, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	text, err := notes(string(changelog), r.version)
	if err != nil {
		return nil, err
	}
	module, err := os.ReadFile(filepath.Join(r.root, "go.mod"))
	if err != nil {
		return nil, err
	}
	text = withAbsoluteLinks(text, "https://"+modfile.ModulePath(module)+"/blob/"+r.version)
	crds, err := r.crds()
	return map[string][]byte{notesFile: []byte(text), "crds.yaml": crds}, err
}

// checkVersion believes the binary, which knows its commit's tag and whether something was changed.
func (r release) checkVersion(b binary) error {
	if r.version == "" || b.version() == r.version {
		return nil
	}
	return fmt.Errorf("%s says its version is %s and not %s: commit all changes, and tag the commit (git tag %[3]s)",
		b.program, b.version(), r.version)
}

// releaseImages writes an image of each program that runs in a cluster, and prints their digests. It returns those of
// programs that the chart deploys, and pushes those if asked to.
func (r release) releaseImages(ctx context.Context, names []string, binaries []binary) (map[string]string, error) {
	goroot, err := r.goTool(ctx, serverPlatforms()[0], "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	files, err := base(filepath.Join(goroot, "lib", "time", "zoneinfo.zip"))
	if err != nil {
		return nil, err
	}
	baseLayer, err := layer(files)
	if err != nil {
		return nil, err
	}
	digests, indexes, versions := map[string]string{}, map[string]v1.ImageIndex{}, map[string]string{}
	for _, name := range names {
		elsewhere := func(b binary) bool { return b.program != name || !slices.Contains(serverPlatforms(), b.platform) }
		built := slices.DeleteFunc(slices.Clone(binaries), elsewhere)
		index, err := r.index(built, baseLayer)
		if err != nil {
			return nil, err
		}
		digest, err := r.writeImage(name, built[0].version(), index)
		if err != nil {
			return nil, err
		}
		if isPlugin(name) {
			continue
		}
		digests[name], indexes[name], versions[name] = digest.String(), index, built[0].version()
	}
	if !r.pushed {
		return digests, nil
	}
	for _, name := range slices.Sorted(maps.Keys(indexes)) { // once all could be written
		if err := r.pushImage(ctx, name, versions[name], indexes[name]); err != nil {
			return nil, err
		}
	}
	return digests, nil
}

func (r release) writeImage(program, version string, index v1.ImageIndex) (v1.Hash, error) {
	dir := filepath.Join(r.dist, "images", program)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return v1.Hash{}, err
	}
	digest, err := writeLayout(dir, version, index)
	if err != nil {
		return v1.Hash{}, err
	}
	_, err = fmt.Fprintln(r.out, program, version, digest)
	return digest, err
}

// writeFiles writes everything of a release but the images' layouts, and the checksums of all of it.
func (r release) writeFiles(binaries []binary, documents map[string][]byte) error {
	for _, b := range binaries {
		program, err := os.ReadFile(b.path)
		if err != nil {
			return err
		}
		err = os.WriteFile(filepath.Join(r.dist, b.name()), program, 0o755) //nolint:gosec // G306: for everyone to run
		if err != nil {
			return err
		}
		bom, err := materials(b)
		if err != nil {
			return err
		}
		if err := r.write(b.name()+".cdx.json", bom); err != nil {
			return err
		}
	}
	plugins, err := r.krew(binaries)
	if err != nil {
		return err
	}
	maps.Copy(documents, plugins)
	for name, text := range documents {
		if err := r.write(name, text); err != nil {
			return err
		}
	}
	if err := r.packImages(); err != nil {
		return err
	}
	sums, err := r.checksums()
	if err != nil {
		return err
	}
	return r.write("SHA256SUMS", sums)
}

// crds is one file of all CustomResourceDefinitions.
func (r release) crds() ([]byte, error) {
	paths, err := filepath.Glob(filepath.Join(r.root, "deploy", "crd", "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, errors.New("deploy/crd has no CustomResourceDefinitions: run make generate")
	}
	var all bytes.Buffer
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if !bytes.HasPrefix(text, []byte("---\n")) {
			all.WriteString("---\n")
		}
		all.Write(text)
	}
	return all.Bytes(), nil
}

// packImages puts each image layout into one file, which registries' tools take as an OCI archive.
func (r release) packImages() error {
	layouts, err := os.ReadDir(filepath.Join(r.dist, "images"))
	if err != nil {
		return err
	}
	for _, entry := range layouts {
		files, err := filesOf(os.DirFS(filepath.Join(r.dist, "images", entry.Name())), "")
		if err != nil {
			return err
		}
		packed, err := tarball(files)
		if err != nil {
			return err
		}
		if err := r.write(entry.Name()+"-image.tar", packed); err != nil {
			return err
		}
	}
	return nil
}

// checksums are those of the files in dist, as sha256sum prints and checks them.
func (r release) checksums() ([]byte, error) {
	entries, err := os.ReadDir(r.dist)
	if err != nil {
		return nil, err
	}
	var lines strings.Builder
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(r.dist, entry.Name()))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(data), entry.Name())
	}
	return []byte(lines.String()), nil
}

func (r release) write(name string, data []byte) error {
	path := filepath.Join(r.dist, name)
	if err := os.WriteFile(path, data, 0o644); err != nil { //nolint:gosec // G306: for everyone to read
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
