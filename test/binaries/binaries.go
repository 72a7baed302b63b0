// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cache"
)

// ControlPlane has the paths of the control plane's programs.
type ControlPlane struct {
	Etcd              string
	APIServer         string
	ControllerManager string
	// KubernetesVersion is the version that the API server reports, e.g. "v1.37.2".
	KubernetesVersion string
}

// module is a Go module of test/binaries/build that pins programs of one project.
type module struct {
	name     string   // name of the project, and prefix of its directory in the cache
	dir      string   // of the module, below test/binaries/build
	pins     string   // the required module whose version is the project's
	packages []string // what to build; a binary is called by the last element of its package, unless output names it
	output   string
	links    []string                    // other names of the output
	tags     string                      // build tags, separated by commas
	compiler string                      // flags of the compiler for some packages, as for -gcflags; empty for none
	about    string                      // how long a cold build takes
	linker   func(version string) string // -X flags that stamp the version
	// a directory of the project's sources that is kept beside the binaries; empty for none
	copies string
}

// controlPlane is one program, since the three servers share most of what they are compiled of. Its go.mod requires the
// versions of ours: what the product and the servers share is compiled once too. The rest runs without inlining, which
// takes a third of its build.
func controlPlane() module {
	return module{
		name: "kubernetes", pins: "k8s.io/kubernetes", packages: []string{"."}, output: "controlplane",
		links:    []string{"etcd", "kube-apiserver", "kube-controller-manager"},
		compiler: "k8s.io/kubernetes/...=-dwarf=false -l",
		tags:     "grpcnotrace", // as the Makefile
		about:    "about 5 minutes on 2 cores",
		linker:   stampKubernetes,
	}
}

// stampKubernetes sets the variables that Kubernetes' release build sets from its git tag (hack/lib/version.sh).
// Without them the version is v0.0.0-master, on which clients and feature gates depend.
func stampKubernetes(version string) string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	var flags strings.Builder
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		fmt.Fprintf(&flags,
			" -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitTreeState=archive",
			pkg, version, major, minor)
	}
	return flags.String()
}

// BuildControlPlane returns the control plane's programs from the cache, and builds missing ones: about 5 minutes on 2
// cores, reported to progress (nil for none). A build needs the go command, and the network unless the Go module cache
// has the sources.
func BuildControlPlane(ctx context.Context, progress io.Writer) (ControlPlane, error) {
	dir, version, err := controlPlane().built(ctx, progress)
	if err != nil {
		return ControlPlane{}, err
	}
	return ControlPlane{
		Etcd:              filepath.Join(dir, "etcd"),
		APIServer:         filepath.Join(dir, "kube-apiserver"),
		ControllerManager: filepath.Join(dir, "kube-controller-manager"),
		KubernetesVersion: version,
	}, nil
}

// binaries returns the cache directory of the module's binaries, and their version.
func (m module) binaries(ctx context.Context, root string, progress io.Writer) (dir, version string, err error) {
	source := filepath.Join(root, m.dir)
	version, sum, err := m.pinned(source)
	if err != nil {
		return "", "", err
	}
	dir, err = cache.Fill(ctx, fmt.Sprintf("%s-%s-%s", m.name, version, sum), progress,
		func(ctx context.Context, dir string) error {
			what := fmt.Sprintf("building %s %s: %s", m.name, version, m.about)
			return cache.Announce(ctx, progress, what, func(ctx context.Context) error {
				if err := m.build(ctx, source, dir, version); err != nil {
					return err
				}
				return m.copyFiles(ctx, source, dir)
			})
		})
	if err != nil {
		return "", "", fmt.Errorf("building %s %s: %w", m.name, version, err)
	}
	return dir, version, nil
}

// pinned reads the version of the project from go.mod, its only source, and a checksum of what the binaries are built
// of.
func (m module) pinned(source string) (version, sum string, err error) {
	mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return "", "", err
	}
	sums, err := os.ReadFile(filepath.Join(source, "go.sum"))
	if err != nil {
		return "", "", err
	}
	main, err := os.ReadFile(filepath.Join(source, "main.go"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	found := regexp.MustCompile(`(?m)^(?:require|)\s+` + regexp.QuoteMeta(m.pins) + ` (v\S+)`).FindSubmatch(mod)
	if found == nil {
		return "", "", fmt.Errorf("reading %s: no version of %s is required", filepath.Join(source, "go.mod"), m.pins)
	}
	hash := sha256.New()
	for _, part := range []string{runtime.GOOS, runtime.GOARCH, string(mod), string(sums), string(main), m.compiler} {
		_, _ = fmt.Fprintf(hash, "%d\n%s", len(part), part)
	}
	return string(found[1]), fmt.Sprintf("%x", hash.Sum(nil))[:12], nil
}

func (m module) build(ctx context.Context, source, dir, version string) error {
	args := append([]string{
		"-mod=readonly", "-buildvcs=false", "-trimpath", "-tags", m.tags, "-ldflags", "-s -w" + m.linker(version),
		"-o", dir + string(filepath.Separator) + m.output,
	}, m.packages...)
	if m.compiler != "" {
		args = append([]string{"-gcflags=" + m.compiler}, args...)
	}
	if err := goBuild(ctx, source, args...); err != nil {
		return err
	}
	for _, name := range m.links {
		if err := os.Symlink(m.output, filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("linking %s: %w", name, err)
		}
	}
	return nil
}

// built returns the binaries of a module of the checkout.
func (m module) built(ctx context.Context, progress io.Writer) (dir, version string, err error) {
	root, err := buildDir()
	if err != nil {
		return "", "", err
	}
	return m.binaries(ctx, root, progress)
}

func buildDir() (string, error) {
	root, err := Checkout()
	return filepath.Join(root, "test", "binaries", "build"), err
}

// Checkout is the root of the source tree of the working directory.
func Checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the source tree: %w", err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "test", "binaries", "build", "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("finding the source tree: run this inside a checkout of pulsar-autoscaler")
}
