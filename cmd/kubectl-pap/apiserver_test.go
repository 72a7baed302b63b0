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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// apiServer has policies, their events, and other objects by their path. The user may read nothing else, and paths with
// nil do not exist.
type apiServer struct {
	url     string
	list    v1alpha1.AutoscalingPolicyList
	events  corev1.EventList
	objects map[string]any
	// seen are the reads, reviewed the rights that were asked for, by namespace, and written the creations and deletions.
	seen              chan string
	reviewed, written []string
	// uninstalled is a cluster without the kind, alone one without other kinds, and forbidden one that permits nothing.
	uninstalled, alone, forbidden bool
	// changes are sent to a watch.
	changes chan metav1.WatchEvent
	// denied are rights that the adapter does not have, as "verb resource/subresource". With noReviews the user may not
	// ask for rights, and with readOnly not write policies.
	denied              []string
	noReviews, readOnly bool
	// verdict is what the adapter writes for a new policy.
	verdict func(*v1alpha1.AutoscalingPolicy)
}

func newAPIServer(t *testing.T, policies ...v1alpha1.AutoscalingPolicy) *apiServer {
	t.Helper()
	s := &apiServer{seen: make(chan string, 1000), changes: make(chan metav1.WatchEvent), objects: map[string]any{}}
	s.list.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "AutoscalingPolicyList"}
	s.list.ResourceVersion, s.list.Items = "1", policies
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *apiServer) reads() (all []string) {
	for len(s.seen) > 0 {
		all = append(all, <-s.seen)
	}
	return all
}

const policyGroup = "/apis/pulsar-autoscaler.io/v1alpha1"

// resources of each group and version, by the path of its discovery.
func (s *apiServer) resources() map[string][]metav1.APIResource {
	all := map[string][]metav1.APIResource{
		"/api/v1": {
			{Name: "events", Kind: "Event", Namespaced: true}, {Name: "namespaces", Kind: "Namespace"},
		},
		policyGroup:                       {{Name: "autoscalingpolicies", Kind: "AutoscalingPolicy", Namespaced: true}},
		"/apis/apps/v1":                   {{Name: "deployments", Kind: "Deployment", Namespaced: true}},
		"/apis/apiextensions.k8s.io/v1":   {{Name: "customresourcedefinitions", Kind: "CustomResourceDefinition"}},
		"/apis/apiregistration.k8s.io/v1": {{Name: "apiservices", Kind: "APIService"}},
		"/apis/compute.functionmesh.io/v1alpha1": {
			{Name: "functions", Kind: "Function", Namespaced: true},
			{Name: "functionmeshes", Kind: "FunctionMesh", Namespaced: true},
		},
		"/apis/authorization.k8s.io/v1": {
			{Name: "subjectaccessreviews", Kind: "SubjectAccessReview"},
			{Name: "localsubjectaccessreviews", Kind: "LocalSubjectAccessReview", Namespaced: true},
		},
	}
	maps.DeleteFunc(all, func(path string, _ []metav1.APIResource) bool {
		return s.uninstalled || s.alone && path != policyGroup
	})
	return all
}

func (s *apiServer) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}, Groups: []metav1.APIGroup{},
	}
	for path := range s.resources() {
		version, isGroup := strings.CutPrefix(path, "/apis/")
		group, number, _ := strings.Cut(version, "/")
		of := metav1.GroupVersionForDiscovery{GroupVersion: version, Version: number}
		if isGroup {
			list.Groups = append(list.Groups, metav1.APIGroup{
				Name: group, Versions: []metav1.GroupVersionForDiscovery{of}, PreferredVersion: of,
			})
		}
	}
	return list
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path, query := r.URL.Path, r.URL.Query()
	resources, isDiscovery := s.resources()[path]
	object, known := s.objects[path]
	_, name, isOne := strings.Cut(path, "/autoscalingpolicies/")
	switch {
	case path == "/api":
		respond(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case path == "/apis":
		respond(w, s.groups())
	case isDiscovery:
		respond(w, metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
			GroupVersion: path[strings.Index(path[1:], "/")+2:], APIResources: resources,
		})
	case strings.HasSuffix(path, "subjectaccessreviews") && !s.noReviews:
		s.review(w, r)
	case s.uninstalled, known && object == nil, !known && strings.Count(path, "/") <= 3:
		s.refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, path+" not found")
	case !s.readOnly && r.Method != http.MethodGet && strings.HasPrefix(path, policyGroup):
		s.write(w, r)
	case known:
		s.seen <- path + "?" + query.Get("labelSelector")
		respond(w, object)
	case path == "/api/v1/namespaces/media/events":
		s.seen <- path + "?" + query.Get("fieldSelector")
		respond(w, s.events)
	case s.forbidden || !strings.HasPrefix(path, policyGroup) || r.Method != http.MethodGet:
		s.refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, `User "jane" cannot `+r.Method+" "+path)
	case query.Get("sendInitialEvents") != "":
		s.refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents is not supported")
	case query.Get("watch") != "":
		s.watch(w, r)
	case isOne:
		s.seen <- path
		s.get(w, name)
	default:
		s.seen <- path + "?" + query.Get("labelSelector")
		respond(w, s.list)
	}
}

func respond(w http.ResponseWriter, object any) {
	_ = json.NewEncoder(w).Encode(object)
}

func (s *apiServer) refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.WriteHeader(code)
	respond(w, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code),
		Reason: reason, Message: message,
	})
}

func (s *apiServer) get(w http.ResponseWriter, name string) {
	at := slices.IndexFunc(s.list.Items, func(p v1alpha1.AutoscalingPolicy) bool { return p.Name == name })
	if at < 0 {
		s.refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, `autoscalingpolicies "`+name+`" not found`)
		return
	}
	respond(w, s.list.Items[at])
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request) {
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case change := <-s.changes:
			respond(w, change)
			w.(http.Flusher).Flush()
		}
	}
}

// review answers in JSON what the client asks in protocol buffers.
func (s *apiServer) review(w http.ResponseWriter, r *http.Request) {
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
func (s *apiServer) write(w http.ResponseWriter, r *http.Request) {
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
