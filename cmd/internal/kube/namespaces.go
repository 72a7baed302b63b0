// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
)

const (
	// probeTimeout bounds all requests before the start. What they do not learn is left to the cache, which retries.
	probeTimeout = 10 * time.Second
	// probeInterval is the shortest time between two requests in a namespace that is left out, and half of the longest.
	probeInterval = time.Minute
)

// leftOut are chosen namespaces that may not be read, such as one that was deleted together with its RoleBinding. In a
// cache they would keep all namespaces from being read.
type leftOut struct {
	namespaces []string
	// probe lists policies of a namespace.
	probe func(ctx context.Context, namespace string) error
}

// leaveOut removes namespaces that may not be read from WatchNamespaces. All stay if none may be: no choice means all.
func (o *Options) leaveOut(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) (leftOut, error) {
	if len(o.WatchNamespaces) < 2 {
		return leftOut{}, nil
	}
	left, err := newLeftOut(config, scheme)
	if err != nil {
		return leftOut{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var readable []string
	for _, namespace := range o.WatchNamespaces {
		if apierrors.IsForbidden(left.probe(ctx, namespace)) {
			left.namespaces = append(left.namespaces, namespace)
		} else {
			readable = append(readable, namespace)
		}
	}
	if len(readable) == 0 || len(left.namespaces) == 0 {
		return leftOut{}, nil
	}
	o.WatchNamespaces = readable
	ctrl.Log.WithName("namespaces").Info("the API server refuses namespaces of --watch-namespaces, which are left out: "+
		"remove those that were deleted from watchNamespaces of the chart, and bind the permissions in those that exist",
		"namespaces", left.namespaces)
	return left, nil
}

func newLeftOut(config *rest.Config, scheme *runtime.Scheme) (leftOut, error) {
	mapper := meta.NewDefaultRESTMapper(nil) // knows the kind without a request
	mapper.Add(cluster.GVK(cluster.KindPolicy), meta.RESTScopeNamespace)
	direct, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return leftOut{}, fmt.Errorf("creating a client for --watch-namespaces: %w", err)
	}
	return leftOut{probe: func(ctx context.Context, namespace string) error {
		return direct.List(ctx, &v1alpha1.AutoscalingPolicyList{}, client.InNamespace(namespace), client.Limit(1))
	}}, nil
}

// NeedLeaderElection is false: every replica has left them out.
func (leftOut) NeedLeaderElection() bool { return false }

// Start ends the program, to be started again, as soon as one of the namespaces may be read: no cache takes more.
func (l leftOut) Start(ctx context.Context) error {
	for len(l.namespaces) > 0 {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait.Jitter(probeInterval, 1)): // replicas do not end at once
		}
		mayRead := func(namespace string) bool {
			ctx, cancel := context.WithTimeout(ctx, probeTimeout)
			defer cancel()
			return l.probe(ctx, namespace) == nil
		}
		if at := slices.IndexFunc(l.namespaces, mayRead); at >= 0 {
			return fmt.Errorf("namespace %s may be read now: starting again with it (it was left out of %s)",
				l.namespaces[at], strings.Join(l.namespaces, ", "))
		}
	}
	return nil
}
