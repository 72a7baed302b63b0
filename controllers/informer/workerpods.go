// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Labels of the objects that Pulsar's function worker creates: component is function, sink or source. The others are
// lossy, so they identify nothing.
//
// Source: Pulsar's KubernetesRuntime.getLabels.
const (
	labelWorkerComponent = "component"
	labelWorkerTenant    = "tenant"
	labelWorkerNamespace = "namespace"
	labelWorkerName      = "name"
)

// workerSelector selects the pods of Pulsar's function worker. Function Mesh's pods have some of those labels too.
func workerSelector() (labels.Selector, error) {
	selector := labels.NewSelector()
	for _, one := range []struct {
		key      string
		operator selection.Operator
		values   []string
	}{
		{labelWorkerComponent, selection.In, []string{"function", "sink", "source"}},
		{labelWorkerTenant, selection.Exists, nil},
		{labelWorkerNamespace, selection.Exists, nil},
		{labelWorkerName, selection.Exists, nil},
		{labelComponent, selection.DoesNotExist, nil},
	} {
		requirement, err := labels.NewRequirement(one.key, one.operator, one.values)
		if err != nil {
			return nil, fmt.Errorf("selecting pods of function workers: %w", err)
		}
		selector = selector.Add(*requirement)
	}
	return selector, nil
}

// isOfWorker is workerSelector for the labels that tell the two apart.
func isOfWorker(of map[string]string) bool {
	return of[labelComponent] == "" && of[labelWorkerComponent] != "" && of[labelWorkerTenant] != ""
}
