// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// kedaCRDs is the directory of KEDA's definitions, in its sources and in the cache.
const kedaCRDs = "config/crd/bases"

// KEDA has the paths of KEDA's programs and of its definitions.
type KEDA struct {
	Operator      string
	MetricsServer string
	// CRDs are the files of KEDA's CustomResourceDefinitions, as in Config.CRDs.
	CRDs []string
	// Version of KEDA, e.g. "v2.21.0".
	Version string
}

func kedaModule() module {
	return module{
		name: "keda", dir: "keda", pins: "github.com/kedacore/keda/v2",
		packages: []string{"github.com/kedacore/keda/v2/cmd/operator", "github.com/kedacore/keda/v2/cmd/adapter"},
		about:    "about 7 minutes on 2 cores",
		linker: func(version string) string {
			return " -X github.com/kedacore/keda/v2/version.Version=" + strings.TrimPrefix(version, "v")
		},
		copies: kedaCRDs,
	}
}

// BuildKEDA returns KEDA's operator and metrics server from the cache, and builds missing ones as BuildControlPlane
// does: about 7 minutes on 2 cores.
func BuildKEDA(ctx context.Context, progress io.Writer) (KEDA, error) {
	dir, version, err := kedaModule().built(ctx, progress)
	if err != nil {
		return KEDA{}, err
	}
	crds, err := filepath.Glob(filepath.Join(dir, kedaCRDs, "*.yaml"))
	if err != nil || len(crds) == 0 {
		return KEDA{},
			errors.Join(fmt.Errorf("finding KEDA's CustomResourceDefinitions in %s: none are there: remove the directory", dir),
				err)
	}
	return KEDA{
		Operator: filepath.Join(dir, "operator"), MetricsServer: filepath.Join(dir, "adapter"), CRDs: crds, Version: version,
	}, nil
}

// copyFiles copies m.copies of the project's sources into dir, so that the cache needs no sources.
func (m module) copyFiles(ctx context.Context, source, dir string) error {
	if m.copies == "" {
		return nil
	}
	list := exec.CommandContext(ctx, "go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", m.pins)
	list.Dir = source
	list.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("finding the sources of %s: %w", m.pins, err)
	}
	from := filepath.Join(strings.TrimSpace(string(out)), filepath.FromSlash(m.copies))
	if err := os.CopyFS(filepath.Join(dir, filepath.FromSlash(m.copies)), os.DirFS(from)); err != nil {
		return fmt.Errorf("copying %s of %s: %w", m.copies, m.pins, err)
	}
	return nil
}
