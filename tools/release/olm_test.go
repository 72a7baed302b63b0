// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// bundled is the bundle of this tree, by file.
func bundled(t *testing.T) map[string][]byte {
	t.Helper()
	r := release{root: filepath.Join("..", ".."), version: "v1.2.3-rc.1", registry: "x.org/a"}
	built := binary{info: &debug.BuildInfo{
		Settings: []debug.BuildSetting{{Key: "vcs.time", Value: "2026-11-23T07:00:00Z"}},
	}}
	name, packed, err := r.bundle(built, map[string]string{"adapter": "sha256:" + strings.Repeat("a", 64)})
	require.NoError(t, err)
	require.Equal(t, "pulsar-autoscaler-olm-bundle-1.2.3-rc.1.tar.gz", name)
	archive, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	files := map[string][]byte{}
	for name, data := range unpack(t, archive) {
		if name, found := strings.CutPrefix(name, "1.2.3-rc.1/"); found && !strings.HasSuffix(name, "/") && name != "" {
			files[name] = data
		}
	}
	return files
}

// TestOLMTakesTheBundle runs the validators of operator-sdk. They may neither fail nor warn.
func TestOLMTakesTheBundle(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the validators, which takes minutes")
	}
	dir := t.TempDir()
	for name, data := range bundled(t) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
	validator := exec.CommandContext(t.Context(), "go", "run", ".", dir)
	validator.Dir = filepath.Join("..", "bundle")
	out, err := validator.CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestTheBundleInstallsWhatTheManifestsDo(t *testing.T) {
	files := bundled(t)
	var names []string
	for name := range files {
		names = append(names, name)
	}
	require.ElementsMatch(t, []string{
		"metadata/annotations.yaml", "manifests/pulsar-autoscaler.v1.2.3-rc.1.clusterserviceversion.yaml",
		"manifests/autoscalingpolicies.pulsar-autoscaler.io.customresourcedefinition.yaml",
		"manifests/autoscalingpolicysets.pulsar-autoscaler.io.customresourcedefinition.yaml",
		"manifests/adapter.service.yaml", "manifests/adapter.poddisruptionbudget.yaml",
		"manifests/pulsar-autoscaler-adapter-apiservices.clusterrole.yaml",
		"manifests/pulsar-autoscaler-view.clusterrole.yaml", "manifests/pulsar-autoscaler-edit.clusterrole.yaml",
		"manifests/pulsar-autoscaler-metrics-reader.clusterrole.yaml",
	}, names)
	var csv struct {
		Metadata struct{ Annotations map[string]string }
		Spec     struct {
			Version, Description string
			Install              struct {
				Spec struct {
					ClusterPermissions, Permissions []struct {
						ServiceAccountName string
						Rules              []map[string][]string
					}
					Deployments []struct {
						Name string
						Spec struct {
							Template struct {
								Spec struct {
									SecurityContext map[string]any
									Containers      []struct {
										Image string
										Args  []string
										Env   []struct{ Name, Value string }
									}
								}
							}
						}
					}
				}
			}
		}
	}
	var written object
	require.NoError(t,
		yaml.Unmarshal(files["manifests/pulsar-autoscaler.v1.2.3-rc.1.clusterserviceversion.yaml"], &written))
	text, err := json.Marshal(written)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &csv)) // names of fields in any case
	require.Equal(t, "1.2.3-rc.1", csv.Spec.Version)
	require.Contains(t, csv.Spec.Description, "\nkubectl delete clusterrole pulsar-autoscaler-adapter-apiservices\n")
	require.Equal(t, map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}},
		csv.Spec.Install.Spec.Deployments[0].Spec.Template.Spec.SecurityContext)
	var examples []struct{ Kind string }
	require.NoError(t, json.Unmarshal([]byte(csv.Metadata.Annotations["alm-examples"]), &examples))
	require.Equal(t, []struct{ Kind string }{{"AutoscalingPolicy"}, {"AutoscalingPolicySet"}}, examples)

	install := csv.Spec.Install.Spec
	container := install.Deployments[0].Spec.Template.Spec.Containers[0]
	require.Equal(t, "x.org/a/adapter@sha256:"+strings.Repeat("a", 64), container.Image)
	require.Equal(t, container.Image, csv.Metadata.Annotations["containerImage"])
	require.Subset(t, container.Args, []string{
		"--serving-certificate=Self", "--pulsar-admin-url=$(PULSAR_ADMIN_URL)",
		"--allowed-pulsar-hosts=$(ALLOWED_PULSAR_HOSTS)",
	})
	// What the adapter may: its own Lease and Secret in its namespace, and no Secret elsewhere.
	require.Equal(t, "adapter", install.Permissions[0].ServiceAccountName)
	require.Len(t, install.Permissions[0].Rules, 2)
	require.Equal(t, "adapter", install.ClusterPermissions[0].ServiceAccountName)
	allowed := map[string]bool{}
	for _, rule := range install.ClusterPermissions[0].Rules {
		for _, resource := range rule["resources"] {
			allowed[resource] = true
		}
	}
	for _, resource := range []string{
		"autoscalingpolicies", "horizontalpodautoscalers", "statefulsets/scale", "apiservices", "tokenreviews",
	} {
		require.True(t, allowed[resource], resource)
	}
	require.False(t, allowed["secrets"])
}
