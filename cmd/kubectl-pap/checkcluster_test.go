// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/deploy/crd"
)

const (
	apiServicesPath = "/apis/apiregistration.k8s.io/v1/apiservices"
	deploymentPath  = "/apis/apps/v1/namespaces/pulsar-autoscaler/deployments/adapter"
	crdPath         = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
)

// authority is the PEM of an authority that is valid between two times.
func authority(t testing.TB, from, until time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: until, IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func apiServices(services ...apiregistrationv1.APIService) apiregistrationv1.APIServiceList {
	return apiregistrationv1.APIServiceList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIServiceList"}, Items: services,
	}
}

// apiService of custom metrics is reached at a Service.
func apiService(namespace, name, version string, priority int32, bundle []byte) apiregistrationv1.APIService {
	return apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: version + ".custom.metrics.k8s.io"},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: "custom.metrics.k8s.io", Version: version, VersionPriority: priority, CABundle: bundle,
			Service: &apiregistrationv1.ServiceReference{Namespace: namespace, Name: name},
		},
		Status: apiregistrationv1.APIServiceStatus{Conditions: []apiregistrationv1.APIServiceCondition{
			{Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionTrue, Reason: "Passed"},
		}},
	}
}

// year is the start of a year.
func year(number int) time.Time { return time.Date(number, 1, 1, 0, 0, 0, 0, time.UTC) }

func adapterService(t testing.TB, version string, priority int32) apiregistrationv1.APIService {
	t.Helper()
	return apiService("pulsar-autoscaler", "adapter", version, priority, authority(t, year(2026), year(2126)))
}

func adapterDeployment(available int32, args ...string) appsv1.Deployment {
	return appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "example.org/adapter:v1", Args: args}}},
		}},
		Status: appsv1.DeploymentStatus{AvailableReplicas: available},
	}
}

// definitionOfPolicies is the CRD as it is shipped, and established.
func definitionOfPolicies(t testing.TB) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.Unmarshal(crd.AutoscalingPolicies, definition))
	return definition
}

// definitionOfSets has no schema, which is not compared.
func definitionOfSets() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "autoscalingpolicysets.pulsar-autoscaler.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true}},
		},
	}
}

// installed is a cluster with a release in which everything is as it should be.
func installed(t *testing.T) *apiServer {
	t.Helper()
	server := newAPIServer(t)
	server.objects[apiServicesPath] = apiServices(adapterService(t, "v1beta2", 200))
	server.objects[deploymentPath] = adapterDeployment(2, "--pulsar-admin-url=http://pulsar:8080")
	server.objects[crdPath+"autoscalingpolicies.pulsar-autoscaler.io"] = definitionOfPolicies(t)
	server.objects[crdPath+"autoscalingpolicysets.pulsar-autoscaler.io"] = definitionOfSets()
	server.denied = []string{"patch functionmeshes", "patch functions", "get secrets"}
	return server
}

func TestCheckInstallHasALineForEachCheck(t *testing.T) {
	server := installed(t)
	out, err := kubectlPap(t, "", "check", "--install", "--server", server.url)
	require.NoError(t, err)
	require.Equal(t, `INSTALLATION  pulsar-autoscaler
  ok          CRD autoscalingpolicies: version v1alpha1 is served
  ok          CRD autoscalingpolicysets: version v1alpha1 is served
  ok          adapter: 2 of 2 replicas are available, of example.org/adapter:v1
  ok          metrics API: Service pulsar-autoscaler/adapter serves
              v1beta2.custom.metrics.k8s.io
  ok          certificate: the authority in caBundle is valid until
              2126-01-01T00:00:00Z
  ok          rights: ServiceAccount pulsar-autoscaler/adapter has the rights
              that are checked in all namespaces; values of the chart that grant
              more: rbac.secrets, rbac.takeOver, rbac.functionMeshes

RESULT        ok 6, warning 0, error 0, unknown 0
`, out)
	require.Len(t, server.reviewed, len(allRights()))
}

// flat is a text without its line breaks.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestCheckInstallNamesWhatIsWrong(t *testing.T) {
	old := definitionOfPolicies(t)
	delete(old.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "schedules")
	other := definitionOfSets()
	other.Spec.Versions[0].Name = "v1"
	unavailable := adapterService(t, "v1beta2", 200)
	unavailable.Status.Conditions[0].Status = apiregistrationv1.ConditionFalse
	unavailable.Status.Conditions[0].Message = "certificate signed by unknown authority"
	insecure := adapterService(t, "v1beta2", 200)
	insecure.Spec.InsecureSkipTLSVerify = true
	expired := apiService("pulsar-autoscaler", "adapter", "v1beta2", 200, authority(t, year(2020), year(2021)))
	soon := apiService("pulsar-autoscaler", "adapter", "v1beta2", 200,
		authority(t, year(1926), time.Now().AddDate(1, 0, 0)))
	theirs := apiService("monitoring", "prometheus-adapter", "v1beta1", 300, nil)
	empty := apiService("pulsar-autoscaler", "adapter", "v1beta2", 200, nil)
	for name, test := range map[string]struct {
		path   string
		object any
		want   string
	}{
		"the CRD is missing": {
			crdPath + "autoscalingpolicies.pulsar-autoscaler.io", nil, "error CRD autoscalingpolicies: it is not installed",
		},
		"the CRD is older": {
			crdPath + "autoscalingpolicies.pulsar-autoscaler.io", old,
			"warning CRD autoscalingpolicies: it does not have spec.schedules, so the API",
		},
		"the CRD has another version": {
			crdPath + "autoscalingpolicysets.pulsar-autoscaler.io", other,
			"error CRD autoscalingpolicysets: it does not serve version v1alpha1:",
		},
		"the release is in another namespace": {
			deploymentPath, nil, "error adapter: namespace pulsar-autoscaler has no Deployment adapter:",
		},
		"no replica runs": {
			deploymentPath, adapterDeployment(0), "error adapter: 0 of 2 replicas are available, of",
		},
		"one replica runs": {
			deploymentPath, adapterDeployment(1), "warning adapter: 1 of 2 replicas are available, of",
		},
		"no flag names Pulsar": {
			deploymentPath, adapterDeployment(2), "warning adapter: 2 of 2 replicas are available, of",
		},
		"an empty flag names no Pulsar": {
			deploymentPath, adapterDeployment(2, "--pulsar-admin-url="), "warning adapter: 2 of 2 replicas are available, of",
		},
		"no server has the metrics API": {
			apiServicesPath, apiServices(), "warning metrics API: no APIService serves custom.metrics.k8s.io, so policies scale " +
				"through KEDA, or the adapter writes replicas itself: see the log of the adapter, which needs " +
				"deploy/rbac/certificate.yaml to write APIServices, and --tls-ca-file with --serving-certificate=Files",
		},
		"another server has the metrics API": {
			apiServicesPath, apiServices(theirs, adapterService(t, "v1beta2", 200)),
			"warning metrics API: Service monitoring/prometheus-adapter serves",
		},
		"the API server does not reach the adapter": {
			apiServicesPath, apiServices(unavailable), "error metrics API: certificate signed by unknown authority: see",
		},
		"the certificate is not verified": {
			apiServicesPath, apiServices(insecure), "warning certificate: the API server does not verify the adapter:",
		},
		"the authority has expired": {
			apiServicesPath, apiServices(expired), "error certificate: the authority in caBundle is valid until",
		},
		"the authority expires soon": {
			apiServicesPath, apiServices(soon), "warning certificate: the authority in caBundle is valid until",
		},
		"there is no authority": {
			apiServicesPath, apiServices(empty), "error certificate: caBundle of APIService",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := installed(t)
			server.objects[test.path] = test.object
			out, err := kubectlPap(t, "", "check", "--install", "--server", server.url)
			require.Contains(t, flat(out), test.want)
			require.Equal(t, strings.HasPrefix(test.want, "error"), err != nil, "%v", err)
		})
	}
}
