// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
)

// ScaledObjectConfig configures a user's ScaledObject with one trigger for our scaler. Name and Metadata are required.
type ScaledObjectConfig struct {
	Name string
	// Target is the scale target; empty is the Function of the same name.
	Target autoscalingv2.CrossVersionObjectReference
	// Pull makes the trigger of type external instead of external-push.
	Pull bool
	// Metadata of the trigger; the scaler's address is added.
	Metadata map[string]string
	// Scaler is the scaler of the trigger; nil is the stage's first.
	Scaler *Scaler
	// PollingSeconds and CooldownSeconds are KEDA's; 0 is 2 and 5.
	PollingSeconds, CooldownSeconds int64
	// Most is maxReplicaCount; 0 is 10.
	Most int64
	// Edit changes the object before its creation; nil is none.
	Edit func(object *unstructured.Unstructured)
}

// ScaledObject is one of a user or of the adapter.
type ScaledObject struct {
	Name  string
	stage *Stage
}

// ScaledObjects is the kind.
func ScaledObjects() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"}
}

// AddScaledObject creates the ScaledObject, and its TriggerAuthentication if the scaler requires one. Scale-down is
// immediate: the default of KEDA's HorizontalPodAutoscaler is a window of 5 minutes.
func (s *Stage) AddScaledObject(ctx context.Context, config ScaledObjectConfig) (*ScaledObject, error) {
	scaler := config.Scaler
	if scaler == nil {
		scaler = s.Scaler
	}
	trigger, err := s.trigger(ctx, scaler, config)
	if err != nil {
		return nil, err
	}
	object := NewScaledObject(config.Name, config.Target, trigger, map[string]any{
		"pollingInterval": cmp.Or(config.PollingSeconds, 2), "cooldownPeriod": cmp.Or(config.CooldownSeconds, 5),
		"maxReplicaCount": cmp.Or(config.Most, 10),
		"advanced": map[string]any{"horizontalPodAutoscalerConfig": map[string]any{"behavior": map[string]any{
			"scaleDown": map[string]any{"stabilizationWindowSeconds": int64(0)},
		}}},
	})
	if config.Edit != nil {
		config.Edit(object)
	}
	if err := s.Client.Create(ctx, object); err != nil {
		return nil, fmt.Errorf("creating ScaledObject %s: %w", config.Name, err)
	}
	return s.ScaledObject(config.Name), nil
}

// NewScaledObject has a trigger, no replicas at least, and more fields of the spec. An empty target is the Function of
// its name.
func NewScaledObject(name string, target autoscalingv2.CrossVersionObjectReference, trigger, more map[string]any,
) *unstructured.Unstructured {
	if target.Name == "" {
		target = autoscalingv2.CrossVersionObjectReference{
			APIVersion: mesh.GroupVersion().String(), Kind: mesh.KindFunction, Name: name,
		}
	}
	spec := map[string]any{
		"scaleTargetRef":  map[string]any{"apiVersion": target.APIVersion, "kind": target.Kind, "name": target.Name},
		"minReplicaCount": int64(0), "triggers": []any{trigger},
	}
	maps.Copy(spec, more)
	scaled := object(ScaledObjects(), name)
	scaled.Object["spec"] = spec
	return scaled
}

// trigger returns the trigger for the scaler, with its connection settings.
func (s *Stage) trigger(ctx context.Context, scaler *Scaler, config ScaledObjectConfig) (map[string]any, error) {
	metadata := map[string]any{"scalerAddress": scaler.Address}
	if scaler.security != Plain {
		metadata["enableTLS"] = "true"
	}
	for key, value := range maps.All(config.Metadata) {
		metadata[key] = value
	}
	trigger := map[string]any{"type": "external-push", "metadata": metadata}
	if config.Pull {
		trigger["type"] = "external"
	}
	if scaler.security != MutualTLS {
		return trigger, nil
	}
	if err := s.applyAuthentication(ctx, config.Name); err != nil {
		return nil, err
	}
	trigger["authenticationRef"] = map[string]any{"name": config.Name}
	return trigger, nil
}

// applyAuthentication creates a TriggerAuthentication with its own client certificate.
func (s *Stage) applyAuthentication(ctx context.Context, name string) error {
	ca, cert, key, err := s.ClientCertificate(name)
	if err != nil {
		return err
	}
	const caKey = "ca.crt"
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name + "-scaler"},
		Data:       map[string][]byte{caKey: ca, corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key},
	}
	if err := s.Client.Create(ctx, secret); client.IgnoreAlreadyExists(err) != nil { // of an earlier one
		return fmt.Errorf("creating the Secret of ScaledObject %s: %w", name, err)
	}
	var refs []any
	for parameter, key := range map[string]string{
		"caCert": caKey, "tlsClientCert": corev1.TLSCertKey, "tlsClientKey": corev1.TLSPrivateKeyKey,
	} {
		refs = append(refs, map[string]any{"parameter": parameter, "name": secret.Name, "key": key})
	}
	authentication := object(ScaledObjects().GroupVersion().WithKind("TriggerAuthentication"), name)
	authentication.Object["spec"] = map[string]any{"secretTargetRef": refs}
	if err := s.Client.Create(ctx, authentication); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("creating the TriggerAuthentication of ScaledObject %s: %w", name, err)
	}
	return nil
}

// ScaledObject returns the ScaledObject of that name, which may not exist.
func (s *Stage) ScaledObject(name string) *ScaledObject { return &ScaledObject{Name: name, stage: s} }

// Exists reports whether it exists.
func (o *ScaledObject) Exists(ctx context.Context) (bool, error) {
	_, err := o.Read(ctx)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// Read reads the object.
func (o *ScaledObject) Read(ctx context.Context) (*unstructured.Unstructured, error) {
	object := object(ScaledObjects(), o.Name)
	if err := o.stage.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return nil, fmt.Errorf("reading ScaledObject %s: %w", o.Name, err)
	}
	return object, nil
}

// ScaledObjectStatus is the status that KEDA writes.
type ScaledObjectStatus struct {
	// Conditions have a type, a status, a reason and a message; KEDA sets no times.
	Conditions []metav1.Condition `json:"conditions"`
	// ExternalMetricNames are the metrics of the HorizontalPodAutoscaler, and HPAName is its name.
	ExternalMetricNames []string `json:"externalMetricNames"`
	HPAName             string   `json:"hpaName"`
	// TriggersActivity has an element for each metric once KEDA has polled its trigger.
	TriggersActivity map[string]struct {
		IsActive bool `json:"isActive"`
	} `json:"triggersActivity"`
	// LastActiveTime is when KEDA last saw the trigger active; zero for never.
	LastActiveTime metav1.Time `json:"lastActiveTime"`
}

// Status reads the status.
func (o *ScaledObject) Status(ctx context.Context) (ScaledObjectStatus, error) {
	var read struct {
		Status ScaledObjectStatus `json:"status"`
	}
	object, err := o.Read(ctx)
	if err != nil {
		return read.Status, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read); err != nil {
		return read.Status, fmt.Errorf("reading the status of ScaledObject %s: %w", o.Name, err)
	}
	return read.Status, nil
}

// Autoscaler reads KEDA's HorizontalPodAutoscaler; nil if there is none.
func (o *ScaledObject) Autoscaler(ctx context.Context) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	status, err := o.Status(ctx)
	if err != nil || status.HPAName == "" {
		return nil, err
	}
	return o.stage.autoscalerNamed(ctx, status.HPAName)
}

// Events are those of the ScaledObject: the text by reason, the last one of each.
func (o *ScaledObject) Events(ctx context.Context) (map[string]string, error) {
	list := &corev1.EventList{}
	err := o.stage.Client.List(ctx, list, client.InNamespace(Namespace), client.MatchingFields{
		"involvedObject.kind": ScaledObjects().Kind, "involvedObject.name": o.Name,
	})
	if err != nil {
		return nil, fmt.Errorf("listing the events of ScaledObject %s: %w", o.Name, err)
	}
	texts := map[string]string{}
	for i := range list.Items {
		texts[list.Items[i].Reason] = list.Items[i].Message
	}
	return texts, nil
}

// Patch changes the spec by a JSON merge patch.
func (o *ScaledObject) Patch(ctx context.Context, patch client.Patch) error {
	if err := o.stage.Client.Patch(ctx, object(ScaledObjects(), o.Name), patch); err != nil {
		return fmt.Errorf("patching ScaledObject %s: %w", o.Name, err)
	}
	return nil
}

// Remove deletes the ScaledObject and returns when KEDA has removed its finalizer.
func (o *ScaledObject) Remove(ctx context.Context) error {
	object := object(ScaledObjects(), o.Name)
	if err := o.stage.Client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ScaledObject %s: %w", o.Name, err)
	}
	return cluster.WaitFor(ctx, "ScaledObject "+o.Name+" to go", pollEvery,
		func(ctx context.Context) (bool, string, error) {
			err := o.stage.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
			return apierrors.IsNotFound(err), fmt.Sprint(err), client.IgnoreNotFound(err)
		})
}
