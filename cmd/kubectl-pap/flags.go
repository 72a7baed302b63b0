// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/auth"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/compare"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/history"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/flags"
)

// clusterFlags are kubectl's flags that select a cluster and a user.
type clusterFlags struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides *clientcmd.ConfigOverrides
	// all is true for all namespaces.
	all *bool
}

func newClusterFlags() clusterFlags {
	return clusterFlags{clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}, new(bool)}
}

// addTo adds the flags except the namespace: runs create their own.
func (c clusterFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&c.rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "File with the kubeconfig.")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.Namespace.LongName = ""
	clientcmd.BindOverrideFlags(c.overrides, flags, names)
}

func (c clusterFlags) addNamespace(flags *pflag.FlagSet, usage string) {
	flags.StringVarP(&c.overrides.Context.Namespace, clientcmd.FlagNamespace, "n", "", usage)
}

// addNamespaces adds the namespace of a list, and the flag for all of them.
func (c clusterFlags) addNamespaces(flags *pflag.FlagSet, usage, usageOfAll string) {
	flags.BoolVarP(c.all, "all-namespaces", "A", false, usageOfAll)
	c.addNamespace(flags, usage)
}

func (c clusterFlags) config() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(c.rules, c.overrides)
}

func (c clusterFlags) client() (client.Client, error) {
	config, err := c.config().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return run.NewClient(config)
}

// namespace returns the namespace of the flag, else of the context.
func (c clusterFlags) namespace() (string, error) {
	namespace, _, err := c.config().Namespace()
	if err != nil {
		return "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return namespace, nil
}

// namespaces returns the namespace of a list; empty for all.
func (c clusterFlags) namespaces() (string, error) {
	switch {
	case *c.all && c.overrides.Context.Namespace != "":
		return "", errors.New("--all-namespaces cannot be used with --namespace: leave out one of them")
	case *c.all:
		return "", nil
	default:
		return c.namespace()
	}
}

// Output formats.
const (
	formCSV  = "csv"
	formHTML = "html"
	formJSON = "json"
	formWide = "wide"
	formYAML = "yaml"
)

// outputFlag is the format in which a command writes its result. It is empty for people.
type outputFlag struct {
	form  string
	forms []string
}

func (o *outputFlag) addTo(command *cobra.Command, usage string, forms ...string) {
	o.forms = forms
	command.Flags().VarP(o, "output", "o", "Output format: "+usage)
	_ = command.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
}

// String returns the format.
func (o *outputFlag) String() string { return o.form }

// Type is the name of the value in the help text.
func (o *outputFlag) Type() string { return "string" }

// Set accepts the formats of the command.
func (o *outputFlag) Set(form string) error {
	if form != "" && !slices.Contains(o.forms, form) {
		return fmt.Errorf("it must be one of %s, or empty", strings.Join(o.forms, ", "))
	}
	o.form = form
	return nil
}

// write writes a result for programs, or for people the text that has at most so many columns.
func (o *outputFlag) write(out io.Writer, result any, text func(width int) string) error {
	switch o.form {
	case formJSON:
		return writeJSON(out, result)
	case formYAML:
		encoded, err := yaml.Marshal(result)
		if err == nil {
			_, err = out.Write(encoded)
		}
		return err
	default:
		_, err := io.WriteString(out, text(textWidth(out)))
		return err
	}
}

// addAccess adds the adapter's flags for Pulsar.
func addAccess(flags *pflag.FlagSet, access *run.Access) {
	flags.StringVar(&access.TokenFile, "pulsar-token-file", "", "File with a token for Pulsar.")
	flags.StringVar(&access.Plugin, "pulsar-auth-plugin", "",
		"authPlugin of Pulsar's client.conf: token, tls, basic, oauth2 or a class of these.")
	flags.StringVar(&access.ParamsFile, "pulsar-auth-params-file", "",
		"File with authParams of Pulsar's client.conf for --pulsar-auth-plugin.")
	flags.StringVar(&access.CAFile, "pulsar-ca-file", "", "PEM file of the authorities that signed Pulsar's certificates.")
}

// checkAccess checks these flags, and reads the files.
func checkAccess(access run.Access) error {
	var problems flags.Problems
	if problems.Credentials(auth.Own(access)); len(problems) > 0 {
		return errors.Join(problems...)
	}
	return access.Validate()
}

// rangeFlag is a flag for a number or its bounds: 50 or 40-60, and for durations 25s or 20s-1m.
type rangeFlag struct {
	kind  string // in the help text
	parse func(text string) (float64, error)
	value compare.Range
	text  string // empty if the flag is not set
}

// String returns the text of the flag.
func (f *rangeFlag) String() string { return f.text }

// Type is the name of the value in the help text.
func (f *rangeFlag) Type() string { return f.kind }

// Set parses a number, or two with a hyphen between them.
func (f *rangeFlag) Set(text string) error {
	first, second, isRange := strings.Cut(text, "-")
	if _, err := f.parse(text); err == nil || !isRange { // a number may have a hyphen too: 5e-1
		first, second = text, text
	}
	low, err := f.parse(first)
	if err != nil {
		return err
	}
	high, err := f.parse(second)
	if err != nil {
		return err
	}
	if low > high {
		return fmt.Errorf("%s is above %s: name the smaller one first", first, second)
	}
	// The expected value is the geometric mean of the bounds, which is no mean with 0.
	f.value = compare.Range{Low: low, Expected: math.Sqrt(low * high), High: high}
	switch low {
	case high:
		f.value = compare.Exactly(low)
	case 0:
		f.value.Expected = high / 2
	}
	f.text = text
	return nil
}

func parseSeconds(text string) (float64, error) {
	value, err := time.ParseDuration(text)
	if err != nil || value < 0 || value > time.Hour {
		return 0, fmt.Errorf("%q must be a duration from 0s to 1h, such as 25s, or a range such as 20s-40s", text)
	}
	return value.Seconds(), nil
}

func parseRate(text string) (float64, error) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !(value > 0 && value <= 1e9) {
		return 0, fmt.Errorf("%q must be a number above 0 and at most 1e9, such as 50, or a range such as 40-60", text)
	}
	return value, nil
}

type serverOptions struct {
	url, tokenFile, username, passwordFile, caFile string
}

func (o *serverOptions) add(f *pflag.FlagSet) {
	f.StringVar(&o.url, "prometheus", "", "URL of a Prometheus, or of a server with its HTTP API.")
	f.StringVar(&o.tokenFile, "prometheus-token-file", "", "File with a bearer token for Prometheus.")
	f.StringVar(&o.username, "prometheus-username", "", "User name for Prometheus.")
	f.StringVar(&o.passwordFile, "prometheus-password-file", "", "File with the password for --prometheus-username.")
	f.StringVar(&o.caFile, "prometheus-ca-file", "", "PEM file of the authority that signed Prometheus' certificate.")
}

type periodOptions struct {
	serverOptions

	since, until string
}

// add adds the flags; since is the default of --since.
func (o *periodOptions) add(f *pflag.FlagSet, since string) {
	o.serverOptions.add(f)
	f.StringVar(&o.since, "since", since, "How far back the period starts, such as 7d or 12h.")
	f.StringVar(&o.until, "until", "", "When the period ends, in RFC 3339. Default: now.")
}

// loadOptions are the flags for the load of a Function in Prometheus.
type loadOptions struct {
	periodOptions

	step      time.Duration
	saveTrace string

	topics                            []string
	subscription, namespace, workload string
}

// add adds the flags except the namespace.
func (o *loadOptions) add(f *pflag.FlagSet) {
	o.periodOptions.add(f, "7d")
	f.DurationVar(&o.step, "step", time.Minute,
		"Time between two samples: at least the scrape interval. Rates are over two steps.")
	f.StringVar(&o.saveTrace, "save-trace", "", "File to write the load to, for --trace.")
	f.StringSliceVar(&o.topics, "topic", nil,
		"Input topic including its partitions; may be repeated. Default: spec.subscription of the policy.")
	f.StringVar(&o.subscription, "subscription", "",
		"Name of the subscription. Default: spec.subscription.name of the policy.")
	f.StringVar(&o.workload, "workload", "", "Workload of the replicas in kube-state-metrics: statefulset/NAME or "+
		"deployment/NAME. Default: from the target of the policy.")
}

func (o *loadOptions) read(ctx context.Context, policy v1alpha1.AutoscalingPolicy,
	maxGap time.Duration,
) (history.History, error) {
	c := history.Config{Function: history.TargetOf(policy), Step: o.step, MaxGap: maxGap}
	var err error
	if c.Server, err = o.server(); err != nil {
		return history.History{}, err
	}
	if c.From, c.To, err = o.times(time.Now()); err != nil {
		return history.History{}, err
	}
	if c.Function, err = o.override(c.Function); err != nil {
		return history.History{}, err
	}
	read, err := history.Read(ctx, c)
	if err != nil || o.saveTrace == "" {
		return read, err
	}
	if err := output.File(o.saveTrace, read.CSV); err != nil {
		return read, fmt.Errorf("--save-trace: %w", err)
	}
	return read, nil
}

func (o *periodOptions) times(now time.Time) (from, to time.Time, err error) {
	since, err := model.ParseDuration(o.since)
	if err != nil || since <= 0 {
		return from, to, fmt.Errorf("--since is %q: it must be a duration above 0 such as 7d or 12h", o.since)
	}
	to = now
	if o.until != "" {
		if to, err = time.Parse(time.RFC3339, o.until); err != nil {
			return from, to, fmt.Errorf("--until is %q: it must be a time such as 2026-03-02T09:00:00Z", o.until)
		}
	}
	return to.Add(-time.Duration(since)), to, nil
}

func (o *loadOptions) override(f history.Function) (history.Function, error) {
	if len(o.topics) > 0 {
		f.Topics, f.TopicsPattern = o.topics, ""
	}
	f.Subscription, f.Namespace = cmp.Or(o.subscription, f.Subscription), cmp.Or(o.namespace, f.Namespace)
	if o.workload != "" {
		kind, name, _ := strings.Cut(o.workload, "/")
		kinds := map[string]string{"statefulset": "StatefulSet", "deployment": "Deployment"}
		if f.Kind, f.Workload = kinds[strings.ToLower(kind)], name; f.Kind == "" || name == "" {
			return f, fmt.Errorf("--workload is %q: it must be statefulset/NAME or deployment/NAME", o.workload)
		}
	}
	return f, nil
}

// server reads the files of the flags.
func (o *serverOptions) server() (history.Server, error) {
	token, err := readFile("prometheus-token-file", o.tokenFile)
	password, errPassword := readFile("prometheus-password-file", o.passwordFile)
	authorities, errCA := readFile("prometheus-ca-file", o.caFile)
	return history.Server{
		URL: o.url, Token: strings.TrimSpace(string(token)), Username: o.username,
		Password: strings.TrimSpace(string(password)), CA: authorities,
	}, errors.Join(err, errPassword, errCA)
}

// readFile reads the file of a flag; nil without a path.
func readFile(flag, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return content, nil
}
