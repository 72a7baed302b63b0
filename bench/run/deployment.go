// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// labelContender of pods has the name of their Deployment.
const labelContender = "bench.pulsar-autoscaler.io/contender"

// deployment consumes as the example Function does, without Function Mesh. Its image is that of this program, which
// needs only the network.
func (e entrant) deployment() *unstructured.Unstructured {
	selected := map[string]any{labelContender: e.function()}
	pod := map[string]any{
		"automountServiceAccountToken": false,
		"securityContext": map[string]any{
			"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"},
		},
		"containers": []any{e.container()},
	}
	if e.scenario.Pulsar.AuthSecret != "" {
		pod["volumes"] = []any{map[string]any{
			"name": copiedSecret, "secret": map[string]any{"secretName": copiedSecret},
		}}
	}
	return e.unstructured(deployments(), map[string]any{
		"replicas": int64(e.replicas()),
		"selector": map[string]any{"matchLabels": selected},
		"template": map[string]any{"metadata": map[string]any{"labels": selected}, "spec": pod},
	})
}

// container runs kubectl-pap bench consume.
func (e entrant) container() map[string]any {
	const mounted, plugin = "/run/secrets/pulsar", "PULSAR_AUTH_PLUGIN"
	f := e.scenario.Function
	size := map[string]any{"cpu": f.CPU, "memory": f.Memory}
	args := []any{
		"bench", "consume", "--service-url", e.scenario.Pulsar.Reached().ServiceURL, "--topic", e.input(),
		"--subscription", e.function(), "--output-topic", e.output(), "--service-time", f.ServiceTime.Duration.String(),
		"--receiver-queue-size", strconv.Itoa(f.ReceiverQueueSize),
	}
	container := map[string]any{
		"name": "consumer", "image": f.Image, "args": args,
		"resources": map[string]any{"requests": size, "limits": size},
		"securityContext": map[string]any{
			"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
			"capabilities": map[string]any{"drop": []any{"ALL"}},
		},
	}
	if e.scenario.Pulsar.AuthSecret != "" {
		container["args"] = append(args, "--pulsar-auth-plugin", "$("+plugin+")", "--pulsar-auth-params-file",
			mounted+"/"+keyParams)
		container["env"] = []any{map[string]any{"name": plugin, "valueFrom": map[string]any{
			"secretKeyRef": map[string]any{"name": copiedSecret, "key": keyPlugin},
		}}}
		container["volumeMounts"] = []any{map[string]any{"name": copiedSecret, "mountPath": mounted, "readOnly": true}}
	}
	return container
}
