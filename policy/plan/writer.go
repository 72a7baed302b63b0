// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Field managers that write replicas. A program that does not name its manager gets its own name from the API server.
const (
	managerKubectl           = "kubectl"
	managerControllerManager = "kube-controller-manager"
	managerKEDA              = "keda"
)

// tool has a field manager.
type tool struct {
	name string
	// applies is true if it applies manifests, so that it writes the same number again.
	applies bool
}

// tools are those that have one manager for all that they write, by the manager.
func tools() map[string]tool {
	return map[string]tool{
		"kubectl-client-side-apply":     {"kubectl apply", true},
		managerKEDA:                     {"KEDA", false},
		"argocd-controller":             {"Argo CD", true},
		"argocd-application-controller": {"Argo CD", true},
		"kustomize-controller":          {"Flux", true},
		"helm-controller":               {"Flux", true},
		"helm":                          {"Helm", true},
	}
}

// subresourceScale is where kubectl scale and autoscalers write replicas.
const subresourceScale = "scale"

// longestManager is the API server's limit.
const longestManager = 128

// Writer is what last wrote the replicas of a target, by the managed fields of the object.
type Writer struct {
	// Manager is the field manager, such as kubectl.
	Manager string
	// Operation is Update or Apply.
	Operation metav1.ManagedFieldsOperationType
	// Subresource that it wrote to, such as scale; empty for the object itself.
	Subresource string
	// At is when it wrote, to the second; zero if unknown, as for a write to the scale subresource.
	At time.Time
}

// WriterLookup is the result of looking up the writer.
type WriterLookup struct {
	Writer Writer
	// Failed is why the writer is unknown; nil if it is known.
	Failed error
}

// ErrNoWriter reports that no manager owns the field, as after a write of 0 to the scale subresource.
//
// Source: kube-apiserver 1.36, measured: a Scale omits replicas that are 0, and thereby their owner.
var ErrNoWriter = errors.New("no field manager owns the field")

// LastWriter decodes managed fields, and returns the last writer of the field. A write of another value removes the
// field from all other managers; a write of the same value only adds the manager of an apply.
func LastWriter(entries []metav1.ManagedFieldsEntry, path []string) (Writer, error) {
	var last *metav1.ManagedFieldsEntry
	for i := range entries {
		entry := &entries[i]
		owned, err := owns(entry.FieldsV1, path)
		if err != nil {
			return Writer{}, fmt.Errorf("decoding the managed fields of %s: %w", Shorten(entry.Manager, longestManager), err)
		}
		if owned && entry.Manager != "" && (last == nil || changedLater(entry, last)) {
			last = entry
		}
	}
	if last == nil {
		return Writer{}, fmt.Errorf("%w %s", ErrNoWriter, strings.Join(path, "."))
	}
	writer := Writer{
		Manager: Shorten(last.Manager, longestManager), Operation: last.Operation, Subresource: last.Subresource,
	}
	if last.Time != nil {
		writer.At = last.Time.Time
	}
	return writer, nil
}

// changedLater returns the owner that changed the field later. Entries of the scale subresource have no time; one that
// still owns the field made the last change.
//
// Source: kube-apiserver 1.36, measured with kubectl 1.36.
func changedLater(a, b *metav1.ManagedFieldsEntry) bool {
	if a.Operation != b.Operation {
		return a.Operation == metav1.ManagedFieldsOperationUpdate
	}
	return a.Time == nil || (b.Time != nil && !a.Time.Time.Before(b.Time.Time))
}

// owns reports whether a set of fields has the one at the path, such as {"f:spec":{"f:replicas":{}}}.
func owns(set *metav1.FieldsV1, path []string) (bool, error) {
	if set == nil {
		return false, nil
	}
	fields := set.GetRawBytes()
	for _, name := range path {
		var children map[string]json.RawMessage
		if err := json.Unmarshal(fields, &children); err != nil {
			return false, err
		}
		var found bool
		if fields, found = children["f:"+name]; !found {
			return false, nil
		}
	}
	return true, nil
}

// Name is the tool as its user calls it, if the manager shows it; else the manager.
func (w Writer) Name() string {
	scales := w.Subresource == subresourceScale
	switch known, found := tools()[w.Manager]; {
	case found:
		return known.name
	case w.Manager == managerKubectl && scales:
		return "kubectl scale"
	case w.Manager == managerKubectl && w.Operation == metav1.ManagedFieldsOperationApply:
		return "kubectl apply --server-side"
	case w.Manager == managerControllerManager && scales:
		return "a HorizontalPodAutoscaler"
	}
	if command, found := strings.CutPrefix(w.Manager, managerKubectl+"-"); found {
		return "kubectl " + command // kubectl-edit, kubectl-patch, kubectl-replace
	}
	return w.Manager
}

// String is the tool, with details that distinguish it from others of its name.
func (w Writer) String() string {
	name, details := w.Name(), []string{}
	if name != w.Manager {
		details = append(details, "manager "+w.Manager)
	}
	details = append(details, string(w.Operation))
	if w.Subresource != "" {
		details = append(details, "subresource "+w.Subresource)
	}
	text := fmt.Sprintf("%s (%s)", name, strings.Join(details, ", "))
	if !w.At.IsZero() {
		text += " at " + w.At.UTC().Format(time.RFC3339)
	}
	return text
}

// applies reports whether the writer applies a manifest, so that it writes the same number again.
func (w Writer) applies() bool {
	return w.Operation == metav1.ManagedFieldsOperationApply || tools()[w.Manager].applies
}

// ManualScale is a change of the target's replicas that neither the policy nor its autoscaler wrote.
type ManualScale struct {
	// Field is what was written, such as spec.replicas.
	Field    string
	From, To int32
	// NoticedAt is when the change was seen. The writer's own time is the API server's.
	NoticedAt time.Time
	WriterLookup
}

// String names the writer, or why it is unknown, and the fix if it will write the number again.
func (m ManualScale) String() string {
	text := fmt.Sprintf("%s %d -> %d was written ", m.Field, m.From, m.To)
	switch {
	case m.To == 0 && errors.Is(m.Failed, ErrNoWriter):
		return text + "to the scale subresource, such as by kubectl scale: the API server does not track who writes 0 to it"
	case m.Failed != nil:
		return text + "by an unknown writer: " + m.Failed.Error()
	case m.Writer.applies():
		return text + fmt.Sprintf("by %s: let it ignore %s, or its next sync writes that number again", m.Writer, m.Field)
	default:
		return text + "by " + m.Writer.String()
	}
}
