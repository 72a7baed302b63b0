// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// row is what kubectl get shows of a policy: cells by the name of their column.
type row struct{ narrow, wide map[string]string }

// columns are in the order in which they stand.
func columns(table metav1.Table) (narrow, wide []string) {
	for _, column := range table.ColumnDefinitions {
		wide = append(wide, column.Name)
		if column.Priority == 0 {
			narrow = append(narrow, column.Name)
		}
	}
	return narrow, wide
}

func tableOf(t *testing.T, path string) metav1.Table {
	t.Helper()
	body, err := raw(t).Get().AbsPath(path).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	require.NoError(t, err)
	var table metav1.Table
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // as kubectl, which does not write whole numbers with an exponent
	require.NoError(t, decoder.Decode(&table))
	require.Equal(t, "Table", table.Kind)
	require.Len(t, table.Rows, 1)
	require.Len(t, table.Rows[0].Cells, len(table.ColumnDefinitions))
	return table
}

func readRow(table metav1.Table) row {
	r := row{map[string]string{}, map[string]string{}}
	for i, column := range table.ColumnDefinitions {
		text := "<none>" // what kubectl prints
		if cell := table.Rows[0].Cells[i]; cell != nil {
			text = fmt.Sprint(cell)
		}
		r.wide[column.Name] = text
		if column.Priority == 0 {
			r.narrow[column.Name] = text
		}
	}
	return r
}

func TestTheTableTellsTargetStateAndWhy(t *testing.T) {
	onControlPlane(t)
	object := create(t, "resize", functionPolicy(nil))
	table := tableOf(t, policiesPath+object.GetName())
	narrow, wide := columns(table)
	require.Equal(t, []string{
		"Name", "Target", "Mode", "Backlog", "Wait", "Met", "Desired", "Running", "Hold", "Ready", "Reason", "Age",
	}, narrow)
	require.Equal(t, append(narrow, "Spec", "Rate", "Capacity", "Why", "Decision"), wide)

	fresh := readRow(table)
	require.Equal(t, map[string]string{
		"Name": "resize", "Target": "<none>", "Mode": "Auto", "Backlog": "<none>", "Wait": "<none>", "Met": "<none>",
		"Desired": "<none>", "Running": "<none>", "Hold": "<none>", "Ready": "Unknown", "Reason": "Pending",
		"Age": fresh.narrow["Age"],
	}, fresh.narrow, "what is unknown is not 0")

	require.NoError(t, patchStatus(t, object, func(s *v1alpha1.AutoscalingPolicyStatus) {
		published, processed := v1alpha1.NewRate(131.87), v1alpha1.NewRate(47.316)
		s.Target, s.DesiredReplicas, s.SpecReplicas, s.RunningReplicas = "Function/resize", new(int32(4)), new(int32(3)),
			new(int32(2))
		s.Signals = &v1alpha1.Signals{
			MeasuredAt: metav1.Now(), ReadyMessages: new(int64(1234567)), PublishRate: &published, ProcessRate: &processed,
			Wait: &metav1.Duration{Duration: 205 * time.Second},
		}
		s.Capacity = &v1alpha1.Capacity{
			MessagesPerSecond: v1alpha1.NewRate(47.316), UncertaintyPercent: new(int32(7)), Observations: 12,
			LearnedAt: metav1.Now(),
		}
		s.Decision = &v1alpha1.Decision{
			Time: metav1.Now(), Equation: "ceil(132/s / 47.3/s) = 3", Hold: &v1alpha1.Hold{Reason: "RolloutPaused"},
		}
		s.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Scaling", Message: "Function resize follows",
			LastTransitionTime: metav1.Now(),
		}, {
			Type: v1alpha1.ConditionObjectiveMet, Status: metav1.ConditionFalse, Reason: "CatchingUp",
			LastTransitionTime: metav1.Now(),
		}}
	}))
	shown := readRow(tableOf(t, policiesPath+object.GetName()))
	require.Equal(t, map[string]string{
		"Name": "resize", "Target": "Function/resize", "Backlog": "1234567", "Wait": "3m25s", "Met": "False",
		"Desired": "4", "Running": "2", "Hold": "RolloutPaused", "Ready": "True", "Reason": "Scaling",
		"Age": shown.wide["Age"], "Mode": "Auto", "Spec": "3", "Rate": "132", "Capacity": "47.3", "Why": "Function resize follows",
		"Decision": "ceil(132/s / 47.3/s) = 3",
	}, shown.wide)
	require.Regexp(t, `^\d+s$`, shown.wide["Age"])
}
