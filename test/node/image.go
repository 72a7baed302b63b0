// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// loopback begins the names of images that this node pulls, over http.
const loopback = "127.0.0.1:"

// image is an unpacked image.
type image struct {
	root   string
	config imageConfig
}

// images are those of a node.
type images struct {
	// unpacker is the program of tools/release/unpack, and dir where it unpacks.
	unpacker, dir string
	// layouts are directories of OCI layouts by the name of an image.
	layouts map[string]string
	// unpacked are images by their layout, or by the name of what was pulled.
	unpacked map[string]image
}

// find returns the image of a container, which is unpacked, and pulled without a layout, the first time.
func (i *images) find(ctx context.Context, name string) (found image, err error) {
	source, known := i.layouts[name]
	switch {
	case known:
	case strings.HasPrefix(name, loopback):
		source = name
	default:
		return found, fmt.Errorf("image %q is none of %s", name, strings.Join(slices.Sorted(maps.Keys(i.layouts)), ", "))
	}
	if found, done := i.unpacked[source]; done {
		return found, nil
	}
	dir := filepath.Join(i.dir, fmt.Sprintf("image-%d", len(i.unpacked)))
	if out, err := exec.CommandContext(ctx, i.unpacker, source, dir).CombinedOutput(); err != nil {
		return found, fmt.Errorf("image %s: %w: %s", name, err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		return found, err
	}
	found.root = filepath.Join(dir, "root")
	if err := json.Unmarshal(text, &found.config); err != nil {
		return found, fmt.Errorf("decoding the configuration of image %s: %w", name, err)
	}
	i.unpacked[source] = found
	return found, nil
}

// imageConfig is the configuration of an image's containers.
type imageConfig struct {
	User       string   `json:"User"`
	Entrypoint []string `json:"Entrypoint"`
	Cmd        []string `json:"Cmd"`
	Env        []string `json:"Env"`
	WorkingDir string   `json:"WorkingDir"`
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
