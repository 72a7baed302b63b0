// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
)

// functionDetails is the part of what an instance is told that scaling rests on. It is protobuf's JSON, in which fields
// with their default value are absent: those of the enumerations are ATLEAST_ONCE, JAVA and SHARED.
//
// Source: Pulsar's Function.proto, FunctionDetails.
type functionDetails struct {
	Tenant               string `json:"tenant"`
	Namespace            string `json:"namespace"`
	Name                 string `json:"name"`
	ComponentType        string `json:"componentType"`
	Runtime              string `json:"runtime"`
	ProcessingGuarantees string `json:"processingGuarantees"`
	// UserConfig and CustomRuntimeOptions are JSON in a string.
	UserConfig           string        `json:"userConfig"`
	CustomRuntimeOptions string        `json:"customRuntimeOptions"`
	Source               detailsSource `json:"source"`
	Sink                 detailsSink   `json:"sink"`
}

type detailsSource struct {
	ClassName        string                    `json:"className"`
	SubscriptionType string                    `json:"subscriptionType"`
	SubscriptionName string                    `json:"subscriptionName"`
	InputSpecs       map[string]workloadSource `json:"inputSpecs"`
	// TopicsToSerDeClassName and TopicsPattern are older ways to name inputs, which instances still follow.
	TopicsToSerDeClassName map[string]string `json:"topicsToSerDeClassName"`
	TopicsPattern          string            `json:"topicsPattern"`
}

type detailsSink struct {
	ClassName string `json:"className"`
	Builtin   string `json:"builtin"`
}

// Values of the enumerations that are not the default.
const (
	componentFunction = "FUNCTION"
	componentSink     = "SINK"
	componentSource   = "SOURCE"
	runtimePython     = "PYTHON"
	runtimeGo         = "GO"
	guaranteesManual  = "MANUAL"
	typeFailover      = "FAILOVER"
	typeKeyShared     = "KEY_SHARED"
)

// Classes of Pulsar's own.
const (
	classBatchSource  = "org.apache.pulsar.functions.source.batch.BatchSourceExecutor"
	classPulsarSource = "org.apache.pulsar.functions.source.PulsarSource"
	classPulsarSink   = "org.apache.pulsar.functions.sink.PulsarSink"
)

// goInstance is what a Go instance is told. FunctionDetails are missing from workers before 4.0; without them only what
// follows is known.
//
// Source: Pulsar's GoInstanceConfig.
type goInstance struct {
	FunctionDetails  string            `json:"functionDetails"`
	Tenant           string            `json:"tenant"`
	Namespace        string            `json:"nameSpace"`
	Name             string            `json:"name"`
	SubscriptionName string            `json:"subscriptionName"`
	Inputs           map[string]string `json:"sourceInputSpecs"`
	InputTopic       string            `json:"sourceSpecsTopic"`
}

// errNoInstance is why a command is not that of an instance.
var errNoInstance = errors.New("its containers do not run a Pulsar instance (" + argumentDetails + " or " +
	argumentInstance + ")")

// decodeDetails reads what an instance is told in a container's command.
func decodeDetails(command []string) (functionDetails, error) {
	text, err := argument(command, argumentDetails)
	if err != nil {
		return functionDetails{}, err
	}
	if text == "" {
		return decodeGoInstance(command)
	}
	var d functionDetails
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return functionDetails{}, fmt.Errorf("reading %s: %w", argumentDetails, err)
	}
	return d.checked()
}

func decodeGoInstance(command []string) (functionDetails, error) {
	text, err := argument(command, argumentInstance)
	if err != nil {
		return functionDetails{}, err
	}
	if text == "" {
		return functionDetails{}, errNoInstance
	}
	var g goInstance
	if err := json.Unmarshal([]byte(text), &g); err != nil {
		return functionDetails{}, fmt.Errorf("reading %s: %w", argumentInstance, err)
	}
	if g.FunctionDetails != "" {
		var d functionDetails
		if err := json.Unmarshal([]byte(g.FunctionDetails), &d); err != nil {
			return functionDetails{}, fmt.Errorf("reading functionDetails of %s: %w", argumentInstance, err)
		}
		d.Runtime = runtimeGo
		return d.checked()
	}
	d := functionDetails{
		Tenant: g.Tenant, Namespace: g.Namespace, Name: g.Name, ComponentType: componentFunction, Runtime: runtimeGo,
		Source: detailsSource{SubscriptionName: g.SubscriptionName, InputSpecs: map[string]workloadSource{}},
	}
	if len(g.Inputs) == 0 && g.InputTopic != "" {
		g.Inputs = map[string]string{g.InputTopic: "{}"}
	}
	for topic, spec := range g.Inputs {
		var source workloadSource
		if err := json.Unmarshal([]byte(spec), &source); err != nil {
			return functionDetails{}, fmt.Errorf("reading sourceInputSpecs of %s: %w", argumentInstance, err)
		}
		d.Source.InputSpecs[topic] = source
	}
	return d.checked()
}

// checked refuses what names nothing.
func (d functionDetails) checked() (functionDetails, error) {
	if d.Tenant == "" || d.Namespace == "" || d.Name == "" {
		return functionDetails{},
			fmt.Errorf("what its instances are told has no tenant, namespace or name: %q, %q, %q", d.Tenant, d.Namespace, d.Name)
	}
	return d, nil
}

// kind is Function, Sink or Source.
//
// Source: Pulsar's InstanceUtils.calculateSubjectType, for those that do not say.
func (d functionDetails) kind() string {
	switch d.ComponentType {
	case componentFunction:
		return kindFunction
	case componentSink:
		return kindSink
	case componentSource:
		return kindSource
	}
	switch {
	case len(d.Source.InputSpecs) == 0:
		return kindSource
	case d.Sink.Builtin != "" || d.Sink.ClassName != "" && d.Sink.ClassName != classPulsarSink:
		return kindSink
	default:
		return kindFunction
	}
}

// workload is the same in the words of Function Mesh, whose instances are told the same.
func (d functionDetails) workload(namespace, statefulSet string) workload {
	w := workload{Kind: d.kind(), Metadata: workloadMetadata{Namespace: namespace, Name: statefulSet}}
	w.Spec = workloadSpec{
		Tenant: d.Tenant, Namespace: d.Namespace, Name: d.Name, SubscriptionName: d.Source.SubscriptionName,
		RetainOrdering:    d.Source.SubscriptionType == typeFailover,
		RetainKeyOrdering: d.Source.SubscriptionType == typeKeyShared,
		Input:             workloadInput{SourceSpecs: d.inputs(), CustomSerdeSources: d.Source.TopicsToSerDeClassName},
		WindowConfig:      d.window(),
	}
	if d.ProcessingGuarantees == guaranteesManual {
		w.Spec.ProcessingGuarantee = guaranteeManual
	}
	switch class := d.Source.ClassName; {
	case class == classBatchSource:
		w.Spec.BatchSourceConfig = &struct{}{}
	case w.Kind != kindSource && class != "" && class != classPulsarSource:
		w.Spec.SourceConfig = map[string]any{"className": class}
	}
	switch d.Runtime {
	case runtimePython:
		w.Spec.Python = &struct{}{}
	case runtimeGo: // Function Mesh gives its own Go instances one topic alone
		w.Spec.GenericRuntime = &struct{}{}
	}
	return w
}

// inputs are those with a pattern of their own, and the older pattern.
func (d functionDetails) inputs() map[string]workloadSource {
	pattern := d.Source.TopicsPattern
	if pattern == "" {
		return d.Source.InputSpecs
	}
	inputs := map[string]workloadSource{}
	maps.Copy(inputs, d.Source.InputSpecs)
	source := inputs[pattern]
	source.IsRegexPattern = true
	inputs[pattern] = source
	return inputs
}

// keyWindow is where a window function has its windows in the user configuration.
//
// Source: Pulsar's WindowConfig.WINDOW_CONFIG_KEY.
const keyWindow = "__WINDOWCONFIGS__"

// window is nil for other functions. A configuration that is no JSON object has no windows.
func (d functionDetails) window() *windowConfig {
	var config map[string]json.RawMessage
	if d.UserConfig == "" || json.Unmarshal([]byte(d.UserConfig), &config) != nil || config[keyWindow] == nil {
		return nil
	}
	var window windowConfig
	if json.Unmarshal(config[keyWindow], &window) != nil {
		return nil
	}
	return &window
}

// isNameOf says whether the worker gives this name to the StatefulSet of the function. With a jobName, which only some
// workers were given, it is that of the function's own options or what stands before the hash.
//
// Source: Pulsar's KubernetesRuntime.createJobName and BasicKubernetesManifestCustomizer.
func (d functionDetails) isNameOf(statefulSet string) bool {
	if statefulSet == d.statefulSet("") {
		return true
	}
	var options struct {
		JobName string `json:"jobName"`
	}
	if d.CustomRuntimeOptions != "" && json.Unmarshal([]byte(d.CustomRuntimeOptions), &options) == nil &&
		options.JobName != "" &&
		statefulSet == d.statefulSet(options.JobName) {
		return true
	}
	at := strings.LastIndexByte(statefulSet, '-')
	return at > 0 && statefulSet == d.statefulSet(statefulSet[:at])
}

// statefulSet is its name; jobName is empty for workers without one.
func (d functionDetails) statefulSet(jobName string) string {
	if jobName == "" {
		return workerStatefulSet(d.Tenant, d.Namespace, d.Name)
	}
	return validName(jobName) + "-" + shortHash(strings.Join([]string{jobName, d.Tenant, d.Namespace, d.Name}, "-"))
}
