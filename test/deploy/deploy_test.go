// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

const kustomization = "kustomization.yaml"

// manifests are the files under deploy.
func manifests() fs.FS { return os.DirFS("../../deploy") }

// ofScaler is the folder of what the scaler needs; the rest is the adapter's.
const ofScaler = "scaler/"

// Folders without manifests of ours: the chart has templates, gitops settings of Argo CD, and olm what a release
// completes.
const ofChart, ofGitOps, ofOLM = "chart", "gitops", "olm"

// Files for what not every cluster has, and what not every adapter may.
const (
	ofKEDA     = "rbac/keda.yaml"
	ofMeshes   = "rbac/functionmeshes.yaml"
	ofRollouts = "rbac/rollouts.yaml"
	ofSecrets  = "rbac/secrets.yaml"
	ofTakeOver = "rbac/takeover.yaml"
)

// Files for programs that create their certificates; the adapter's is for writing APIServices too.
const (
	ofCertificate        = "rbac/certificate.yaml"
	ofScalersCertificate = ofScaler + "certificate.yaml"
)

// ofScalersSecrets is the folder of a component, which grants the scaler Secrets on demand.
const ofScalersSecrets = ofScaler + "secrets/"

// ofUsers is what users may do, and nothing of the programs.
const ofUsers = "rbac/users.yaml"

// ofAPIServices is for adapters that do not write the APIServices.
const ofAPIServices = "adapter/apiservices.yaml"

// ofMonitoring is the folder of what a Prometheus needs, whose rules are no manifest.
const (
	ofMonitoring = "monitoring/"
	ofRules      = ofMonitoring + "rules.yaml"
)

// files returns the path of every manifest but the kustomizations.
func files(t *testing.T) []string {
	t.Helper()
	var found []string
	require.NoError(t, fs.WalkDir(manifests(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && (name == ofChart || name == ofGitOps || name == ofOLM) {
			return fs.SkipDir
		}
		isManifest := path.Ext(name) == ".yaml" && path.Base(name) != kustomization && name != ofRules && name != ofValues
		if err == nil && !entry.IsDir() && isManifest {
			found = append(found, name)
		}
		return err
	}))
	require.NotEmpty(t, found)
	return found
}

// strictDecoder knows the kinds that are deployed and refuses unknown and repeated fields.
func strictDecoder(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kubescheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme,
	} {
		require.NoError(t, add(scheme))
	}
	// KEDA's definition is compared in test/chart.
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{
		Group: "keda.sh", Version: "v1alpha1", Kind: "ClusterTriggerAuthentication",
	}, &unstructured.Unstructured{})
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

// decode returns the objects of one file.
func decode(t *testing.T, name string) []runtime.Object {
	t.Helper()
	content, err := fs.ReadFile(manifests(), name)
	require.NoError(t, err)
	decoder := strictDecoder(t)
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var objects []runtime.Object
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		object, _, err := decoder.Decode(document, nil, nil)
		require.NoError(t, err, "%s has a document that the API server would not take:\n%s", name, document)
		objects = append(objects, object)
	}
}

// all returns every object of a type that is deployed for the adapter.
func all[T runtime.Object](t *testing.T) []T {
	t.Helper()
	return where[T](t, func(name string) bool { return !isScalers(name) && !isMonitorings(name) && name != ofUsers })
}

func isMonitorings(name string) bool { return strings.HasPrefix(name, ofMonitoring) }

// where returns every object of a type in the files that are asked for.
func where[T runtime.Object](t *testing.T, file func(name string) bool) []T {
	t.Helper()
	var found []T
	for _, name := range slices.DeleteFunc(files(t), func(name string) bool { return !file(name) }) {
		for _, object := range decode(t, name) {
			if typed, ok := object.(T); ok {
				found = append(found, typed)
			}
		}
	}
	require.NotEmpty(t, found)
	return found
}

func TestEveryManifestDecodesStrictly(t *testing.T) {
	for _, name := range files(t) {
		t.Run(name, func(t *testing.T) { require.NotEmpty(t, decode(t, name)) })
	}
}

func TestTheDecoderRefusesUnknownFields(t *testing.T) {
	_, _, err := strictDecoder(t).Decode([]byte("apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {prots: []}\n"),
		nil, nil)
	require.True(t, runtime.IsStrictDecodingError(err))
}

func TestTheKustomizationsListEveryManifest(t *testing.T) {
	adapters := slices.DeleteFunc(files(t),
		func(name string) bool {
			return isScalers(name) || slices.Contains(handwritten(), name) ||
				slices.Contains([]string{ofKEDA, ofMeshes, ofRollouts, ofSecrets, ofTakeOver}, name)
		})
	require.ElementsMatch(t, adapters, listed(t, ""), "all but what others may own, and what is granted on demand")
	scalers := slices.DeleteFunc(files(t),
		func(name string) bool { return !isScalers(name) || name == ofScalersSecrets+"clusterrole.yaml" })
	require.ElementsMatch(t, scalers, listed(t, ofScaler))
	require.Equal(t, []string{ofScalersSecrets + "clusterrole.yaml"}, listed(t, ofScalersSecrets))
}

// listed are the files that the kustomization of a folder names.
func listed(t *testing.T, folder string) []string {
	t.Helper()
	resources := read(t, folder).Resources
	for i := range resources {
		resources[i] = folder + resources[i]
	}
	return resources
}

// kustomized is what kustomize reads of a folder.
type kustomized struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources"`
	Images     []struct {
		Name    string `json:"name"`
		NewName string `json:"newName"`
		NewTag  string `json:"newTag"`
	} `json:"images"`
}

func read(t *testing.T, folder string) kustomized {
	t.Helper()
	content, err := fs.ReadFile(manifests(), folder+kustomization)
	require.NoError(t, err)
	var k kustomized
	require.NoError(t, sigsyaml.UnmarshalStrict(content, &k))
	want := "kustomize.config.k8s.io/v1beta1 Kustomization"
	if folder == ofScalersSecrets {
		want = "kustomize.config.k8s.io/v1alpha1 Component"
	}
	require.Equal(t, want, k.APIVersion+" "+k.Kind)
	return k
}

// TestImagesAreSetInOnePlace: the user sets them. Until then no image has the name of another project's.
func TestImagesAreSetInOnePlace(t *testing.T) {
	for name, test := range map[string]struct {
		folder string
		file   func(string) bool
	}{
		"adapter": {"", func(name string) bool { return !isScalers(name) }},
		"scaler":  {ofScaler, isScalers},
	} {
		t.Run(name, func(t *testing.T) {
			placeholder := "example.invalid/pulsar-autoscaler/" + name
			images := read(t, test.folder).Images
			require.Len(t, images, 1)
			require.Equal(t, []string{placeholder, placeholder, "VERSION"},
				[]string{images[0].Name, images[0].NewName, images[0].NewTag})
			containers := where[*appsv1.Deployment](t, test.file)[0].Spec.Template.Spec.Containers
			require.Len(t, containers, 1)
			require.Equal(t, placeholder+":VERSION", containers[0].Image)
		})
	}
}

// TestTheInstallGuideNeedsOneCommand of each kind: with a certificate of its own the adapter writes the APIServices.
func TestTheInstallGuideNeedsOneCommand(t *testing.T) {
	text, err := os.ReadFile("../../docs/install.md")
	require.NoError(t, err)
	require.Contains(t, string(text), "```\nhelm install pulsar-autoscaler ")
	require.Contains(t, string(text), "```\nkubectl apply -k deploy\n```")
	deployment := all[*appsv1.Deployment](t)[0]
	require.Equal(t, "pulsar-autoscaler/adapter", deployment.Namespace+"/"+deployment.Name)
	require.Contains(t, deployment.Spec.Template.Spec.Containers[0].Args, "--serving-certificate=Self")
}

func TestTheServiceReachesTheAdapter(t *testing.T) {
	deployment, service := all[*appsv1.Deployment](t)[0], all[*corev1.Service](t)[0]
	pod := deployment.Spec.Template
	require.Equal(t, service.Namespace, deployment.Namespace)
	require.Subset(t, pod.Labels, service.Spec.Selector)
	require.Equal(t, deployment.Spec.Selector.MatchLabels,
		all[*policyv1.PodDisruptionBudget](t)[0].Spec.Selector.MatchLabels)
	var ports []string
	for _, port := range pod.Spec.Containers[0].Ports {
		ports = append(ports, port.Name)
	}
	require.Contains(t, ports, service.Spec.Ports[0].TargetPort.String())
	for _, api := range all[*apiregistrationv1.APIService](t) {
		require.Equal(t, service.Namespace+"/"+service.Name, api.Spec.Service.Namespace+"/"+api.Spec.Service.Name)
		require.Equal(t, service.Spec.Ports[0].Port, *api.Spec.Service.Port)
		require.Equal(t, api.Spec.Version+"."+api.Spec.Group, api.Name)
		require.False(t, api.Spec.InsecureSkipTLSVerify)
	}
}

func TestBothVersionsOfTheMetricsAPIAreRegisteredAndTheNewerPreferred(t *testing.T) {
	priority := map[string]int32{}
	for _, api := range all[*apiregistrationv1.APIService](t) {
		priority[api.Name] = api.Spec.VersionPriority
	}
	require.Equal(t, map[string]int32{
		"v1beta1.custom.metrics.k8s.io": 100, "v1beta2.custom.metrics.k8s.io": 200, "v1beta1.external.metrics.k8s.io": 100,
	}, priority)
}

func TestThePodsOutliveTheShutdownDelay(t *testing.T) {
	for _, deployment := range where[*appsv1.Deployment](t, func(string) bool { return true }) {
		pod := deployment.Spec.Template.Spec
		const flag, request = "--shutdown-delay=", 5 * time.Second
		var delay time.Duration
		for _, arg := range pod.Containers[0].Args {
			if value, ok := strings.CutPrefix(arg, flag); ok {
				var err error
				delay, err = time.ParseDuration(value)
				require.NoError(t, err)
			}
		}
		require.Positive(t, delay)
		require.Greater(t, time.Duration(*pod.TerminationGracePeriodSeconds)*time.Second, delay+request, deployment.Name)
	}
}

func TestThePodsAreRestricted(t *testing.T) {
	for _, deployment := range where[*appsv1.Deployment](t, func(string) bool { return true }) {
		pod := deployment.Spec.Template.Spec
		require.True(t, *pod.SecurityContext.RunAsNonRoot)
		require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type)
		for _, container := range pod.Containers {
			require.True(t, *container.SecurityContext.ReadOnlyRootFilesystem)
			require.False(t, *container.SecurityContext.AllowPrivilegeEscalation)
			require.Equal(t, []corev1.Capability{"ALL"}, container.SecurityContext.Capabilities.Drop)
			require.GreaterOrEqual(t, container.Resources.Requests.Memory().Value(), int64(128<<20))
		}
	}
}
