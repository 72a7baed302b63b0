// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// object is an object of Kubernetes, or a part of one.
type object = map[string]any

// bundle is the OLM bundle of the adapter, made of deploy/kustomization.yaml and deploy/olm: an archive of the
// directory of the version, as catalogs take it.
//
// Source: olm.operatorframework.io, "Operator bundles".
func (r release) bundle(b binary, digests map[string]string) (name string, packed []byte, err error) {
	all, err := r.installed()
	if err != nil {
		return "", nil, err
	}
	csv, err := r.csv(b, all, digests)
	if err != nil {
		return "", nil, err
	}
	annotations, err := os.ReadFile(filepath.Join(r.root, "deploy", "olm", "annotations.yaml"))
	if err != nil {
		return "", nil, err
	}
	manifests := r.chartVersion() + "/manifests/"
	files := []file{{name: r.chartVersion() + "/metadata/annotations.yaml", mode: 0o644, data: annotations}}
	for _, o := range append(separate(all), csv) {
		data, err := yaml.Marshal(o)
		if err != nil {
			return "", nil, fmt.Errorf("writing %s %s of the bundle: %w", kindOf(o), nameOf(o), err)
		}
		files = append(files, file{
			name: manifests + nameOf(o) + "." + strings.ToLower(kindOf(o)) + ".yaml", mode: 0o644, data: data,
		})
	}
	packed, err = compressed(files)
	return chartName + "-olm-bundle-" + r.chartVersion() + ".tar.gz", packed, err
}

// installed are the objects that kubectl apply -k deploy creates.
func (r release) installed() (all []object, err error) {
	dir := filepath.Join(r.root, "deploy")
	list, err := readObjects(filepath.Join(dir, "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	for _, name := range at[[]any](list[0], "resources") {
		found, err := readObjects(filepath.Join(dir, filepath.FromSlash(fmt.Sprint(name))))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func readObjects(path string) (all []object, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	documents := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var o object
		err := documents.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		if o != nil {
			all = append(all, o)
		}
	}
}

// owner is the ClusterRole that owns the APIServices (--apiservice-owner).
const owner = chartName + "-adapter-apiservices"

// separate are the objects beside the ClusterServiceVersion, without a namespace, which is that of the operator. OLM
// creates the Namespace and the ServiceAccount, the adapter its Lease, and that version has the adapter's permissions.
func separate(all []object) (kept []object) {
	kinds := []string{"CustomResourceDefinition", "Service", "PodDisruptionBudget", "ClusterRole"}
	for _, o := range all {
		if !slices.Contains(kinds, kindOf(o)) || nameOf(o) != owner && isBound(all, o) {
			continue
		}
		delete(at[object](o, "metadata"), "namespace")
		kept = append(kept, o)
	}
	return kept
}

// isBound reports whether a binding names the role.
func isBound(all []object, role object) bool {
	return slices.ContainsFunc(all, func(o object) bool {
		return at[string](o, "roleRef", "kind") == kindOf(role) && at[string](o, "roleRef", "name") == nameOf(role)
	})
}

// csv is deploy/olm/clusterserviceversion.yaml with what a release knows.
func (r release) csv(b binary, all []object, digests map[string]string) (object, error) {
	committed, err := b.committed()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(r.root, "deploy", "olm")
	icon, err := os.ReadFile(filepath.Join(dir, "icon.svg"))
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "clusterserviceversion.yaml"))
	if err != nil {
		return nil, err
	}
	var csv object
	if err := yaml.Unmarshal(r.versioned(text), &csv); err != nil {
		return nil, fmt.Errorf("reading the ClusterServiceVersion: %w", err)
	}
	examples, err := r.examples()
	if err != nil {
		return nil, err
	}
	kinds, err := r.kinds()
	if err != nil {
		return nil, err
	}
	deployment, image, err := r.deployment(all, digests)
	if err != nil {
		return nil, err
	}
	metadata, spec := at[object](csv, "metadata"), at[object](csv, "spec")
	metadata["name"] = chartName + "." + r.version
	annotations := at[object](metadata, "annotations")
	annotations["alm-examples"], annotations["containerImage"] = examples, image
	annotations["createdAt"] = committed.Format(time.RFC3339)
	spec["version"], spec["customresourcedefinitions"] = r.chartVersion(), object{"owned": kinds}
	spec["icon"] = []any{object{"mediatype": "image/svg+xml", "base64data": base64.StdEncoding.EncodeToString(icon)}}
	account := at[string](deployment, "spec", "template", "spec", "serviceAccountName")
	spec["install"] = object{"strategy": "deployment", "spec": object{
		"deployments":        []any{object{"name": nameOf(deployment), "spec": deployment["spec"]}},
		"clusterPermissions": []any{object{"serviceAccountName": account, "rules": clusterRules(all)}},
		"permissions":        []any{object{"serviceAccountName": account, "rules": boundRules(all, "Role")}},
	}}
	return csv, nil
}

// deployment is that of the adapter with its image. Users set its Pulsar by variables in the Subscription. The user is
// that of the image, or the one that OpenShift gives each namespace.
func (r release) deployment(all []object, digests map[string]string) (deployment object, image string, err error) {
	i := slices.IndexFunc(all, func(o object) bool { return kindOf(o) == "Deployment" })
	if i < 0 {
		return nil, "", errors.New("deploy/kustomization.yaml has no Deployment")
	}
	deployment = all[i]
	user := at[object](deployment, "spec", "template", "spec", "securityContext")
	for _, field := range []string{"runAsUser", "runAsGroup", "fsGroup"} {
		delete(user, field)
	}
	containers := at[[]any](deployment, "spec", "template", "spec", "containers")
	c, isObject := containers[0].(object)
	if !isObject || len(containers) != 1 {
		return nil, "", fmt.Errorf("reading Deployment %s: it must have one container", nameOf(deployment))
	}
	name := fmt.Sprint(c["name"])
	image = cmp.Or(r.registry, placeholder) + "/" + name
	if digest := digests[name]; digest != "" {
		image += "@" + digest
	} else {
		image += ":" + r.version
	}
	c["image"] = image
	args, env := at[[]any](c, "args"), at[[]any](c, "env")
	for _, flag := range []string{"pulsar-admin-url", "allowed-pulsar-hosts"} {
		variable := strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
		args = append(args, "--"+flag+"=$("+variable+")")
		env = append(env, object{"name": variable, "value": ""})
	}
	c["args"], c["env"] = args, env
	return deployment, image, nil
}

// clusterRules are those of the ClusterRoles that are bound. The two of Kubernetes, which every aggregated API server
// needs, are spelled out: OLM binds only what a bundle has.
func clusterRules(all []object) []any {
	rule := func(group, resource string, more object) object {
		o := object{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": []any{"create"}}
		maps.Copy(o, more)
		return o
	}
	return append(boundRules(all, "ClusterRole"),
		rule("authentication.k8s.io", "tokenreviews", nil), rule("authorization.k8s.io", "subjectaccessreviews", nil),
		rule("", "configmaps", object{
			"resourceNames": []any{"extension-apiserver-authentication"}, "verbs": []any{"get", "list", "watch"},
		}))
}

// boundRules are the rules of the roles of a kind that are bound.
func boundRules(all []object, kind string) (rules []any) {
	for _, o := range all {
		if kindOf(o) == kind && isBound(all, o) {
			rules = append(rules, at[[]any](o, "rules")...)
		}
	}
	return rules
}

// kinds are those that the chart shows in Artifact Hub, which has the same fields. The adapter creates the resources.
func (r release) kinds() (kinds []object, err error) {
	chart, err := readObjects(filepath.Join(r.root, "deploy", "chart", "Chart.yaml"))
	if err != nil {
		return nil, err
	}
	shown := at[string](chart[0], "annotations", "artifacthub.io/crds")
	if err := yaml.Unmarshal([]byte(shown), &kinds); err != nil {
		return nil, fmt.Errorf("reading the kinds in Chart.yaml: %w", err)
	}
	for _, kind := range kinds {
		kind["resources"] = []any{
			object{"kind": "HorizontalPodAutoscaler", "version": "v2"}, object{"kind": "Event", "version": "v1"},
		}
	}
	return kinds, nil
}

// examples are one of each kind, as JSON.
func (r release) examples() (string, error) {
	var all []object
	for _, name := range []string{"function.yaml", "autoscalingpolicyset.yaml"} {
		found, err := readObjects(filepath.Join(r.root, path.Join("examples", name)))
		if err != nil {
			return "", err
		}
		all = append(all, found...)
	}
	text, err := json.MarshalIndent(all, "", "  ")
	return string(text), err
}

func kindOf(o object) string { return at[string](o, "kind") }

func nameOf(o object) string { return at[string](o, "metadata", "name") }

// at returns a field, or nothing if there is none of the type.
func at[T any](o object, path ...string) (value T) {
	for _, name := range path[:len(path)-1] {
		o, _ = o[name].(object)
	}
	value, _ = o[path[len(path)-1]].(T)
	return value
}
