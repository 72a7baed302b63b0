// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// root is the folder of the repository, argoCD the files for Argo CD, and healthChecks its health checks by kind.
var (
	root         = filepath.Join("..", "..")
	argoCD       = filepath.Join(root, "deploy", "gitops", "argocd")
	healthChecks = filepath.Join(argoCD, v1alpha1.Group)
)

// health is what a health check of Argo CD returns.
type health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// healthTest is an entry of health_test.yaml, as Argo CD reads it.
type healthTest struct {
	HealthStatus health `json:"healthStatus"`
	InputPath    string `json:"inputPath"`
}

func kinds() []string {
	return []string{v1alpha1.KindAutoscalingPolicy, v1alpha1.KindAutoscalingPolicySet}
}

func scriptOf(t *testing.T, kind string) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(healthChecks, kind, "health.lua"))
	require.NoError(t, err)
	return string(script)
}

func recordedObject(t *testing.T, path string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	text, err = yaml.YAMLToJSON(text)
	require.NoError(t, err)
	object := &unstructured.Unstructured{}
	require.NoError(t, object.UnmarshalJSON(text)) // with whole numbers, as clients have them
	return object
}

// TestKstatusAndArgoCDSayTheSame of each recorded status, as health_test.yaml has it.
func TestKstatusAndArgoCDSayTheSame(t *testing.T) {
	same := map[status.Status]string{
		status.CurrentStatus: "Healthy", status.InProgressStatus: "Progressing", status.FailedStatus: "Degraded",
	}
	for _, kind := range kinds() {
		folder := filepath.Join(healthChecks, kind)
		text, err := os.ReadFile(filepath.Join(folder, "health_test.yaml"))
		require.NoError(t, err)
		var file struct {
			Tests []healthTest `json:"tests"`
		}
		require.NoError(t, yaml.UnmarshalStrict(text, &file))
		script := scriptOf(t, kind)
		var inputs []string
		for _, test := range file.Tests {
			path := filepath.Join(folder, filepath.FromSlash(test.InputPath))
			inputs = append(inputs, path)
			t.Run(kind+"/"+filepath.Base(path), func(t *testing.T) {
				object := recordedObject(t, path)
				require.Equal(t, test.HealthStatus, runHealth(t, script, object))
				computed, err := status.Compute(object)
				require.NoError(t, err)
				require.Equal(t, test.HealthStatus.Status, same[computed.Status], "kstatus: %s", computed.Message)
			})
		}
		files, err := filepath.Glob(filepath.Join(folder, "testdata", "*"))
		require.NoError(t, err)
		require.ElementsMatch(t, files, inputs, "health_test.yaml has each recorded status once")
	}
}

// TestTheSettingsOfArgoCDHaveTheHealthChecks in the form of its ConfigMap.
func TestTheSettingsOfArgoCDHaveTheHealthChecks(t *testing.T) {
	path := filepath.Join(argoCD, "argocd-cm.yaml")
	data := map[string]string{}
	for _, kind := range kinds() {
		data["resource.customizations.health."+v1alpha1.Group+"_"+kind] = scriptOf(t, kind)
	}
	want, err := yaml.Marshal(map[string]any{"data": data})
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(path, want, 0o600))
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(text), "run go test ./test/gitops -update")
}

// instructions is a context that ends after that many of them: the interpreter calls Done before each.
type instructions struct {
	context.Context //nolint:containedctx // the interpreter takes one

	left int
}

func (i *instructions) Done() <-chan struct{} {
	if i.left--; i.left >= 0 {
		return nil
	}
	ended := make(chan struct{})
	close(ended)
	return ended
}

func (*instructions) Err() error { return context.DeadlineExceeded }

// runHealth runs a health check with the libraries that Argo CD opens, and for less than its limit of a second, in
// instructions: a machine that stalls is not the check.
//
// Source: argo-cd v3, util/lua/lua.go, runLua. It also opens a part of os, which the checks do not use.
func runHealth(t *testing.T, script string, object *unstructured.Unstructured) (h health) {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{{lua.LoadLibName, lua.OpenPackage}, {lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}} {
		require.NoError(t, l.CallByParam(lua.P{Fn: l.NewFunction(library.open), Protect: true}, lua.LString(library.name)))
	}
	const perSecond = 1_000_000 // of a slow machine
	l.SetContext(&instructions{t.Context(), perSecond})
	l.SetGlobal("obj", luaValue(l, object.Object))
	require.NoError(t, l.DoString(script))
	table, ok := l.Get(-1).(*lua.LTable)
	require.True(t, ok, "the check returns a table")
	table.ForEach(func(key, value lua.LValue) {
		switch key.String() {
		case "status":
			h.Status = value.String()
		case "message":
			h.Message = value.String()
		default:
			require.Fail(t, "unknown field", "%s", key)
		}
	})
	return h
}

// luaValue converts a value of an object to Lua.
func luaValue(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case map[string]any:
		table := l.NewTable()
		for key, item := range v {
			table.RawSetString(key, luaValue(l, item))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, item := range v {
			table.Append(luaValue(l, item))
		}
		return table
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	default:
		return lua.LNil
	}
}
