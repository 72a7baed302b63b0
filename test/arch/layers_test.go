// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The layers: a package imports those of lower layers.
const (
	pure      = iota // what is known
	decisions        // what follows from it; pure as well
	edges            // what speaks with Pulsar, Kubernetes and KEDA
	wiring           // mains, tests and benchmarks
)

// rule is what a package may import.
type rule struct {
	// layer of the package, and beside it the packages of that layer that it may import, besides those in its own folder.
	layer  int
	beside []string
	// never are import paths that it may not reach, with the reason: a path and all below it, but of the standard library
	// the package alone, as of a path that ends in "=".
	never map[string]string
	// direct looks at the package's own imports alone: others bring the Kubernetes types along.
	direct bool
}

// rules are those of each package. A package that is not here has no layer yet: give it one.
func rules() map[string]rule {
	const (
		clients    = "decisions and measurements must be replayable without a cluster"
		network    = "what is pure cannot wait for a server"
		counting   = "what is pure returns values and leaves counting to the edges"
		logging    = "what is pure does not log"
		chance     = "the same input gives the same answer"
		kubernetes = "this edge knows the Kubernetes API"
		keda       = "this edge knows KEDA"
		reading    = "it reads what was decided, see policy/served"
	)
	measurements := map[string]string{
		"k8s.io": clients, "sigs.k8s.io": clients, "net/http": network, "google.golang.org/grpc": network,
		"github.com/prometheus": counting, "log": logging, "math/rand": chance,
	}
	types := map[string]string{
		"k8s.io/client-go/kubernetes=": clients, "k8s.io/client-go/rest": clients, "sigs.k8s.io/controller-runtime": clients,
		"google.golang.org/grpc": network, "github.com/prometheus/client_golang": counting,
	}
	decision := map[string]string{
		"k8s.io": clients, "sigs.k8s.io": clients, "net/http": network, "google.golang.org/grpc": network,
		"github.com/prometheus/client_golang": counting, "log/slog": logging, "math/rand/v2": chance,
	}
	planning := map[string]string{
		"k8s.io/client-go/kubernetes": clients, "k8s.io/client-go/rest": clients, "k8s.io/client-go/tools": clients,
		"sigs.k8s.io/controller-runtime": clients, "net/http": network, "google.golang.org/grpc": network,
		"github.com/prometheus/client_golang": counting, "log/slog": logging, "math/rand/v2": chance,
	}
	pulsar := map[string]string{
		"k8s.io": "this edge knows Pulsar", "sigs.k8s.io": "this edge knows Pulsar", module + "policy": "it only measures",
	}
	metricsAPI := map[string]string{
		"sigs.k8s.io/controller-runtime": "this edge knows the metrics API server", module + "policy/plan": reading,
	}
	scaler := map[string]string{
		"sigs.k8s.io/controller-runtime": keda, "k8s.io/client-go": keda, module + "policy/plan": reading,
	}
	cluster := map[string]string{"sigs.k8s.io/custom-metrics-apiserver": kubernetes}
	return map[string]rule{
		"api/v1alpha1":       {layer: pure, never: types},
		"backlog":            {layer: pure, never: measurements},
		"backlog/authparams": {layer: pure, beside: []string{"backlog"}, never: measurements},
		"backlog/function":   {layer: pure, beside: []string{"backlog"}, never: measurements},
		"backlog/poll":       {layer: pure, beside: []string{"backlog"}, never: measurements},

		"policy":          {layer: decisions, beside: []string{"policy/forecast"}, never: decision, direct: true},
		"policy/forecast": {layer: decisions, never: decision, direct: true},
		"policy/plan": {
			layer: decisions, beside: []string{"policy", "policy/served"}, never: planning, direct: true,
		},
		"policy/report": {
			layer: decisions, beside: []string{"policy", "policy/forecast", "policy/plan", "policy/served"}, never: planning,
			direct: true,
		},
		"policy/set": {
			layer: decisions, beside: []string{"policy/plan", "policy/report"}, never: planning, direct: true,
		},
		"policy/migrate": {
			layer: decisions, beside: []string{"policy/plan", "policy/schedule", "policy/set"}, never: planning, direct: true,
		},
		"policy/schedule": {layer: decisions, beside: []string{"policy"}, never: planning, direct: true},
		"policy/served":   {layer: decisions, beside: []string{"policy"}, never: planning, direct: true},

		"backlog/instance":      {layer: edges, never: pulsar},
		"backlog/pulsar":        {layer: edges, never: pulsar},
		"backlog/pulsar/auth":   {layer: edges, never: pulsar},
		"backlog/pulsar/reader": {layer: edges, never: pulsar},
		"controllers":           {layer: edges, never: cluster},
		"controllers/cluster":   {layer: edges, never: cluster},
		"controllers/target":    {layer: edges, beside: []string{"controllers/cluster"}, never: cluster},
		"controllers/informer": {
			layer: edges, beside: []string{"controllers/cluster", "controllers/target"}, never: cluster,
		},
		"controllers/metrics": {layer: edges, never: cluster},
		"controllers/policyset": {
			layer: edges, beside: []string{"controllers/cluster", "controllers/target"}, never: cluster,
		},
		"controllers/serving": {layer: edges, beside: []string{"controllers/cluster"}, never: cluster},
		"provider":            {layer: edges, never: metricsAPI},
		"provider/response":   {layer: edges, never: scaler, direct: true},
		"provider/keda":       {layer: edges, beside: []string{"provider/response"}, never: scaler, direct: true},
	}
}

// ours are the packages of the product and what they import of it, by their paths below the module.
func ours(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for path, p := range list(t) {
		name, isOurs := strings.CutPrefix(path, module)
		if top, _, _ := strings.Cut(name, "/"); !isOurs || !slices.Contains(product(), top) {
			continue
		}
		found[name] = []string{}
		for _, imported := range p.Imports {
			if other, isOurs := strings.CutPrefix(imported, module); isOurs {
				found[name] = append(found[name], other)
			}
		}
	}
	return found
}

// plugin is the program that ships the benchmarks.
const plugin = "cmd/kubectl-pap"

func TestImportsGoDownTheLayers(t *testing.T) {
	at := rules()
	for name, imports := range ours(t) {
		if strings.HasPrefix(name, "cmd/") {
			for _, other := range imports {
				isBench := strings.HasPrefix(other, "bench/") && name != plugin
				require.False(t, strings.HasPrefix(other, "test/") || isBench,
					"%s ships and imports %s", name, other)
			}
			continue
		}
		here, known := at[name]
		require.True(t, known, "%s has no layer", name)
		for _, other := range imports {
			there, known := at[other]
			if !known {
				there.layer = wiring
			}
			isBelow := there.layer < here.layer ||
				there.layer == here.layer && (strings.HasPrefix(other, name+"/") || slices.Contains(here.beside, other))
			require.True(t, isBelow, "%s may not import %s, which is in no lower layer", name, other)
		}
	}
}

func TestNoPackageReachesWhatItMayNotKnow(t *testing.T) {
	packages := list(t)
	for name, at := range rules() {
		t.Run(name, func(t *testing.T) {
			p, found := packages[module+name]
			require.True(t, found, "package %s is gone: remove its layer here", name)
			reachable := p.Deps
			if at.direct {
				reachable = p.Imports
			}
			for _, reached := range reachable {
				for prefix, reason := range at.never {
					require.False(t, reaches(reached, prefix), "%s reaches %s: %s", name, reached, reason)
				}
			}
		})
	}
}

func reaches(path, prefix string) bool {
	exact, only := strings.CutSuffix(prefix, "=")
	isStandard := !strings.Contains(strings.Split(prefix, "/")[0], ".")
	return path == exact || !only && !isStandard && strings.HasPrefix(path, prefix+"/")
}

// clocks are the files of pure packages with a clock, a context or goroutines: the poller, and the Source it calls.
func clocks() []string {
	return []string{
		"backlog/poll/poller.go",
	}
}

func TestPurePackagesTakeTimeAsAnArgument(t *testing.T) {
	forbidden := map[string]string{
		`"context"`: "it waits for nothing", "time.Now(": "now is an argument", "go func": "it starts nothing",
		`"log/slog"`: "it returns what is to be logged", `"math/rand`: "the same input gives the same answer",
		`"net/http"`: "it calls no server", `"golang.org/x/sync`: "it starts nothing",
	}
	packages := list(t)
	for name, at := range rules() {
		if at.layer > decisions {
			continue
		}
		p := packages[module+name]
		for _, file := range p.GoFiles {
			if slices.Contains(clocks(), name+"/"+file) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			require.NoError(t, err)
			for what, reason := range forbidden {
				require.NotContains(t, string(text), what, "%s/%s: %s", name, file, reason)
			}
		}
	}
}
