// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
)

// The kinds that a run creates, and one that it needs.
func functions() schema.GroupVersionKind     { return cluster.GVK(cluster.KindFunction) }
func deployments() schema.GroupVersionKind   { return cluster.GVK(cluster.KindDeployment) }
func scaledObjects() schema.GroupVersionKind { return cluster.GVK(cluster.KindScaledObject) }
func policies() schema.GroupVersionKind      { return cluster.GVK(cluster.KindPolicy) }

func podMetrics() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "metrics.k8s.io", Version: "v1beta1", Kind: "PodMetrics"}
}

// NewClient returns a client of all kinds that a run, or another command of the plugin, needs.
func NewClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme),
		apiextensionsv1.AddToScheme(scheme), apiregistrationv1.AddToScheme(scheme))
	if err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 100 // a few requests a second for each contender
	kube, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client of the cluster: %w", err)
	}
	return kube, nil
}

// pollEvery is the interval at which waitFor calls done.
const pollEvery = 500 * time.Millisecond

// waitFor waits until done returns true. After the limit its error has the last text of done.
func waitFor(ctx context.Context, what string, limit time.Duration,
	done func(ctx context.Context) (ok bool, seen string, err error),
) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		ok, seen, err := done(limited)
		switch {
		case ok && err == nil:
			return nil
		case err != nil && limited.Err() == nil && !isTransient(err):
			return fmt.Errorf("waiting for %s: %w", what, err)
		case err != nil:
			seen = err.Error()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		case <-limited.Done():
			return fmt.Errorf("waiting for %s: timed out after %s; last seen: %s", what, limit, seen)
		case <-ticker.C:
		}
	}
}
