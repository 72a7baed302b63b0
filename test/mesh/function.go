// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FunctionConfig describes a Java Function. Topics and PulsarConfig are required by Function Mesh.
type FunctionConfig struct {
	// Topics are the inputs.
	Topics []string
	// PulsarConfig is the name of the ConfigMap of PulsarConfig, in the same namespace.
	PulsarConfig string
	// Replicas is the initial number of replicas; Function Mesh's webhook rejects 0.
	Replicas int32
	// MaxReplicas enables Function Mesh's own HPA if it is not 0; MinReplicas 0 is the default, 1.
	MinReplicas, MaxReplicas int32
	// ServiceTime and StartDelay configure the replicas, see replica.Instance; times are in whole milliseconds.
	ServiceTime time.Duration
	StartDelay  time.Duration
	// ReceiverQueueSize is for all topics; 0 is Pulsar's 1000.
	ReceiverQueueSize int32
}

// Function returns a Function as users write them; the real webhook accepts it.
func Function(namespace, name string, config FunctionConfig) *unstructured.Unstructured {
	f := &unstructured.Unstructured{Object: map[string]any{}}
	f.SetGroupVersionKind(GroupVersion().WithKind(KindFunction))
	f.SetNamespace(namespace)
	f.SetName(name)
	size := map[string]any{"cpu": "200m", "memory": "256Mi"}
	fields := map[string]any{
		"className": "pulsarautoscaler.PacedFunction",
		"image":     "streamnative/pulsar-functions-java-runner:3.3.9",
		"java":      map[string]any{"jar": "/pulsar/paced-function.jar"},
		"input":     inputs(config),
		"pulsar":    map[string]any{"pulsarConfig": config.PulsarConfig},
		"resources": map[string]any{"requests": size, "limits": size},
		"replicas":  int64(config.Replicas),
		"autoAck":   true, "forwardSourceMessageProperty": true,
		"funcConfig": map[string]any{
			"serviceTimeMillis": config.ServiceTime.Milliseconds(),
			"startDelayMillis":  config.StartDelay.Milliseconds(),
		},
	}
	if config.MinReplicas != 0 {
		fields["minReplicas"] = int64(config.MinReplicas)
	}
	if config.MaxReplicas != 0 {
		fields["maxReplicas"] = int64(config.MaxReplicas)
	}
	f.Object["spec"] = fields
	return f
}

// Sink returns a Sink that behaves as the Function of this configuration.
func Sink(namespace, name string, config FunctionConfig) *unstructured.Unstructured {
	s := Function(namespace, name, config)
	s.SetKind(KindSink)
	fields := s.Object["spec"].(map[string]any)
	fields["className"], fields["sinkType"] = "pulsarautoscaler.PacedSink", "[B"
	fields["sinkConfig"] = fields["funcConfig"]
	delete(fields, "funcConfig")
	delete(fields, "forwardSourceMessageProperty")
	return s
}

func inputs(config FunctionConfig) map[string]any {
	topics, sources := []any{}, map[string]any{}
	for _, topic := range config.Topics {
		topics = append(topics, topic)
		sources[topic] = map[string]any{"receiverQueueSize": int64(config.ReceiverQueueSize)}
	}
	in := map[string]any{"typeClassName": "[B", "topics": topics}
	if config.ReceiverQueueSize != 0 {
		in["sourceSpecs"] = sources
	}
	return in
}

// PulsarConfig returns the ConfigMap of spec.pulsar.pulsarConfig with adminURL, e.g. "http://127.0.0.1:8080", and
// serviceURL, e.g. "pulsar://127.0.0.1:6650".
func PulsarConfig(namespace, name, adminURL, serviceURL string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string]string{keyAdminURL: adminURL, keyServiceURL: serviceURL},
	}
}
