// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// largestFile is the limit for a file of an image.
const largestFile = 1 << 30

// image is an unpacked image of an OCI layout.
type image struct {
	root   string
	config imageConfig
}

// images are the unpacked images of a node.
type images struct {
	dir              string
	byName, byLayout map[string]image
}

// unpack unpacks an OCI layout for an image name.
func (i *images) unpack(name, layout string) (err error) {
	unpacked, done := i.byLayout[layout]
	if !done {
		unpacked, err = unpack(layout, filepath.Join(i.dir, fmt.Sprintf("image-%d", len(i.byLayout))))
		if err != nil {
			return fmt.Errorf("unpacking image %s: %w", name, err)
		}
		i.byLayout[layout] = unpacked
	}
	i.byName[name] = unpacked
	return nil
}

// find returns the image of a container, and pulls it the first time.
func (i *images) find(ctx context.Context, name string) (image, error) {
	found, known := i.byName[name]
	if known {
		return found, nil
	}
	if !strings.HasPrefix(name, loopback) {
		return image{}, fmt.Errorf("image %q is none of %s", name, strings.Join(slices.Sorted(maps.Keys(i.byName)), ", "))
	}
	layout := filepath.Join(i.dir, fmt.Sprintf("pulled-%d", len(i.byLayout)))
	if err := pull(ctx, name, layout); err != nil {
		return image{}, err
	}
	err := i.unpack(name, layout)
	return i.byName[name], err
}

// imageConfig is the configuration of an image's containers.
type imageConfig struct {
	User       string   `json:"User"`
	Entrypoint []string `json:"Entrypoint"`
	Cmd        []string `json:"Cmd"`
	Env        []string `json:"Env"`
	WorkingDir string   `json:"WorkingDir"`
}

// descriptor refers to a blob of an OCI layout.
type descriptor struct {
	Digest   string `json:"digest"`
	Platform struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
	} `json:"platform"`
}

// manifest is an index, with manifests, or an image, with a config and layers.
type manifest struct {
	Manifests []descriptor `json:"manifests"`
	Config    descriptor   `json:"config"`
	Layers    []descriptor `json:"layers"`
}

// unpack unpacks the image for this machine from an OCI layout into root.
func unpack(layout, root string) (image, error) {
	var m manifest
	if err := readJSON(filepath.Join(layout, "index.json"), &m); err != nil {
		return image{}, err
	}
	for m.Config.Digest == "" { // an index of images or indexes
		next, err := m.forThisMachine()
		if err != nil {
			return image{}, fmt.Errorf("reading %s: %w", layout, err)
		}
		m = manifest{}
		if err := readJSON(next.path(layout), &m); err != nil {
			return image{}, err
		}
	}
	var config struct {
		Config imageConfig `json:"config"`
	}
	if err := readJSON(m.Config.path(layout), &config); err != nil {
		return image{}, err
	}
	for _, layer := range m.Layers {
		if err := unpackLayer(layer.path(layout), root); err != nil {
			return image{}, fmt.Errorf("unpacking layer %s: %w", layer.Digest, err)
		}
	}
	return image{root: root, config: config.Config}, nil
}

func (m manifest) forThisMachine() (descriptor, error) {
	for _, d := range m.Manifests {
		if d.Platform.OS == "" || d.Platform.OS == runtime.GOOS && d.Platform.Architecture == runtime.GOARCH {
			return d, nil
		}
	}
	return descriptor{}, fmt.Errorf("no image for %s/%s", runtime.GOOS, runtime.GOARCH)
}

func (d descriptor) path(layout string) string {
	algorithm, digest, _ := strings.Cut(d.Digest, ":")
	return filepath.Join(layout, "blobs", algorithm, digest)
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("decoding %s: %w", path, err)
	}
	return nil
}

func unpackLayer(path, root string) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	unzipped, err := gzip.NewReader(bufio.NewReader(file))
	if err != nil {
		return err
	}
	reader := tar.NewReader(unzipped)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := unpackEntry(root, header, reader); err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
	}
}

func unpackEntry(root string, header *tar.Header, content io.Reader) (err error) {
	if !filepath.IsLocal(filepath.Clean(strings.TrimPrefix(header.Name, "/"))) {
		return errors.New("is outside of the image")
	}
	path := filepath.Join(root, header.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return os.MkdirAll(path, 0o755)
	case tar.TypeSymlink:
		return os.Symlink(header.Linkname, path)
	case tar.TypeReg:
		mode := header.FileInfo().Mode().Perm()
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, io.LimitReader(content, largestFile))
		return errors.Join(err, file.Close())
	default:
		return fmt.Errorf("has type %q, which is not unpacked", header.Typeflag)
	}
}

// copyTo creates a tree of hard links to the image's files in root.
func (i image) copyTo(root string) error {
	return filepath.WalkDir(i.root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(i.root, path)
		if err != nil {
			return err
		}
		target := filepath.Join(root, relative)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		return os.Link(path, target)
	})
}
