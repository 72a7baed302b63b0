// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
)

// readyTimeout is for the pull of an image, and for autoscalers.
const readyTimeout = 5 * time.Minute

// create makes topics, Function and autoscaler, and returns when replicas are ready and the autoscaler works.
func (r *runner) create(ctx context.Context, e entrant) error {
	r.tell("%s: creating Function %s: %s", e.Name, e.function(), e.setting())
	pulsarAdmin := admin{e.scenario.Pulsar.AdminURL}
	if err := pulsarAdmin.create(ctx, e.input(), e.scenario.Partitions); err != nil {
		return err
	}
	if err := pulsarAdmin.create(ctx, e.output(), 0); err != nil {
		return err
	}
	for _, object := range []client.Object{e.connection(), e.functionObject()} {
		if err := r.kube.Create(ctx, object); err != nil {
			return fmt.Errorf("creating what Function %s needs: %w", e.function(), err)
		}
	}
	what := "replicas of Function " + e.function() + " to be ready"
	err := waitFor(ctx, what, readyTimeout, func(ctx context.Context) (bool, string, error) {
		now, err := readReplicas(ctx, r.kube, e)
		return now.ready >= int(e.replicas()), fmt.Sprintf("%d of %d", now.ready, e.replicas()), err
	})
	if err != nil {
		return err
	}
	object := e.autoscaler()
	if object == nil {
		return nil
	}
	if err := r.kube.Create(ctx, object); err != nil {
		return fmt.Errorf("creating the autoscaler of %s: %w", e.function(), err)
	}
	return waitFor(ctx, "the autoscaler of "+e.function(), readyTimeout, func(ctx context.Context) (bool, string, error) {
		return r.scales(ctx, e)
	})
}

// scales says whether the autoscaler of an entrant works.
func (r *runner) scales(ctx context.Context, e entrant) (ok bool, seen string, err error) {
	key := client.ObjectKey{Namespace: e.namespace, Name: e.function()}
	if e.Policy != nil {
		policy := &v1alpha1.AutoscalingPolicy{}
		if err := r.kube.Get(ctx, key, policy); err != nil {
			return false, "", err
		}
		for _, condition := range []string{v1alpha1.ConditionAutoscalerApplied, v1alpha1.ConditionScalingActive} {
			found := meta.FindStatusCondition(policy.Status.Conditions, condition)
			if found == nil || found.Status != "True" {
				return false, condition + " is not True" + messageOf(found), nil
			}
		}
		return true, "", nil
	}
	object, condition := e.autoscalerKind()
	if err := r.kube.Get(ctx, key, object); err != nil {
		return false, "", err
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, one := range conditions {
		if fields, isMap := one.(map[string]any); isMap && fields["type"] == condition {
			return fields["status"] == "True", fmt.Sprintf("%s: %v", condition, fields["message"]), err
		}
	}
	return false, condition + " is not there", err
}

// autoscalerKind is an object to read a ScaledObject or a HorizontalPodAutoscaler into, and its condition.
func (e entrant) autoscalerKind() (object *unstructured.Unstructured, condition string) {
	object = &unstructured.Unstructured{}
	if e.KEDAPulsar != nil {
		object.SetGroupVersionKind(scaledObjects())
		return object, "Ready"
	}
	object.SetAPIVersion("autoscaling/v2")
	object.SetKind("HorizontalPodAutoscaler")
	return object, "ScalingActive"
}

// gauge counts messages for samples.
type gauge struct {
	publisher *load.Publisher
	meter     *load.Meter
}

func (g gauge) read() (published, done int64, p50 *float64) {
	if recent := g.meter.Recent(); recent.Count > 0 {
		p50 = new(recent.P50.Seconds())
	}
	return g.publisher.Published(), g.meter.Counts().Done, p50
}

// measure publishes the load to an entrant and watches it.
func (r *runner) measure(ctx context.Context, pulsarClient pulsar.Client, e entrant) (Contender, error) {
	publisher, err := load.NewPublisher(pulsarClient, load.Publishing{
		Topic: e.input(), Run: e.run + "-" + e.Name, Messages: e.scenario.Messages, Seed: e.scenario.Load.Seed,
	})
	if err != nil {
		return Contender{}, err
	}
	defer publisher.Close()
	meter, err := load.NewMeter(pulsarClient, load.Metering{
		Topic: e.output(), Run: e.run + "-" + e.Name, Objective: e.scenario.LatencyObjective.Duration,
	})
	if err != nil {
		return Contender{}, err
	}
	defer meter.Close()
	begun := time.Now()
	r.tell("%s: publishing for %s, then watching for %s", e.Name, r.schedule.End(), e.scenario.WatchAfter.Duration)
	length := r.schedule.End() + e.scenario.WatchAfter.Duration
	watching, stop := context.WithTimeout(ctx, length)
	defer stop()
	c := Contender{Name: e.Name, Setting: e.setting()}
	group, grouped := errgroup.WithContext(watching)
	group.Go(func() error { return publisher.Run(grouped, r.schedule.Arrivals()) })
	group.Go(func() error { return meter.Run(grouped) })
	group.Go(func() error {
		c.Samples = watch(grouped, func(ctx context.Context) Sample {
			return sample(ctx, r.kube, e, gauge{publisher, meter}, begun)
		})
		return nil
	})
	if err := group.Wait(); err != nil {
		return Contender{}, fmt.Errorf("%s: %w", e.Name, err)
	}
	if ctx.Err() != nil {
		return Contender{}, context.Cause(ctx)
	}
	c.Messages = load.NewResult(r.due(), publisher, meter)
	c.Begun = begun.UTC()
	if c.Usage, err = usageOf(c.Samples, length.Seconds()); err != nil {
		return Contender{}, fmt.Errorf("%s: %w", e.Name, err)
	}
	return c, nil
}

// messageOf a condition, if there is one.
func messageOf(condition *metav1.Condition) string {
	if condition == nil {
		return ""
	}
	return ": " + condition.Message
}
