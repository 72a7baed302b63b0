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

// The floors: a package imports those of lower floors.
const (
	pure      = iota // what is known
	decisions        // what follows from it; pure as well
	edges            // what speaks with Pulsar, Kubernetes and KEDA
	wiring           // mains, tests and benchmarks
)

// house is where each package stands, and which packages of its own floor it imports besides those below it in its own
// folder. A package that is not here has no floor yet: give it one.
func house() map[string]standing {
	return map[string]standing{
		"api/v1alpha1":        {floor: pure},
		"backlog":             {floor: pure},
		"backlog/authparams":  {floor: pure, beside: []string{"backlog"}},
		"backlog/function":    {floor: pure, beside: []string{"backlog"}},
		"backlog/poll":        {floor: pure, beside: []string{"backlog"}},
		"policy":              {floor: decisions},
		"policy/plan":         {floor: decisions, beside: []string{"policy"}},
		"backlog/instance":    {floor: edges},
		"backlog/pulsar":      {floor: edges},
		"backlog/pulsar/auth": {floor: edges},
		"controllers":         {floor: edges},
		"controllers/cluster": {floor: edges},
		"controllers/target":  {floor: edges, beside: []string{"controllers/cluster"}},
		"controllers/informer": {
			floor: edges, beside: []string{"controllers/cluster", "controllers/target"},
		},
		"provider":      {floor: edges},
		"provider/keda": {floor: edges},
	}
}

type standing struct {
	floor  int
	beside []string
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

func TestImportsGoDownTheFloors(t *testing.T) {
	at := house()
	for name, imports := range ours(t) {
		if strings.HasPrefix(name, "cmd/") {
			for _, other := range imports {
				require.False(t, strings.HasPrefix(other, "test/") || strings.HasPrefix(other, "bench/"),
					"%s ships and imports %s", name, other)
			}
			continue
		}
		here, known := at[name]
		require.True(t, known, "%s has no floor", name)
		for _, other := range imports {
			there, known := at[other]
			if !known {
				there.floor = wiring
			}
			isBelow := there.floor < here.floor ||
				there.floor == here.floor && (strings.HasPrefix(other, name+"/") || slices.Contains(here.beside, other))
			require.True(t, isBelow, "%s may not import %s, which is no floor below", name, other)
		}
	}
}

// clocks are the files of pure packages with a clock, a context or goroutines: the poller, and the Source it calls.
func clocks() []string {
	return []string{
		"backlog/poller.go", "backlog/sample.go", "backlog/poll/poller.go", "backlog/poll/source.go",
	}
}

func TestPurePackagesTakeTimeAsAnArgument(t *testing.T) {
	forbidden := map[string]string{
		`"context"`: "it waits for nothing", "time.Now(": "now is an argument", "go func": "it starts nothing",
		`"log/slog"`: "it returns what is to be logged", `"math/rand`: "the same input gives the same answer",
		`"net/http"`: "it asks no server",
	}
	packages := list(t)
	for name, at := range house() {
		if at.floor > decisions {
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
