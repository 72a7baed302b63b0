// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"errors"
	"fmt"
	"io"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

// decodeConfig reads the configuration of the component, and its parallelism.
func decodeConfig(r io.Reader, component function.Component) (f function.Function, parallelism int, err error) {
	var answer function.WorkerConfig
	if err := decodeJSON(r, &answer); err != nil {
		return function.Function{}, 0, err
	}
	if name := answer.FullName(); name != component.FullName() {
		return function.Function{}, 0, fmt.Errorf("it is about %s", backlog.Quote(name))
	}
	f, err = answer.Function(component.Kind)
	if err != nil {
		return function.Function{}, 0, err
	}
	return f, *answer.Parallelism, nil
}

// describe is what the component consumes; ErrUnsupported if that is not one subscription.
func describe(f function.Function, component function.Component, parallelism int) (function.Description, error) {
	subscription, kind, err := f.Subscription()
	switch {
	case errors.Is(err, backlog.ErrUnsupported):
		return function.Description{}, err
	case err != nil:
		return function.Description{}, backlog.Errorf(backlog.ErrUnsupported, "%s", err)
	}
	subscription.Cluster, subscription.Workload = component.Cluster, component.Workload()
	return function.Description{
		Subscription: subscription, Type: kind, Parallelism: parallelism, NeverAcknowledges: f.NeverAcknowledges,
	}, nil
}
