// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const topic = "persistent://public/default/pap-bench-1-ours-in"

// adminService responds with each status in turn, and repeats the last one.
func adminService(t *testing.T, answers ...int) (url string, paths func() []string) {
	t.Helper()
	var requests atomic.Int64
	seen := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Method + " " + r.URL.String()
		w.WriteHeader(answers[min(int(requests.Add(1)), len(answers))-1])
		_, _ = w.Write([]byte(`{"partitions": 3}`))
	}))
	t.Cleanup(server.Close)
	return server.URL, func() (all []string) {
		for len(seen) > 0 {
			all = append(all, <-seen)
		}
		return all
	}
}

func adminAt(t *testing.T, url string) admin {
	t.Helper()
	service, err := Access{}.admin(url)
	require.NoError(t, err)
	return service
}

func TestTopicsAreCreatedAndRemoved(t *testing.T) {
	url, paths := adminService(t, http.StatusServiceUnavailable, http.StatusNoContent, http.StatusOK, http.StatusNotFound)
	require.NoError(t, adminAt(t, url).create(t.Context(), topic, 0))
	require.NoError(t, adminAt(t, url+"/").remove(t.Context(), topic))
	path := "/admin/v2/persistent/public/default/pap-bench-1-ours-in"
	require.Equal(t, []string{
		"PUT " + path, "PUT " + path,
		"GET " + path + "/partitions?checkAllowAutoCreation=false", "DELETE " + path + "/partitions?force=true",
	}, paths())
}

func TestTopicsOfATargetAreEscaped(t *testing.T) {
	url, paths := adminService(t, http.StatusOK)
	require.NoError(t, adminAt(t, url).check(t.Context(), "persistent://public/default/50% of #1?"))
	require.Equal(t, []string{
		"GET /admin/v2/persistent/public/default/50%25+of+%231%3F/partitions?checkAllowAutoCreation=false",
	}, paths())
}

func TestARefusalOfPulsarIsNotTriedAgain(t *testing.T) {
	url, paths := adminService(t, http.StatusConflict)
	require.ErrorContains(t, adminAt(t, url).create(t.Context(), topic, 2), "pulsar answered 409 Conflict")
	require.Len(t, paths(), 1)
}

func clusterWith(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Namespace"), deployments()} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	for _, kind := range []schema.GroupVersionKind{policies(), scaledObjects(), functions()} {
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).Build()
}

func runNamespace(adminURL string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "pap-bench-1", Labels: map[string]string{labelManagedBy: managedBy, labelRun: "1"},
		Annotations: map[string]string{annotationAdmin: adminURL, annotationTopics: topic},
	}}
}

func TestCleanKeepsTheNamespaceUntilItsTopicsAreGone(t *testing.T) {
	refusing, _ := adminService(t, http.StatusUnauthorized)
	kube := clusterWith(t, runNamespace(refusing))
	require.ErrorContains(t, Clean(t.Context(), kube, "pap-bench-1", "", Access{}), "deleting topic")
	left, err := Leftovers(t.Context(), kube)
	require.NoError(t, err)
	require.Equal(t, []string{"pap-bench-1"}, left)

	willing, paths := adminService(t, http.StatusOK, http.StatusNoContent)
	require.NoError(t, Clean(t.Context(), kube, "pap-bench-1", willing, Access{}))
	require.Len(t, paths(), 2)
	left, err = Leftovers(t.Context(), kube)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, Clean(t.Context(), kube, "pap-bench-1", "", Access{}), "a second clean-up succeeds")
}

func TestCleanTouchesNoNamespaceOfOthers(t *testing.T) {
	kube := clusterWith(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "media"}})
	require.ErrorContains(t, Clean(t.Context(), kube, "media", "", Access{}), "does not belong to a run")
}
