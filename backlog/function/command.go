// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// details is the part of an instance's FunctionDetails that defines what it consumes. It is protobuf's JSON, which
// omits fields with their default value: for enumerations ATLEAST_ONCE, JAVA and SHARED.
//
// Source: Pulsar's Function.proto, FunctionDetails.
type details struct {
	Tenant               string  `json:"tenant"`
	Namespace            string  `json:"namespace"`
	Name                 string  `json:"name"`
	ComponentType        string  `json:"componentType"`
	Runtime              Runtime `json:"runtime"`
	ProcessingGuarantees string  `json:"processingGuarantees"`
	// UserConfig and CustomRuntimeOptions are JSON in a string.
	UserConfig           string        `json:"userConfig"`
	CustomRuntimeOptions string        `json:"customRuntimeOptions"`
	Source               detailsSource `json:"source"`
	Sink                 detailsSink   `json:"sink"`
}

type detailsSource struct {
	ClassName        string           `json:"className"`
	SubscriptionType string           `json:"subscriptionType"`
	SubscriptionName string           `json:"subscriptionName"`
	SkipToLatest     bool             `json:"skipToLatest"`
	InputSpecs       map[string]Input `json:"inputSpecs"`
}

type detailsSink struct {
	Topic string `json:"topic"`
}

// Pulsar's own classes.
const (
	classBatchSource  = "org.apache.pulsar.functions.source.batch.BatchSourceExecutor"
	classPulsarSource = "org.apache.pulsar.functions.source.PulsarSource"
)

// ErrNoInstance reports that a command is not that of an instance.
var ErrNoInstance = errors.New(
	"its containers do not run a Pulsar instance (" + argumentDetails + " or " + argumentInstance + ")",
)

// DecodeCommand returns the function that an instance with this command runs: a container's command with its arguments.
func DecodeCommand(command []string) (Function, error) {
	d, err := decodeDetails(command)
	switch {
	case err != nil:
		return Function{}, err
	case d.Tenant == "" || d.Namespace == "" || d.Name == "":
		return Function{}, fmt.Errorf(
			"the configuration of its instances has no tenant, namespace or name: %q, %q, %q",
			d.Tenant,
			d.Namespace,
			d.Name,
		)
	}
	return d.function(), nil
}

func decodeDetails(command []string) (details, error) {
	text, err := argument(command, argumentDetails)
	if err != nil {
		return details{}, err
	}
	if text == "" {
		return decodeGoInstance(command)
	}
	var d details
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return details{}, fmt.Errorf("reading %s: %w", argumentDetails, err)
	}
	return d, nil
}

// decodeGoInstance reads the configuration of a Go instance, which has the details as a string.
//
// Source: Pulsar's GoInstanceConfig.
func decodeGoInstance(command []string) (details, error) {
	text, err := argument(command, argumentInstance)
	if err != nil {
		return details{}, err
	}
	if text == "" {
		return details{}, ErrNoInstance
	}
	var instance struct {
		Details string `json:"functionDetails"`
	}
	if err := json.Unmarshal([]byte(text), &instance); err != nil {
		return details{}, fmt.Errorf("reading %s: %w", argumentInstance, err)
	}
	if instance.Details == "" {
		return details{}, fmt.Errorf("%s has no functionDetails: restart the function with a worker of Pulsar 4.0 or later",
			argumentInstance)
	}
	var d details
	if err := json.Unmarshal([]byte(instance.Details), &d); err != nil {
		return details{}, fmt.Errorf("reading functionDetails of %s: %w", argumentInstance, err)
	}
	d.Runtime = Go
	return d, nil
}

func (d details) function() Function {
	f := Function{
		Kind: d.kind(), Tenant: d.Tenant, Namespace: d.Namespace, Name: d.Name, Runtime: Java,
		SubscriptionName: d.Source.SubscriptionName, SubscriptionType: d.subscriptionType(),
		SkipsToLatest:     d.Source.SkipToLatest,
		NeverAcknowledges: delivery{guarantees: d.ProcessingGuarantees, window: d.window()}.neverAcknowledges(),
		JobName:           d.jobName(), Output: d.Sink.Topic,
	}
	if d.Runtime == Python || d.Runtime == Go {
		f.Runtime = d.Runtime
	}
	if f.Kind == KindSource {
		f.Batch, f.SubscriptionType = d.Source.ClassName == classBatchSource, backlog.Shared
		return f
	}
	if class := d.Source.ClassName; class != classPulsarSource && class != classBatchSource {
		f.SourceClass = class
	}
	f.Inputs = d.Source.InputSpecs
	delete(f.Inputs, "")
	return f
}

// kind is the kind of the component.
func (d details) kind() Kind {
	switch d.ComponentType {
	case "SINK":
		return KindSink
	case "SOURCE":
		return KindSource
	default:
		return KindFunction
	}
}

// subscriptionType is the worker's translation of guarantees and ordering.
func (d details) subscriptionType() backlog.SubscriptionType {
	switch d.Source.SubscriptionType {
	case "FAILOVER":
		return backlog.Failover
	case "KEY_SHARED":
		return backlog.KeyShared
	default:
		return backlog.Shared
	}
}

// keyWindow is the key of the windows of a window function in the user configuration.
//
// Source: Pulsar's WindowConfig.WINDOW_CONFIG_KEY.
const keyWindow = "__WINDOWCONFIGS__"

// window is nil for other functions. A configuration that is not a JSON object has no windows.
func (d details) window() *window {
	var config map[string]json.RawMessage
	if d.UserConfig == "" || json.Unmarshal([]byte(d.UserConfig), &config) != nil || config[keyWindow] == nil {
		return nil
	}
	var w window
	if json.Unmarshal(config[keyWindow], &w) != nil {
		return nil
	}
	return &w
}

// jobName is empty if the custom runtime options do not set it, or are not a JSON object.
func (d details) jobName() string {
	var options struct {
		JobName string `json:"jobName"`
	}
	if d.CustomRuntimeOptions == "" || json.Unmarshal([]byte(d.CustomRuntimeOptions), &options) != nil {
		return ""
	}
	return options.JobName
}

// Arguments that configure an instance of Pulsar: one for Java and Python instances, and one for Go instances.
//
// Source: Pulsar's RuntimeUtils.getCmd and getGoInstanceCmd.
const (
	argumentDetails  = "--function_details"
	argumentInstance = "-instance-conf"
)

// StartsInstance reports whether a container's command may be that of an instance, without parsing its quotes.
func StartsInstance(command []string) bool {
	return slices.ContainsFunc(command, func(part string) bool {
		return strings.Contains(part, argumentDetails) || strings.Contains(part, argumentInstance)
	})
}

// argument returns the value of the named argument in a container's command: a list of arguments, or a script for sh
// -c, where it is quoted. It is empty if there is no such argument.
func argument(command []string, name string) (string, error) {
	for i, part := range command {
		if part == name && i+1 < len(command) {
			return command[i+1], nil
		}
		if !strings.Contains(part, name) {
			continue
		}
		words, err := splitWords(part)
		if err != nil {
			return "", err
		}
		if at := slices.Index(words, name); at >= 0 && at+1 < len(words) {
			return words[at+1], nil
		}
	}
	return "", nil
}

var errQuoteOpen = errors.New("a quotation mark in its command is never closed")

// splitWords splits a script into words as a shell does, with blanks, quotes and backslashes. It expands nothing, and
// treats operators as words.
//
// Source: POSIX, Shell Command Language, 2.2 Quoting.
func splitWords(script string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun := false
	for i := 0; i < len(script); i++ {
		switch c := script[i]; c {
		case ' ', '\t', '\n':
			if begun {
				words = append(words, word.String())
				word.Reset()
			}
			begun = false
			continue
		case '\'':
			end := strings.IndexByte(script[i+1:], '\'')
			if end < 0 {
				return nil, errQuoteOpen
			}
			word.WriteString(script[i+1 : i+1+end])
			i += end + 1
		case '"':
			text, length, err := doubleQuoted(script[i+1:])
			if err != nil {
				return nil, err
			}
			word.WriteString(text)
			i += length
		case '\\':
			if i++; i < len(script) && script[i] != '\n' {
				word.WriteByte(script[i])
			}
		default:
			word.WriteByte(c)
		}
		begun = true
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// doubleQuoted returns the text up to the closing mark, and its length in bytes with the mark.
func doubleQuoted(script string) (text string, length int, err error) {
	var word strings.Builder
	for i := 0; i < len(script); i++ {
		switch c := script[i]; {
		case c == '"':
			return word.String(), i + 1, nil
		case c == '\\' && i+1 < len(script) && strings.IndexByte("$`\"\\\n", script[i+1]) >= 0:
			if i++; script[i] != '\n' {
				word.WriteByte(script[i])
			}
		default:
			word.WriteByte(c)
		}
	}
	return "", 0, errQuoteOpen
}
