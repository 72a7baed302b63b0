// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// policyServer is an API server with policies and their events. It refuses everything else.
type policyServer struct {
	url    string
	list   v1alpha1.AutoscalingPolicyList
	events corev1.EventList
	seen   chan string
	// uninstalled is a cluster without the kind, and forbidden one that permits nothing.
	uninstalled, forbidden bool
	// alone is a cluster without other kinds, which are forbidden otherwise.
	alone bool
	// changes are sent to a watch.
	changes chan metav1.WatchEvent
}

func newPolicyServer(t *testing.T, policies ...v1alpha1.AutoscalingPolicy) *policyServer {
	t.Helper()
	s := &policyServer{seen: make(chan string, 100), changes: make(chan metav1.WatchEvent)}
	s.list.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "AutoscalingPolicyList"}
	s.list.ResourceVersion, s.list.Items = "1", policies
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// reads are the requested lists and objects, with their label selectors.
func (s *policyServer) reads() (all []string) {
	for len(s.seen) > 0 {
		all = append(all, <-s.seen)
	}
	return all
}

func (s *policyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const group, resource = "/apis/pulsar-autoscaler.io/v1alpha1", "autoscalingpolicies"
	w.Header().Set("Content-Type", "application/json")
	_, name, one := strings.Cut(r.URL.Path, "/"+resource+"/")
	switch {
	case s.uninstalled && r.URL.Path == "/apis":
		_, _ = io.WriteString(w, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`)
	case s.uninstalled && r.URL.Path != "/api", s.alone && isOther(r.URL.Path):
		s.refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
	case r.URL.Path == group:
		_, _ = io.WriteString(w, `{"kind": "APIResourceList", "groupVersion": "pulsar-autoscaler.io/v1alpha1", "resources": [
			{"name": "autoscalingpolicies", "kind": "AutoscalingPolicy", "namespaced": true,
			"verbs": ["get", "list", "watch"]}]}`)
	case r.URL.Path == "/apis":
		_, _ = io.WriteString(w, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "pulsar-autoscaler.io",
			"versions": [{"groupVersion": "pulsar-autoscaler.io/v1alpha1", "version": "v1alpha1"}]}]}`)
	case r.URL.Path == "/api/v1":
		_, _ = io.WriteString(w, `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [
			{"name": "events", "kind": "Event", "namespaced": true, "verbs": ["list"]}]}`)
	case r.URL.Path == "/api/v1/namespaces/media/events":
		s.seen <- r.URL.Path + "?" + r.URL.Query().Get("fieldSelector")
		_ = json.NewEncoder(w).Encode(s.events)
	case r.URL.Path == "/api":
		_, _ = io.WriteString(w, `{"kind": "APIVersions", "versions": ["v1"]}`)
	case s.forbidden || !strings.HasPrefix(r.URL.Path, group+"/") || r.Method != http.MethodGet:
		s.refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, r.Method+" "+r.URL.Path+" is not permitted")
	case r.URL.Query().Get("sendInitialEvents") != "":
		s.refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents is not supported")
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r)
	case one:
		s.seen <- r.URL.Path
		s.get(w, name)
	default:
		s.seen <- r.URL.Path + "?" + r.URL.Query().Get("labelSelector")
		_ = json.NewEncoder(w).Encode(s.list)
	}
}

// isOther reports whether a path is of another API group.
func isOther(path string) bool {
	return strings.HasPrefix(path, "/apis/") && !strings.HasPrefix(path, "/apis/pulsar-autoscaler.io/")
}

func (s *policyServer) get(w http.ResponseWriter, name string) {
	for i := range s.list.Items {
		if s.list.Items[i].Name == name {
			_ = json.NewEncoder(w).Encode(s.list.Items[i])
			return
		}
	}
	s.refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, `autoscalingpolicies "`+name+`" not found`)
}

func (s *policyServer) refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code),
		Reason: reason, Message: message,
	})
}

// watch sends changes until the client ends.
func (s *policyServer) watch(w http.ResponseWriter, r *http.Request) {
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case change := <-s.changes:
			_ = json.NewEncoder(w).Encode(change)
			w.(http.Flusher).Flush()
		}
	}
}
