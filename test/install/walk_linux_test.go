// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/guide"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// makeOnce runs make push for the first guide alone: the same commit gives the same images.
const makeOnce = `#!/bin/sh
[ -e dist/images.yaml ] || exec %s "$@" PLATFORM=%s
`

// removed is the last section of each guide.
const removed = "Remove it"

// mostChanges bounds the commands of a guide that change something, from a cluster with Pulsar to a scaled target.
const mostChanges = 6

// change is a command that changes something: it is no loop, no wait and no query.
var change = regexp.MustCompile(`(?m)^ *(TOKEN=\$\()?(make|go build|helm|pulsar|pulsar-admin|` +
	`kubectl( -n \S+)? (apply|patch|delete|scale)|kubectl pap migrate)\b`)

// walk is a guide that is followed. A section's function runs after its commands, with their output.
type walk struct {
	page string
	// names replaces what the page says to replace.
	names []string
	// programs is a directory of more programs, and env has more variables.
	programs string
	env      []string
	after    map[string]func(t *testing.T, output string)
	// optional are sections that not everybody needs.
	optional []string
}

// TestTheGuidesWork runs the commands of guides from a cluster with Pulsar to a scaled target, and back: with make, the
// real helm, kubectl and plugin, and images that the node pulls from a registry. Three guides are always run.
func TestTheGuidesWork(t *testing.T) {
	s := open(t)
	w := s.newWalker(t)
	t.Run("Function Mesh", func(t *testing.T) { s.followFunctionMesh(t, w) })
	t.Run("own worker with tokens", func(t *testing.T) { s.followTokens(t, w) })
	t.Run("from KEDA", func(t *testing.T) { s.followFromKEDA(t, w) })
	if runAll() {
		t.Run("a Deployment", func(t *testing.T) { s.followDeployment(t, w) })
		t.Run("KEDA beside it", func(t *testing.T) { s.followKEDA(t, w) })
	}
}

// walker runs commands in a checkout.
type walker struct {
	checkout, registry string
	// path is PATH, and env the other variables.
	path string
	env  []string
}

// newWalker starts a registry in memory.
func (s *scene) newWalker(t *testing.T) *walker {
	t.Helper()
	port, err := proc.FreePort()
	require.NoError(t, err)
	bin := t.TempDir()
	w := &walker{
		checkout: s.built.checkout(), registry: fmt.Sprintf("127.0.0.1:%d", port),
		path: strings.Join([]string{bin, s.built.programs(), os.Getenv("PATH")}, string(os.PathListSeparator)),
		env: append(os.Environ(), "KUBECONFIG="+s.Cluster.Kubeconfig(), "KUBECACHEDIR="+s.home, "MAKEFLAGS=",
			"HELM_CACHE_HOME="+s.home, "HELM_CONFIG_HOME="+s.home, "HELM_DATA_HOME="+s.home),
	}
	process, err := proc.Start(t.Context(), proc.Config{
		Name: "registry", Path: filepath.Join(s.built.programs(), "registry"), Args: []string{w.registry},
	})
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	s.Await(t, "the registry to respond", func(ctx context.Context) (bool, string, error) {
		return cluster.Answers(ctx, http.DefaultClient, "http://"+w.registry+"/v2/")
	})
	program, err := exec.LookPath("make")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "make"), fmt.Appendf(nil, makeOnce, program, platform()), 0o700))
	return w
}

// follow runs all commands of a guide, in order, and nothing else. The last one waits until the namespace is gone.
func (s *scene) follow(t *testing.T, w *walker, g walk) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", g.page))
	require.NoError(t, err)
	names := append([]string{
		"registry.example.org", w.registry, "http://pulsar-broker.pulsar:8080", s.adminURL,
	}, g.names...)
	sections := guide.Sections(string(text))
	require.Equal(t, removed, sections[len(sections)-1].Heading)
	variables := filepath.Join(t.TempDir(), "variables")
	require.NoError(t, os.WriteFile(variables, nil, 0o600))
	changes, done := 0, map[string]bool{}
	for _, section := range sections {
		began := time.Now()
		script := strings.NewReplacer(names...).Replace(section.Script)
		command := exec.CommandContext(t.Context(), "/bin/sh", "-ae", "-c",
			". "+variables+"\n"+script+"export -p > "+variables+"\n") // a user has one shell
		command.Dir, command.Env = w.checkout, slices.Concat(w.env, g.env,
			[]string{"PATH=" + w.path + string(os.PathListSeparator) + g.programs})
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s\n%s", script, out)
		if section.Heading != removed && !slices.Contains(g.optional, section.Heading) {
			changes += len(change.FindAllString(section.Script, -1))
		}
		if after := g.after[section.Heading]; after != nil {
			after(t, string(out))
		}
		done[section.Heading] = true
		t.Logf("%s: %s", section.Heading, time.Since(began).Round(100*time.Millisecond))
	}
	for heading := range g.after {
		require.True(t, done[heading], "no section %q with commands", heading)
	}
	t.Logf("%d commands change something", changes)
	require.LessOrEqual(t, changes, mostChanges)
}

// awaitInstalled repeats check --install: a stalled machine answers it late, which is unknown.
func (s *scene) awaitInstalled(t *testing.T) {
	t.Helper()
	require.NoError(t, cluster.WaitFor(t.Context(), "check --install", pollTime,
		func(ctx context.Context) (bool, string, error) {
			checked, err := exec.CommandContext(ctx, s.built.plugin(), "check", "--install",
				"--kubeconfig", s.Cluster.Kubeconfig()).CombinedOutput()
			ok := strings.Contains(string(checked), "\nRESULT        ok 6, warning 0, error 0, unknown 0\n")
			return ok && err == nil, fmt.Sprintf("%s%v", checked, err), nil
		}))
}

func (s *scene) followFunctionMesh(t *testing.T, w *walker) {
	f := s.addFunction(t, "resize", serviceTime)
	before := s.objects(t)
	endLoad := f.Load(t, load.Constant(rate))
	s.follow(t, w, walk{
		page:     "function-mesh.md",
		names:    []string{"media-pulsar", "resize-pulsar", "media", stage.Namespace},
		optional: []string{"1. Where its Pulsar is"},
		after: map[string]func(t *testing.T, output string){
			"1. Where its Pulsar is": func(t *testing.T, output string) { require.Contains(t, output, s.adminURL) },
			"2. Install": func(t *testing.T, output string) {
				require.Contains(t, output, "The images are pushed.")
				require.Contains(t, output, `deployment "adapter" successfully rolled out`)
				s.awaitMetricsAPI(t)
				s.awaitInstalled(t)
				s.requireNamespacesGo(t, "after-install")
			},
			"3. Look before it scales": func(t *testing.T, output string) {
				require.Regexp(t, `(?s)condition met.*NAME .*DESIRED.*resize .*Recommend`, output)
			},
			"4. Let it scale": func(t *testing.T, output string) {
				require.Regexp(t, `(?s)condition met.*pap-resize-`, output)
				s.awaitReplicas(t, f, leastReplicas, maxReplicas)
				endLoad()
			},
		},
	})
	replicas, err := f.Replicas(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, replicas.Spec, int64(leastReplicas), "the Function keeps its replicas")
	s.requireLeft(t, before, definitions()...)
}

func (s *scene) followFromKEDA(t *testing.T, w *walker) {
	const name, replicas = "billing", 2
	operator := s.startKEDA(t)
	f := s.TestFunction(t, stage.FunctionConfig{
		Name: name, Deployment: true, ServiceTime: serviceTime, Replicas: replicas,
	})
	trigger := map[string]any{"type": "pulsar", "metadata": map[string]any{
		"adminURL": s.adminURL, "topic": f.Topic, "subscription": "billing-consumers", "msgBacklogThreshold": "100",
	}}
	object := stage.NewScaledObject(name, autoscalingv2.CrossVersionObjectReference{}, trigger, map[string]any{
		"scaleTargetRef":  map[string]any{"name": name},
		"minReplicaCount": int64(replicas), "maxReplicaCount": int64(20),
		"advanced": map[string]any{"restoreToOriginalReplicaCount": false},
	})
	require.NoError(t, s.Client.Create(t.Context(), object))
	paused := func(t *testing.T, what bool) {
		s.Await(t, fmt.Sprint("the ScaledObject to be paused: ", what), func(ctx context.Context) (bool, string, error) {
			err := s.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
			return (len(object.GetAnnotations()) > 0) == what, fmt.Sprint(object.GetAnnotations()), err
		})
		found, err := f.Replicas(t.Context())
		require.NoError(t, err)
		require.Equal(t, int64(replicas), found.Spec, "no replica is moved")
	}
	s.follow(t, w, walk{
		page: "from-keda.md",
		names: []string{
			"shop/orders/new", "public/default/billing-in", "    name: billing\n", "    name: billing-consumers\n",
			"shop", stage.Namespace, "minReplicas: 0", fmt.Sprint("minReplicas: ", replicas),
		},
		optional: []string{"4. Go back, or stay"},
		after: map[string]func(t *testing.T, output string){
			"2. A policy beside the ScaledObject": func(t *testing.T, output string) {
				text, err := os.ReadFile(filepath.Join(w.checkout, "policies.yaml"))
				require.NoError(t, err)
				require.Contains(t, string(text), "public/default/billing-in")
				require.Regexp(t, `(?s)condition met.*billing .*Recommend`, output)
				paused(t, false)
			},
			"3. Switch": func(t *testing.T, output string) {
				paused(t, true)
				hpa, err := f.Autoscaler(t.Context())
				require.NoError(t, err)
				require.NotNil(t, hpa, output)
				require.Equal(t, plan.AutoscalerName(name), hpa.Name)
			},
			"4. Go back, or stay": func(t *testing.T, _ string) { paused(t, false) },
		},
	})
	require.NoError(t, s.ScaledObject(name).Remove(t.Context()))
	s.removeKEDA(t, operator)
}
