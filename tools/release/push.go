// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// imagesFile has the values of the chart that name the pushed images.
const imagesFile = "images.yaml"

// checkRegistry fails if no image can have a name below the registry.
func (r release) checkRegistry() error {
	if r.registry == "" {
		return errors.New("-push needs -registry: run make push REGISTRY=<registry and path>, " +
			"such as REGISTRY=registry.example.org/pulsar-autoscaler")
	}
	if strings.Contains(r.registry, "://") {
		return fmt.Errorf("REGISTRY (-registry) is the URL %s: leave out what is before the name of the host", r.registry)
	}
	if _, err := name.NewRepository(r.registry + "/program"); err != nil {
		return fmt.Errorf("reading REGISTRY (-registry), which is like registry.example.org/pulsar-autoscaler: %w", err)
	}
	return nil
}

// writeValues says how the chart takes the pushed images. It takes digests by program.
func (r release) writeValues(digests map[string]string) error {
	var values strings.Builder
	fmt.Fprintf(&values, "image:\n  registry: %q\n  digests:\n", r.registry)
	for _, program := range slices.Sorted(maps.Keys(digests)) {
		fmt.Fprintf(&values, "    %s: %s\n", program, digests[program])
	}
	if err := r.write(imagesFile, []byte(values.String())); err != nil {
		return err
	}
	file, err := filepath.Rel(r.root, filepath.Join(r.dist, imagesFile))
	if err != nil {
		return fmt.Errorf("naming %s as seen from the checkout: %w", imagesFile, err)
	}
	_, err = fmt.Fprintf(r.out, "\nThe images are pushed. Install them, from the root of the checkout, with\n\n"+
		"helm install pulsar-autoscaler deploy/chart --namespace pulsar-autoscaler --create-namespace "+
		"--values %s --set pulsar.adminURL=<URL of Pulsar's admin service>\n", filepath.ToSlash(file))
	return err
}

func (r release) pushImage(ctx context.Context, program, version string, index v1.ImageIndex) error {
	tag, err := name.NewTag(r.registry + "/" + program + ":" + tagOf(version))
	if err != nil {
		return fmt.Errorf("naming the image of %s: %w", program, err)
	}
	err = remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return fmt.Errorf("pushing %s, with the credentials of docker login if there are any: %w", tag, err)
	}
	_, err = fmt.Fprintln(r.out, "pushed", tag)
	return err
}

// tagOf is the version as a tag, which may have no plus sign.
func tagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }
