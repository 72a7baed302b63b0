// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/scenario"
)

// need is a kind that a run creates or reads, with the fix if the cluster lacks it.
type need struct {
	kind schema.GroupVersionKind
	verb string
	fix  string
}

// needs of a scenario. Who may create an object is asked, not who may delete it: roles have both.
func needs(s scenario.Scenario) []need {
	all := []need{{corev1.SchemeGroupVersion.WithKind("Namespace"), "create", ""}}
	if s.Function.Kind == scenario.KindDeployment {
		all = append(all, need{deployments(), "create", ""})
	} else {
		all = append(all, need{
			functions(), "create",
			"install Function Mesh, or set function.kind to Deployment and function.image to that of kubectl-pap",
		})
	}
	for _, c := range s.Contenders {
		switch {
		case c.Policy != nil:
			all = append(all, need{policies(), "create", "install pulsar-autoscaler"})
		case c.CPU != nil:
			all = append(all, need{podMetrics(), "list", "install metrics-server, or remove the contender with cpu"})
		}
	}
	if s.NeedsKEDA() {
		all = append(all, need{scaledObjects(), "create", "install KEDA, or remove the contenders that need it"})
	}
	return all
}

// preflight finds what would end a run, before anything is created. The error has all of it.
func (r *runner) preflight(ctx context.Context) error {
	var all []error
	for _, n := range needs(r.Scenario) {
		all = append(all, r.checkNeed(ctx, n))
	}
	// The answer is 404: the request shows that Pulsar is there, and accepts the credentials.
	if _, err := r.admin.metadata(ctx, r.entrants()[0].input(), http.StatusOK, http.StatusNotFound); err != nil {
		all = append(all, err)
	}
	return errors.Join(append(all, dial(ctx, r.Scenario.Pulsar.ServiceURL))...)
}

// checkNeed looks for a kind, and for the right to use it.
func (r *runner) checkNeed(ctx context.Context, n need) error {
	mapping, err := r.Kube.RESTMapper().RESTMapping(n.kind.GroupKind(), n.kind.Version)
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the cluster has no %s of %s: %s", n.kind.Kind, n.kind.GroupVersion(), n.fix)
	case err != nil:
		return fmt.Errorf("looking for %s: %w", n.kind.Kind, err)
	}
	resource := mapping.Resource.GroupResource()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: n.verb, Group: resource.Group, Resource: resource.Resource, Namespace: r.namespace,
		},
	}}
	switch err := r.Kube.Create(ctx, review); {
	case err != nil:
		return fmt.Errorf("asking for the right to %s %s: %w", n.verb, resource, err)
	case !review.Status.Allowed:
		return fmt.Errorf("you may not %s %s in namespaces that the run creates: ask for that right", n.verb, resource)
	}
	return nil
}

// dial connects to a service URL, which was validated.
func dial(ctx context.Context, serviceURL string) error {
	const timeout = 10 * time.Second
	address, err := url.Parse(serviceURL)
	if err != nil {
		return fmt.Errorf("reading pulsar.serviceURL: %w", err)
	}
	host := address.Host
	if address.Port() == "" {
		host = net.JoinHostPort(address.Hostname(), map[string]string{"pulsar": "6650", "pulsar+ssl": "6651"}[address.Scheme])
	}
	connection, err := (&net.Dialer{Timeout: timeout}).DialContext(ctx, "tcp", host)
	if err != nil {
		return fmt.Errorf("connecting to Pulsar: %w; check pulsar.serviceURL", err)
	}
	return connection.Close()
}
