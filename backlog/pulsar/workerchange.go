// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

// changeTimeout is how long a worker may take for a change: it fetches the package and loads its classes first. Small
// packages take 12 to 40 ms, as observed.
const changeTimeout = 15 * time.Second

// SetParallelism sets the number of instances of the component that the worker runs, at least 1, which restarts all of
// them. It sends only this number: a GET does not return the whole configuration, so its result must not be sent back.
// The current number changes nothing and is no error.
//
// The worker answers before the instances exist. On the Kubernetes runtime it deletes and recreates the StatefulSet:
// scale that instead.
//
// Errors are those of Describe, and backlog.ErrUnsupported if the worker refuses.
//
// Source: org.apache.pulsar.functions.worker.rest.api.FunctionsImpl.updateFunction and its siblings.
func (w *Worker) SetParallelism(ctx context.Context, component function.Component, instances int32) error {
	a, err := componentAddress(component)
	if err != nil {
		return err
	}
	if instances < 1 {
		return backlog.Errorf(backlog.ErrUnsupported, "%s cannot have %d instances: a worker runs 1 at least", a.subject,
			instances)
	}
	change, err := parallelismForm(component.Kind, instances)
	if err != nil {
		return err
	}
	a.timeout = changeTimeout
	err = w.client.put(ctx, a, callParallelism, change)
	if errors.Is(err, errNoChange) {
		return nil
	}
	return err
}

// Status reads the state of the component's instances. Errors are those of Describe.
func (w *Worker) Status(ctx context.Context, component function.Component) (status function.Status, err error) {
	a, err := componentAddress(component)
	if err != nil {
		return function.Status{}, err
	}
	_, err = w.status(ctx, a, func(r io.Reader) (err error) {
		status, err = decodeRunning(r)
		return err
	})
	if err != nil {
		return function.Status{}, err
	}
	return status, nil
}

// decodeRunning reads the running instances from /status. An instance that the worker could not reach, or has not
// scheduled, has an error; a stopped one has none.
//
// Source: org.apache.pulsar.functions.worker.rest.api.FunctionsImpl.GetFunctionStatus (notScheduledInstance,
// notRunning).
func decodeRunning(r io.Reader) (function.Status, error) {
	var answer statusAnswer
	if err := decodeJSON(r, &answer); err != nil {
		return function.Status{}, err
	}
	if err := answer.check(); err != nil {
		return function.Status{}, err
	}
	status := function.Status{
		Instances: *answer.NumInstances,
		Failed:    max(0, *answer.NumInstances-len(answer.Instances)),
	}
	for _, instance := range answer.Instances {
		switch {
		case *instance.Status.Running:
			status.Running++
		case instance.Status.Error != "":
			status.Failed++
		}
	}
	return status, nil
}

// parallelismForm is what pulsar-admin sends for a new parallelism. The part must have content type JSON.
func parallelismForm(kind function.Kind, instances int32) (*form, error) {
	var body bytes.Buffer
	parts := multipart.NewWriter(&body)
	part, err := parts.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {fmt.Sprintf(`form-data; name="%sConfig"`, kind)}, "Content-Type": {"application/json"},
	})
	if err == nil {
		_, err = fmt.Fprintf(part, `{"parallelism":%d}`, instances)
	}
	if err := errors.Join(err, parts.Close()); err != nil {
		return nil, fmt.Errorf("writing a form to memory: %w", err)
	}
	return &form{contentType: parts.FormDataContentType(), body: body.Bytes()}, nil
}
