// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// lateServer is an API server that answers at once and whose watches are late. It has policies and autoscalers.
type lateServer struct {
	t   *testing.T
	lag time.Duration

	// mu guards the rest.
	mu      sync.Mutex
	version int
	// objects by resource and name.
	objects map[string]map[string]*unstructured.Unstructured
	watches map[string][]chan lateEvent
	patches int
}

// lateEvent is an event that a watch delivers at its time.
type lateEvent struct {
	at     time.Time
	object []byte
}

func newLateServer(t *testing.T, lag time.Duration) *lateServer {
	return &lateServer{
		t: t, lag: lag, objects: map[string]map[string]*unstructured.Unstructured{}, watches: map[string][]chan lateEvent{},
	}
}

// put creates an object.
func (s *lateServer) put(resource string, of client.Object) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
	require.NoError(s.t, err)
	object := &unstructured.Unstructured{Object: fields}
	if resource == v1alpha1.ResourceAutoscalingPolicies {
		object.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(v1alpha1.KindAutoscalingPolicy))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(resource, object)
}

// policy is what the server has.
func (s *lateServer) policy(key types.NamespacedName) *v1alpha1.AutoscalingPolicy {
	s.mu.Lock()
	defer s.mu.Unlock()
	var p v1alpha1.AutoscalingPolicy
	object := s.objects[v1alpha1.ResourceAutoscalingPolicies][key.Name]
	require.NoError(s.t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &p))
	return &p
}

// store stores a version of an object and sends it to the watches. mu is held.
func (s *lateServer) store(resource string, object *unstructured.Unstructured) {
	s.version++
	object.SetResourceVersion(strconv.Itoa(s.version))
	if s.objects[resource] == nil {
		s.objects[resource] = map[string]*unstructured.Unstructured{}
	}
	s.objects[resource][object.GetName()] = object
	for _, events := range s.watches[resource] {
		events <- s.event(apiwatch.Modified, object)
	}
}

func (s *lateServer) event(kind apiwatch.EventType, object *unstructured.Unstructured) lateEvent {
	text, err := json.Marshal(map[string]any{"type": kind, "object": object.Object})
	require.NoError(s.t, err)
	return lateEvent{time.Now().Add(s.lag), text}
}

// RoundTrip implements http.RoundTripper for lists, watches and patches.
func (s *lateServer) RoundTrip(req *http.Request) (*http.Response, error) {
	at := strings.Split(strings.TrimPrefix(req.URL.Path, "/apis/"), "/")[2:]
	switch {
	case req.Method == http.MethodPatch:
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		return s.patch(at[2], at[3], body)
	case req.URL.Query().Get("watch") == "true":
		return s.watch(req, at[0]), nil
	default:
		return answer(http.StatusBadRequest, metav1.Status{Status: metav1.StatusFailure, Code: http.StatusBadRequest})
	}
}

// patch merges, as the API server does for what the controller writes.
func (s *lateServer) patch(resource, name string, patch []byte) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.patches++
	var fields map[string]any
	if err := json.Unmarshal(patch, &fields); err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if before := s.objects[resource][name]; before != nil {
		object = before.DeepCopy()
	} else {
		object.SetUID(types.UID("uid of " + name))
	}
	merge(object.Object, fields)
	s.store(resource, object)
	return answer(http.StatusOK, object.Object)
}

// merge is a merge patch.
func merge(into, patch map[string]any) {
	for key, value := range patch {
		fields, isMap := value.(map[string]any)
		before, wasMap := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && wasMap:
			merge(before, fields)
		default:
			into[key] = value
		}
	}
}

// watch sends the objects that exist, and then each change when it is due.
func (s *lateServer) watch(req *http.Request, resource string) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := make(chan lateEvent, 100_000)
	s.watches[resource] = append(s.watches[resource], events)
	var first bytes.Buffer
	for _, object := range s.objects[resource] {
		first.Write(s.event(apiwatch.Added, object).object)
	}
	synced := &unstructured.Unstructured{Object: map[string]any{}}
	synced.SetAPIVersion(strings.Join(strings.Split(req.URL.Path, "/")[2:4], "/"))
	synced.SetKind(map[string]string{
		v1alpha1.ResourceAutoscalingPolicies: v1alpha1.KindAutoscalingPolicy,
		"horizontalpodautoscalers":           "HorizontalPodAutoscaler", "functions": "Function",
	}[resource])
	synced.SetResourceVersion(strconv.Itoa(s.version))
	synced.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	first.Write(s.event(apiwatch.Bookmark, synced).object)
	reader, writer := io.Pipe()
	go func() {
		_, _ = writer.Write(first.Bytes())
		for {
			select {
			case <-req.Context().Done():
				_ = writer.CloseWithError(req.Context().Err())
				return
			case event := <-events:
				select {
				case <-time.After(time.Until(event.at)):
					_, _ = writer.Write(event.object)
				case <-req.Context().Done():
				}
			}
		}
	}()
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: reader, Request: req,
	}
}

func answer(status int, object any) (*http.Response, error) {
	text, err := json.Marshal(object)
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(text)),
	}, err
}
