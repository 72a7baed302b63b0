// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// Kubernetes configures where a function worker runs functions. All fields are required.
type Kubernetes struct {
	// Kubeconfig is the path of a file with the permissions to create StatefulSets and Services.
	Kubeconfig string
	// Namespace of the StatefulSets and Services.
	Namespace string
	// Root is the directory of Pulsar in the containers of the pods.
	Root string
}

// environment has the cluster's address for the worker's client.
func (k *Kubernetes) environment() []string {
	if k == nil {
		return nil
	}
	return []string{"KUBECONFIG=" + k.Kubeconfig}
}

// workerConfig is functions_worker.yml; only the runtime differs on Kubernetes.
func (b *Broker) workerConfig() ([]byte, error) {
	text, err := files.ReadFile("conf/functions_worker.yml")
	if err != nil {
		return nil, fmt.Errorf("reading the worker's configuration: %w", err)
	}
	k := b.config.Kubernetes
	if k == nil {
		return text, nil
	}
	var config map[string]any
	if err := yaml.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("reading the worker's configuration: %w", err)
	}
	config["functionRuntimeFactoryClassName"] = "org.apache.pulsar.functions.runtime.kubernetes.KubernetesRuntimeFactory"
	config["functionRuntimeFactoryConfigs"] = map[string]any{
		"jobNamespace": k.Namespace, "submittingInsidePod": false, "pulsarRootDir": k.Root,
		"functionInstanceClassPath": k.Root + "/lib/*",
		"pulsarServiceUrl":          b.ServiceURL(), "pulsarAdminUrl": b.AdminURL(),
	}
	if text, err = yaml.Marshal(config); err != nil {
		return nil, fmt.Errorf("writing the worker's configuration: %w", err)
	}
	return text, nil
}
