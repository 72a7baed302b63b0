// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cache"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

// Bins are the paths of the control plane's binaries.
type Bins struct {
	Etcd              string
	APIServer         string
	ControllerManager string
	// KubernetesVersion is the version that the API server reports, e.g. "v1.36.3".
	KubernetesVersion string
}

// module is a Go module of test/cluster/build that pins programs of one project.
type module struct {
	name     string   // name of the project, and prefix of its directory in the cache
	dir      string   // of the module, below test/cluster/build
	pins     string   // the required module whose version is the project's
	packages []string // what to build; a binary is called by the last element of its package, unless output names it
	output   string
	tags     string                      // build tags, separated by commas
	about    string                      // how long a cold build takes
	linker   func(version string) string // -X flags that stamp the version
	// a directory of the project's sources that is kept beside the binaries; empty for none
	copies string
}

func modules() (etcd, kubernetes module) {
	etcd = module{
		name: "etcd", dir: "etcd", pins: "go.etcd.io/etcd/server/v3", output: "etcd",
		packages: []string{"go.etcd.io/etcd/server/v3"},
		about:    "about 1 minute on 2 cores",
		linker:   func(string) string { return "" },
	}
	kubernetes = module{
		name: "kubernetes", pins: "k8s.io/kubernetes",
		packages: []string{"k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kube-controller-manager"},
		about:    "about 6 minutes on 2 cores",
		linker:   stampKubernetes,
	}
	return etcd, kubernetes
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

// Binaries returns the control plane's binaries from the cache, and builds missing ones: about 7 minutes on 2 cores,
// reported to progress (nil for none). A build needs the go command, and the network unless the Go module cache has the
// sources.
func Binaries(ctx context.Context, progress io.Writer) (Bins, error) {
	root, err := buildDir()
	if err != nil {
		return Bins{}, err
	}
	etcd, kubernetes := modules()
	etcdDir, _, err := etcd.binaries(ctx, root, progress)
	if err != nil {
		return Bins{}, err
	}
	kubernetesDir, version, err := kubernetes.binaries(ctx, root, progress)
	if err != nil {
		return Bins{}, err
	}
	return Bins{
		Etcd:              filepath.Join(etcdDir, "etcd"),
		APIServer:         filepath.Join(kubernetesDir, "kube-apiserver"),
		ControllerManager: filepath.Join(kubernetesDir, "kube-controller-manager"),
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

// pinned reads the version of the project from go.mod, its only source, and the checksum of the binaries' dependencies.
func (m module) pinned(source string) (version, sum string, err error) {
	mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return "", "", err
	}
	sums, err := os.ReadFile(filepath.Join(source, "go.sum"))
	if err != nil {
		return "", "", err
	}
	found := regexp.MustCompile(`(?m)^(?:require|)\s+` + regexp.QuoteMeta(m.pins) + ` (v\S+)`).FindSubmatch(mod)
	if found == nil {
		return "", "", fmt.Errorf("reading %s: no version of %s is required", filepath.Join(source, "go.mod"), m.pins)
	}
	hash := sha256.New()
	for _, part := range []string{runtime.GOOS, runtime.GOARCH, string(mod), string(sums)} {
		_, _ = fmt.Fprintf(hash, "%d\n%s", len(part), part)
	}
	return string(found[1]), fmt.Sprintf("%x", hash.Sum(nil))[:12], nil
}

func (m module) build(ctx context.Context, source, dir, version string) error {
	tool, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("finding the go command: %w: install Go 1.26 or newer from https://go.dev/dl and put it into PATH",
			err)
	}
	args := []string{
		"build", "-mod=readonly", "-buildvcs=false", "-trimpath", "-tags", m.tags, "-ldflags", "-s -w" + m.linker(version),
		"-o", dir + string(filepath.Separator) + m.output,
	}
	// In a process of its own: the compilers end with this process, and a build error has its last lines.
	p, err := proc.Start(ctx, proc.Config{
		Name: "go build", Path: tool, Args: append(args, m.packages...), Dir: source,
		Env: []string{"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH},
	})
	if err != nil {
		return err
	}
	<-p.Done()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf("%w\n%s", err, p.LogTail(30))
	}
	return nil
}

// buildDir finds test/cluster/build beside this source file, or, with -trimpath, in the tree of the working directory.
func buildDir() (string, error) {
	_, file, _, _ := runtime.Caller(0) //nolint:dogsled // only the file is used
	candidates := []string{filepath.Join(filepath.Dir(file), "build")}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the source tree: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		candidates = append(candidates, filepath.Join(dir, "test", "cluster", "build"))
		if dir == filepath.Dir(dir) {
			break
		}
	}
	for _, candidate := range candidates {
		if _, err := os.Stat(filepath.Join(candidate, "go.mod")); err == nil && filepath.IsAbs(candidate) {
			return candidate, nil
		}
	}
	return "", errors.New("finding test/cluster/build: run this inside a checkout of pulsar-autoscaler")
}
