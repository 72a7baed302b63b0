// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"mime/multipart"
	"net/textproto"
	"strconv"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

// statusAnswer is /status of a function, sink or source. /stats, which only functions have, has the same counters but
// zeros both for an idle instance and for one that did not answer.
//
// Source: org.apache.pulsar.common.policies.data.FunctionStatus, SinkStatus and SourceStatus, which
// org.apache.pulsar.functions.worker.rest.api.FunctionsImpl, SinksImpl and SourcesImpl fill.
type statusAnswer struct {
	NumInstances *int `json:"numInstances"`
	Instances    []struct {
		ID     *int           `json:"instanceId"`
		Status instanceAnswer `json:"status"`
	} `json:"instances"`
}

type instanceAnswer struct {
	Running          *bool  `json:"running"`
	Error            string `json:"error"`
	SystemExceptions *int64 `json:"numSystemExceptions"`

	// of functions
	Received       *int64   `json:"numReceived"`
	Processed      *int64   `json:"numSuccessfullyProcessed"`
	UserExceptions *int64   `json:"numUserExceptions"`
	LatencyMillis  *float64 `json:"averageLatency"`

	// of sinks; instances of 4.0.8 never set numSinkExceptions and numSourceExceptions, so they are always 0
	Read           *int64 `json:"numReadFromPulsar"`
	Written        *int64 `json:"numWrittenToSink"`
	SinkExceptions *int64 `json:"numSinkExceptions"`

	// of sources
	ReceivedFromSource *int64 `json:"numReceivedFromSource"`
	WrittenToPulsar    *int64 `json:"numWritten"`
	SourceExceptions   *int64 `json:"numSourceExceptions"`
}

func (a statusAnswer) check() error {
	switch {
	case a.NumInstances == nil:
		return errors.New("numInstances is missing")
	case *a.NumInstances < 0:
		return fmt.Errorf("numInstances is %d", *a.NumInstances)
	}
	seen := make(map[int]bool, len(a.Instances))
	for _, instance := range a.Instances {
		if instance.ID == nil || *instance.ID < 0 || seen[*instance.ID] {
			return errors.New("an instance has no id of its own")
		}
		seen[*instance.ID] = true
		if instance.Status.Running == nil {
			return errors.New("running is missing")
		}
	}
	return nil
}

// decodeStatus reads /status, except for the time.
func decodeStatus(
	r io.Reader,
	component function.Component,
	runtime function.Runtime,
) (backlog.InstancesSample, error) {
	var answer statusAnswer
	if err := decodeJSON(r, &answer); err != nil {
		return backlog.InstancesSample{}, err
	}
	if err := answer.check(); err != nil {
		return backlog.InstancesSample{}, err
	}
	sample := backlog.InstancesSample{}
	for _, instance := range answer.Instances {
		counted, err := instance.Status.sample(component.Kind, runtime)
		if err != nil {
			return backlog.InstancesSample{}, fmt.Errorf("instance %d: %w", *instance.ID, err)
		}
		if !*instance.Status.Running || (instance.Status.Error != "" && counted.Received == 0) {
			continue // its counters are not real
		}
		counted.ID = component.FullName() + "#" + strconv.Itoa(*instance.ID)
		sample.Instances = append(sample.Instances, counted)
	}
	sample.Silent = max(*answer.NumInstances, len(answer.Instances)) - len(sample.Instances)
	return sample, nil
}

func (i instanceAnswer) sample(kind function.Kind, runtime function.Runtime) (backlog.InstanceSample, error) {
	received, processed, failed := i.Received, i.Processed, i.UserExceptions
	switch kind {
	case function.KindSink:
		received, processed, failed = i.Read, i.Written, i.SinkExceptions
	case function.KindSource:
		received, processed, failed = i.ReceivedFromSource, i.WrittenToPulsar, i.SourceExceptions
	case function.KindFunction:
	}
	var sample backlog.InstanceSample
	for _, number := range []struct {
		name string
		from *int64
		to   *int64
	}{
		{"the number of messages received", received, &sample.Received},
		{"the number of messages processed", processed, &sample.Processed},
		{"the number of exceptions", failed, &sample.UserExceptions},
		{"numSystemExceptions", i.SystemExceptions, &sample.SystemExceptions},
	} {
		value, err := counter(number.from, number.name)
		if err != nil {
			return backlog.InstanceSample{}, err
		}
		*number.to = value
	}
	if kind != function.KindFunction {
		return sample, nil
	}
	return sample, i.addCalls(&sample, runtime)
}

// addCalls adds the calls and the time in them. The mean is over all calls for Java, and over successful calls for
// Python and Go, as observed on real instances.
func (i instanceAnswer) addCalls(sample *backlog.InstanceSample, runtime function.Runtime) error {
	calls := sample.Processed
	if runtime == function.Java {
		calls += sample.UserExceptions
		sample.FailedCallsCounted = true
	}
	switch {
	case i.LatencyMillis == nil:
		return errors.New("averageLatency is missing")
	case *i.LatencyMillis < 0:
		return fmt.Errorf("averageLatency is %g", *i.LatencyMillis)
	case calls < 0: // an invalid sum of two counters
		return errors.New("the number of calls is too large")
	}
	busy := math.Round(*i.LatencyMillis * float64(calls) * float64(time.Millisecond))
	if busy >= math.MaxInt64 {
		return fmt.Errorf("averageLatency is %g", *i.LatencyMillis)
	}
	length := time.Duration(busy)
	sample.Calls, sample.BusyTime = &calls, &length
	return nil
}

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
	err = (&exchange{client: w.client, address: a, call: callParallelism, change: change}).do(ctx)
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
