// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestPolicyReadsWellInATable checks kubectl get of a policy that scales, with wide columns.
func TestPolicyReadsWellInATable(t *testing.T) {
	t.Parallel()
	const name, arriving, perReplica = "listed", 90, 25
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: time.Second / perReplica})
	addPolicy(t, newPolicy(name))
	publish(t, f, load.Constant(arriving))
	decided := f.AwaitPolicy(t, "replicas for the load, and a capacity",
		func(p *v1alpha1.AutoscalingPolicy) bool {
			s := p.Status
			return s.Capacity != nil && s.Signals != nil && s.Signals.Wait != nil &&
				s.SpecReplicas != nil && *s.SpecReplicas > arriving/perReplica
		})
	wanted := map[string]string{
		"Name": `^listed$`, "Target": `^Function/listed$`, "Backlog": `^\d+$`, "Wait": `^(\d+(\.\d)?s|\d+m\d+s)$`,
		"Met": `^(True|False|Unknown)$`, "Desired": `^\d+$`, "Running": `^\d+$`,
		"Hold": `^(<none>|\w+)$`, "Ready": `^True$`, "Reason": `^Scaling$`, "Age": `^\d+[sm]`,
		"Mode": `^Auto$`, "Spec": `^\d+$`, "Rate": `^\d{1,3}(\.\d{1,3})?$`, "Capacity": `^\d{1,2}(\.\d{1,2})?$`,
		"Why": `\w+ \w+`, "Decision": `\d`,
	}
	var cells map[string]string
	f.Await(t, "all columns to read well", func(context.Context) (bool, string, error) {
		cells = policyRow(t, name)
		for column, want := range wanted {
			if !regexp.MustCompile(want).MatchString(cells[column]) {
				return false, fmt.Sprintf("column %s of %v", column, cells), nil // a stall makes signals unknown for a while
			}
		}
		return true, "", nil
	})
	require.Len(t, cells, len(wanted), "columns")
	require.Equal(t, v1alpha1.ConditionReady, decided.Status.Conditions[0].Type, "the first condition")
}

// policyRow is the row of the API server's table for kubectl, by column.
func policyRow(t *testing.T, name string) map[string]string {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(scene.Cluster.RESTConfig())
	require.NoError(t, err)
	var body []byte
	body, err = clientset.RESTClient().Get().
		AbsPath("/apis/"+v1alpha1.GroupVersion().String()+"/namespaces/"+stage.Namespace+"/autoscalingpolicies/"+name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	require.NoError(t, err)
	var table metav1.Table
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // as kubectl, which does not write whole numbers with an exponent
	require.NoError(t, decoder.Decode(&table))
	require.Len(t, table.Rows, 1)
	cells := map[string]string{}
	for i, column := range table.ColumnDefinitions {
		cells[column.Name] = fmt.Sprint(table.Rows[0].Cells[i])
	}
	return cells
}
