// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	gcrtarball "github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// index is one image for all platforms of a program.
func (r release) index(binaries []binary, base v1.Layer) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range binaries {
		image, err := r.image(b, base)
		if err != nil {
			return nil, fmt.Errorf("making the image of %s for %s: %w", b.program, b.platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: b.platform.os, Architecture: b.platform.arch}},
		})
	}
	labels, err := labels(binaries[0])
	if err != nil {
		return nil, err
	}
	annotated, ok := mutate.Annotations(index, labels).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("annotating the image of %s: the library gave no index", binaries[0].program)
	}
	return annotated, nil
}

func (r release) image(b binary, base v1.Layer) (v1.Image, error) {
	labels, err := labels(b)
	if err != nil {
		return nil, err
	}
	committed, err := b.committed()
	if err != nil {
		return nil, err
	}
	files, err := programFiles(b, filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	program, err := layer(files)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS: b.platform.os, Architecture: b.platform.arch, Created: v1.Time{Time: committed},
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User: user + ":" + user, Entrypoint: []string{"/" + b.program}, WorkingDir: "/", Labels: labels,
			Env: []string{"PATH=/"},
		},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(image,
		mutate.Addendum{Layer: base, History: history(committed, "certificate authorities, time zones, user")},
		mutate.Addendum{Layer: program, History: history(committed, b.program+" "+b.version())},
	)
}

func history(created time.Time, what string) v1.History {
	return v1.History{Created: v1.Time{Time: created}, CreatedBy: "tools/release", Comment: what}
}

// layer packs the files. The compression is that of the pinned toolchain's library.
func layer(files []file) (v1.Layer, error) {
	packed, err := tarball(files)
	if err != nil {
		return nil, err
	}
	return gcrtarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil },
		gcrtarball.WithMediaType(types.OCILayer))
}

// labels are those of the OCI image specification that the binary itself can prove.
func labels(b binary) (map[string]string, error) {
	committed, err := b.committed()
	if err != nil {
		return nil, err
	}
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title":    "pulsar-autoscaler " + b.program,
		prefix + "source":   "https://" + b.info.Main.Path,
		prefix + "licenses": "Apache-2.0",
		prefix + "version":  b.version(),
		prefix + "revision": b.revision(),
		prefix + "created":  committed.Format(time.RFC3339),
	}, nil
}

// versionAnnotation names an image of a layout.
const versionAnnotation = "org.opencontainers.image.ref.name"

// writeLayout writes the index as an OCI image layout, with its version as the name that tools import it by.
func writeLayout(dir, version string, index v1.ImageIndex) (v1.Hash, error) {
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("writing the image layout %s: %w", dir, err)
	}
	annotations := map[string]string{versionAnnotation: version}
	if err := path.AppendIndex(index, layout.WithAnnotations(annotations)); err != nil {
		return v1.Hash{}, fmt.Errorf("writing the image layout %s: %w", dir, err)
	}
	return index.Digest()
}
