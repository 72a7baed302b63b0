// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// checkServer is an API server with policies and what checks read besides. The user may read only what it has, and
// paths with nil do not exist.
type checkServer struct {
	*policyServer
	objects map[string]any
	// denied are rights that the adapter does not have, as "verb resource/subresource". With noReviews the user may not
	// ask for rights, and with readOnly not write policies.
	denied              []string
	noReviews, readOnly bool
	// reviewed are the rights that were asked for, by namespace, and written the creations and deletions.
	reviewed, written []string
	// verdict is what the adapter writes for a new policy.
	verdict func(*v1alpha1.AutoscalingPolicy)
}

func newCheckServer(t *testing.T, policies ...v1alpha1.AutoscalingPolicy) *checkServer {
	t.Helper()
	s := &checkServer{policyServer: newPolicyServer(t, policies...), objects: map[string]any{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// servedResources are the resources of each group and version that checks read.
func servedResources() map[string][]metav1.APIResource {
	return map[string][]metav1.APIResource{
		"pulsar-autoscaler.io/v1alpha1": {{Name: "autoscalingpolicies", Kind: "AutoscalingPolicy", Namespaced: true}},
		"apps/v1":                       {{Name: "deployments", Kind: "Deployment", Namespaced: true}},
		"apiextensions.k8s.io/v1":       {{Name: "customresourcedefinitions", Kind: "CustomResourceDefinition"}},
		"apiregistration.k8s.io/v1":     {{Name: "apiservices", Kind: "APIService"}},
		"compute.functionmesh.io/v1alpha1": {
			{Name: "functions", Kind: "Function", Namespaced: true},
			{Name: "functionmeshes", Kind: "FunctionMesh", Namespaced: true},
		},
		"authorization.k8s.io/v1": {
			{Name: "subjectaccessreviews", Kind: "SubjectAccessReview"},
			{Name: "localsubjectaccessreviews", Kind: "LocalSubjectAccessReview", Namespaced: true},
		},
	}
}

func groupList() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
	for _, version := range slices.Sorted(maps.Keys(servedResources())) {
		group, number, _ := strings.Cut(version, "/")
		of := metav1.GroupVersionForDiscovery{GroupVersion: version, Version: number}
		list.Groups = append(list.Groups, metav1.APIGroup{
			Name: group, Versions: []metav1.GroupVersionForDiscovery{of}, PreferredVersion: of,
		})
	}
	return list
}

func (s *checkServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	resources, isDiscovery := servedResources()[strings.TrimPrefix(r.URL.Path, "/apis/")]
	object, known := s.objects[r.URL.Path]
	switch {
	case r.URL.Path == "/apis":
		respond(w, groupList())
	case isDiscovery:
		respond(w, metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
			GroupVersion: strings.TrimPrefix(r.URL.Path, "/apis/"), APIResources: resources,
		})
	case strings.HasSuffix(r.URL.Path, "subjectaccessreviews") && !s.noReviews:
		s.review(w, r)
	case !s.readOnly && r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/autoscalingpolicies"):
		s.write(w, r)
	case known && object == nil:
		s.refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, r.URL.Path+" not found")
	case known:
		respond(w, object)
	default:
		s.policyServer.ServeHTTP(w, r)
	}
}

func respond(w http.ResponseWriter, object any) {
	_ = json.NewEncoder(w).Encode(object)
}

// review answers in JSON what the client asks in protocol buffers.
func (s *checkServer) review(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	object, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	var spec *authorizationv1.SubjectAccessReviewSpec
	var status *authorizationv1.SubjectAccessReviewStatus
	switch review := object.(type) {
	case *authorizationv1.SubjectAccessReview:
		spec, status = &review.Spec, &review.Status
	case *authorizationv1.LocalSubjectAccessReview:
		spec, status = &review.Spec, &review.Status
	default:
		s.refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprint(err))
		return
	}
	a := spec.ResourceAttributes
	asked := strings.TrimSuffix(a.Verb+" "+a.Resource+"/"+a.Subresource, "/")
	s.reviewed = append(s.reviewed, spec.User+" "+a.Namespace+" "+asked)
	status.Allowed = !slices.Contains(s.denied, asked)
	respond(w, object)
}

// write creates or deletes a policy.
func (s *checkServer) write(w http.ResponseWriter, r *http.Request) {
	s.written = append(s.written, r.Method+" "+r.URL.Path)
	if r.Method != http.MethodPost {
		var options metav1.DeleteOptions
		_ = json.NewDecoder(r.Body).Decode(&options)
		if wanted := options.Preconditions.UID; *wanted != s.list.Items[0].UID {
			s.refuse(w, http.StatusConflict, metav1.StatusReasonConflict, "the UID in the precondition is "+string(*wanted))
			return
		}
		s.list.Items = nil
		respond(w, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Success"})
		return
	}
	var p v1alpha1.AutoscalingPolicy
	_ = json.NewDecoder(r.Body).Decode(&p)
	p.UID, p.Generation = "uid-1", 1
	created := p
	s.verdict(&p)
	s.list.Items = append(s.list.Items, p)
	w.WriteHeader(http.StatusCreated)
	respond(w, created)
}
