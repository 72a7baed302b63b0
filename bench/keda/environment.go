// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/testbed"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/faults"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/keda"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

const (
	// readyTimeout is several times what 300 ScaledObjects take.
	readyTimeout = 10 * time.Minute
	look         = 200 * time.Millisecond
)

// environment is a stage with KEDA and our scaler.
type environment struct {
	*stage.Stage

	// proxy stands in front of the broker's admin service, as server; both are nil on a stage without a broker.
	proxy    *faults.Proxy
	server   *httptest.Server
	progress io.Writer
	begun    time.Time
	// closeStage ends the stage; nil before the start.
	closeStage func()
}

// openEnvironment starts the stage with shipped intervals and a real broker. All contenders reach its admin service
// through a proxy.
func openEnvironment(ctx context.Context, progress io.Writer) (_ *environment, err error) {
	e := &environment{progress: progress, begun: time.Now()}
	defer func() {
		if err != nil {
			e.Close()
		}
	}()
	served := http.NewServeMux() // nothing until the broker has an address
	e.server = httptest.NewServer(served)
	config := stageConfig(e.server.URL, progress)
	config.AdapterFlags = append(config.AdapterFlags,
		"--allowed-pulsar-hosts="+strings.TrimPrefix(e.server.URL, "http://"))
	if e.Stage, e.closeStage, err = testbed.Open(ctx, config); err != nil {
		return nil, err
	}
	if e.proxy, err = faults.NewProxy(e.Broker.AdminURL()); err != nil {
		return nil, err
	}
	served.Handle("/", e.proxy)
	return e, nil
}

// Close stops everything.
func (e *environment) Close() {
	if e.closeStage != nil {
		e.closeStage()
	}
	if e.server != nil {
		e.server.CloseClientConnections()
		e.server.Close()
	}
}

func (e *environment) tell(format string, args ...any) {
	output.Printf(e.progress, "%4.0f s  "+format+"\n", append([]any{time.Since(e.begun).Seconds()}, args...)...)
}

// scale does what kubectl scale does.
func (e *environment) scale(ctx context.Context, function string, replicas int) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(mesh.GroupVersion().WithKind(mesh.KindFunction))
	object.SetNamespace(stage.Namespace)
	object.SetName(function)
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	if err := e.Client.SubResource("scale").Patch(ctx, object, patch); err != nil {
		return fmt.Errorf("scaling Function %s: %w", function, err)
	}
	return nil
}

// waitForAutoscalers waits until KEDA has an autoscaler for each job's ScaledObject and reports it ready.
func (e *environment) waitForAutoscalers(ctx context.Context, jobs []job) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return cluster.WaitFor(ctx, "an autoscaler for each ScaledObject", time.Second,
		func(ctx context.Context) (bool, string, error) {
			objects := &unstructured.UnstructuredList{}
			objects.SetGroupVersionKind(stage.ScaledObjects())
			var autoscalers autoscalingv2.HorizontalPodAutoscalerList
			err := errors.Join(
				e.Client.List(ctx, objects, client.InNamespace(stage.Namespace)),
				e.Client.List(ctx, &autoscalers, client.InNamespace(stage.Namespace)),
			)
			if err != nil {
				return false, "", fmt.Errorf("listing ScaledObjects and autoscalers: %w", err)
			}
			owned := map[string]bool{}
			for i := range autoscalers.Items {
				owner := metav1.GetControllerOf(&autoscalers.Items[i])
				if owner != nil && owner.Kind == stage.ScaledObjects().Kind {
					owned[owner.Name] = true
				}
			}
			ready := map[string]bool{}
			for i := range objects.Items {
				ready[objects.Items[i].GetName()] = readyToScale(&objects.Items[i])
			}
			settled, missing := 0, ""
			for _, j := range jobs {
				if name := j.scaledObjectName(); owned[name] && ready[name] {
					settled++
				} else {
					missing = name
				}
			}
			return settled == len(jobs), fmt.Sprintf("%d of %d, not %s", settled, len(jobs), missing), nil
		})
}

// readyToScale reports whether a ScaledObject is ready and has metrics, without which KEDA drops pushed values.
func readyToScale(object *unstructured.Unstructured) bool {
	metrics, _, _ := unstructured.NestedStringSlice(object.Object, "status", "externalMetricNames")
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, one := range conditions {
		if fields, ok := one.(map[string]any); ok && fields["type"] == "Ready" {
			return fields["status"] == string(metav1.ConditionTrue) && len(metrics) > 0
		}
	}
	return false
}

// waitForReadings waits until the policies of the jobs know their backlogs.
func (e *environment) waitForReadings(ctx context.Context, jobs []job) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return cluster.WaitFor(ctx, "policies to know their backlogs", time.Second,
		func(ctx context.Context) (bool, string, error) {
			var policies v1alpha1.AutoscalingPolicyList
			if err := e.Client.List(ctx, &policies, client.InNamespace(stage.Namespace)); err != nil {
				return false, "", fmt.Errorf("listing policies: %w", err)
			}
			known := map[string]bool{}
			for i := range policies.Items {
				p := &policies.Items[i]
				known[p.Name] = meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionBacklogKnown)
			}
			for _, j := range jobs {
				if j.contender == ours && !known[j.function] {
					return false, "unknown backlog of " + j.function, nil
				}
			}
			return true, "", nil
		})
}

// stageConfig is KEDA and our scaler as shipped; the scaler reads adminURL for triggers without a policy.
func stageConfig(adminURL string, progress io.Writer) stage.Config {
	return stage.Config{
		Progress: progress, KEDA: &keda.Config{Progress: progress}, ScalerFlags: []string{"--pulsar-admin-url=" + adminURL},
	}
}

// scalerAddress is the address of our scaler for KEDA.
func (e *environment) scalerAddress() string { return e.Scaler.Address }
