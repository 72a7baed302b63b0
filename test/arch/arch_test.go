// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/pulsar-autoscaler/pulsar-autoscaler/"

// listed is what `go list` says about a package.
type listed struct {
	ImportPath string   `json:"ImportPath"`
	Name       string   `json:"Name"`
	Dir        string   `json:"Dir"`
	Imports    []string `json:"Imports"`
	Deps       []string `json:"Deps"`
	GoFiles    []string `json:"GoFiles"`
}

// floor is what the packages of one floor may know.
type floor struct {
	// packages, by path below the module.
	packages []string
	// own packages that may be imported directly.
	own []string
	// never are import path prefixes that may not be reached, directly or through others, with the reason. One that ends
	// in "=", or names a package of the standard library, means that very package and not what is below it.
	never map[string]string
	// direct looks at the package's own imports alone.
	direct bool
}

func floors() []floor {
	const (
		clients    = "decisions and measurements must be replayable without a cluster"
		network    = "what is pure cannot wait for a server"
		kubernetes = "this edge knows the Kubernetes API"
		metrics    = "what is pure returns values and leaves counting to the edges"
	)
	return []floor{
		{
			packages: []string{"api/v1alpha1"},
			never: map[string]string{
				"k8s.io/client-go/kubernetes=": clients, "k8s.io/client-go/rest": clients,
				"sigs.k8s.io/controller-runtime": clients,
				"google.golang.org/grpc":         network, "github.com/prometheus/client_golang": metrics,
			},
		},
		{
			packages: []string{"backlog", "backlog/authparams"}, own: []string{"backlog"},
			never: map[string]string{
				"k8s.io": clients, "sigs.k8s.io": clients, "net/http": network, "google.golang.org/grpc": network,
				"github.com/prometheus": metrics, "log": "what is pure does not log",
				"math/rand": "the same input gives the same answer",
			},
		},
		{
			packages: []string{"backlog/function", "backlog/poll"}, own: []string{"backlog"},
			never: map[string]string{
				"k8s.io": clients, "sigs.k8s.io": clients, "net/http": network, "google.golang.org/grpc": network,
				"github.com/prometheus": metrics, "log": "what is pure does not log",
				"math/rand": "the same input gives the same answer",
			},
		},
		{
			// Our API brings the Kubernetes types along, so only direct imports can be told apart.
			packages: []string{"policy"}, own: []string{"api/v1alpha1", "backlog"}, direct: true,
			never: map[string]string{
				"k8s.io": clients, "sigs.k8s.io": clients, "net/http": network, "google.golang.org/grpc": network,
				"github.com/prometheus/client_golang": metrics, "log/slog": "what is pure does not log",
				"math/rand/v2": "the same input gives the same answer",
			},
		},
		{
			// The apply configurations of client-go reach its REST client, so only direct imports can be told apart.
			packages: []string{"policy/plan"}, own: []string{"api/v1alpha1", "backlog", "policy"}, direct: true,
			never: map[string]string{
				"k8s.io/client-go/kubernetes": clients, "k8s.io/client-go/rest": clients, "k8s.io/client-go/tools": clients,
				"sigs.k8s.io/controller-runtime": clients, "net/http": network, "google.golang.org/grpc": network,
				"github.com/prometheus/client_golang": metrics, "log/slog": "what is pure does not log",
				"math/rand/v2": "the same input gives the same answer",
			},
		},
		{
			packages: []string{"backlog/pulsar/auth"}, own: []string{"backlog", "backlog/authparams"},
			never: map[string]string{"k8s.io": "this edge knows Pulsar", "sigs.k8s.io": "this edge knows Pulsar"},
		},
		{
			packages: []string{"backlog/pulsar"},
			own:      []string{"backlog", "backlog/authparams", "backlog/function", "backlog/pulsar/auth"},
			never:    map[string]string{"k8s.io": "this edge knows Pulsar", "sigs.k8s.io": "this edge knows Pulsar"},
		},
		{
			packages: []string{"backlog/instance"}, own: []string{"backlog"},
			never: map[string]string{
				"k8s.io":      "this edge knows instances by their address",
				"sigs.k8s.io": "this edge knows instances by their address",
			},
		},
		{
			packages: []string{"provider"}, own: []string{"api/v1alpha1", "backlog", "policy", "policy/plan"},
			never: map[string]string{"sigs.k8s.io/controller-runtime": "this edge knows the metrics API server"},
		},
		{
			packages: []string{"provider/keda"}, direct: true,
			own: []string{"api/v1alpha1", "backlog", "backlog/function", "policy", "policy/plan"},
			never: map[string]string{
				"sigs.k8s.io/controller-runtime": "this edge knows KEDA", "k8s.io/client-go": "this edge knows KEDA",
			},
		},
		{
			packages: []string{"controllers/cluster"}, own: []string{"api/v1alpha1", "backlog", "policy", "policy/plan"},
			never: map[string]string{"sigs.k8s.io/custom-metrics-apiserver": kubernetes},
		},
		{
			packages: []string{"controllers/target"},
			own: []string{
				"api/v1alpha1", "backlog", "backlog/function", "policy", "policy/plan", "controllers/cluster",
			},
			never: map[string]string{"sigs.k8s.io/custom-metrics-apiserver": kubernetes},
		},
		{
			packages: []string{"controllers/informer"},
			own: []string{
				"api/v1alpha1", "backlog", "backlog/authparams", "backlog/function", "policy", "policy/plan",
				"controllers/cluster", "controllers/target",
			},
			never: map[string]string{"sigs.k8s.io/custom-metrics-apiserver": kubernetes},
		},
		{
			packages: []string{"controllers"},
			own: []string{
				"api/v1alpha1", "backlog", "backlog/function", "policy", "policy/plan", "controllers/cluster",
				"controllers/informer", "controllers/target",
			},
			never: map[string]string{"sigs.k8s.io/custom-metrics-apiserver": kubernetes},
		},
	}
}

func TestNoPackageKnowsMoreThanItsFloor(t *testing.T) {
	packages := list(t)
	for _, f := range floors() {
		for _, name := range f.packages {
			t.Run(name, func(t *testing.T) {
				p, found := packages[module+name]
				require.True(t, found, "package %s is gone: change its floor here", name)
				for _, imported := range p.Imports {
					if own, ours := strings.CutPrefix(imported, module); ours {
						require.Contains(t, f.own, own, "%s may not import %s", name, own)
					}
				}
				reachable := p.Deps
				if f.direct {
					reachable = p.Imports
				}
				for _, reached := range reachable {
					for prefix, reason := range f.never {
						require.False(t, reaches(reached, prefix), "%s reaches %s: %s", name, reached, reason)
					}
				}
			})
		}
	}
}

func reaches(path, prefix string) bool {
	exact, only := strings.CutSuffix(prefix, "=")
	isStandard := !strings.Contains(strings.Split(prefix, "/")[0], ".")
	return path == exact || !only && !isStandard && strings.HasPrefix(path, prefix+"/")
}

// On floors 0 and 1 backlog/poll alone has a context, a clock and goroutines.
func TestPurePackagesReadNoClockAndStartNothing(t *testing.T) {
	packages := list(t)
	forbidden := map[string]string{
		`"context"`: "it waits for no answer", "time.Now(": "now is an argument",
		"go func": "it starts nothing", `"golang.org/x/sync`: "it starts nothing",
	}
	for _, name := range []string{
		"api/v1alpha1", "backlog", "backlog/authparams", "backlog/function", "policy",
		"policy/plan",
	} {
		p := packages[module+name]
		for _, file := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			require.NoError(t, err)
			for what, reason := range forbidden {
				require.NotContains(t, string(text), what, "%s/%s: %s", name, file, reason)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	vague := []string{"util", "utils", "common", "helpers", "types", "pkg", "misc"}
	for path, p := range list(t) {
		if len(p.GoFiles) == 0 {
			continue // tests alone
		}
		require.NotContains(t, vague, p.Name, "%s: a package is a noun its user knows", path)
		require.True(t, slices.Contains(p.GoFiles, "doc.go"), "%s has no doc.go: its job, its floor, what it never does",
			path)
	}
}

func list(t *testing.T) map[string]listed {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-deps=false",
		"-json=ImportPath,Name,Dir,Imports,Deps,GoFiles", "./...")
	command.Dir = rootDir(t)
	out, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		require.NoError(t, err, string(failed.Stderr))
	}
	require.NoError(t, err)
	packages := map[string]listed{}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		require.NoError(t, err)
		packages[p.ImportPath] = p
	}
}

// rootDir is two floors up from this test.
func rootDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	return dir
}
