// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

const checkLong = `Check a policy, or the installation: one line for each check, with the fix.

  ok        as it should be
  warning   it works with a disadvantage, or will not work in mode Auto
  error     the policy does not scale until this is fixed
  unknown   it could not be read, or an earlier check has to be ok first

With NAME it checks an existing policy. What concerns the target, other autoscalers and Pulsar is the verdict of the
adapter in the status of the policy: this command sends no request to Pulsar.

With -f it asks, creates the policy of the file in mode Recommend, which changes no replicas, waits for that verdict,
and deletes the policy. If the mode in the file is Auto, what would keep it from scaling is an error.

With --install it checks the CRDs, the metrics API, the adapter and its permissions. Set --adapter-namespace if the
release is not in pulsar-autoscaler.

The exit code is 0 if there is no error, and 1 otherwise, also if the checks could not run.

Needed permissions: get of autoscalingpolicies, which the chart adds to the role "view"; with -f also list, create and
delete, as in the role "edit". Without one of the following the check is "unknown" and names it:

  list of apiservices                    metrics API, certificate
  create of localsubjectaccessreviews    rights, as the role "admin" has; with --install create of subjectaccessreviews
  get of the target of Function Mesh     receive queue
  get of customresourcedefinitions       CRDs, with --install
  get of deployments                     adapter, with --install, as the role "view" has`

const checkExample = `  # After helm install
  kubectl pap check --install

  # A policy that exists
  kubectl pap check resize

  # A policy that does not exist yet
  kubectl pap check -f policy.yaml

  # In a pipeline, the errors and warnings only
  kubectl pap check -f policy.yaml --yes -o json | jq '.items[] | select(.result == "error" or .result == "warning")'`

// checkOptions are the flags of kubectl pap check.
type checkOptions struct {
	cluster          clusterFlags
	output           outputFlag
	file             string
	adapterNamespace string
	install, yes     bool
	timeout          time.Duration
}

func newCheck(streams genericiooptions.IOStreams) *cobra.Command {
	o := checkOptions{cluster: newClusterFlags()}
	command := &cobra.Command{
		Use: "check (NAME | -f POLICY | --install)", Short: "Check a policy or the installation, with fixes",
		Long: checkLong, Example: checkExample, Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return o.run(command.Context(), args, streams)
		},
		ValidArgsFunction: o.cluster.completeName,
	}
	f := command.Flags()
	f.StringVarP(&o.file, "filename", "f", "", "File with an AutoscalingPolicy; - is standard input, and needs --yes.")
	f.BoolVar(&o.install, "install", false, "Check the installation instead of a policy.")
	f.StringVar(&o.adapterNamespace, "adapter-namespace", "pulsar-autoscaler", "Namespace of the adapter.")
	f.BoolVarP(&o.yes, "yes", "y", false, "Do not ask before the policy of -f is created.")
	f.DurationVar(&o.timeout, "timeout", time.Minute, "Time to wait for the verdict on the policy of -f.")
	o.output.addTo(command, "json or yaml, or text when empty.", formJSON, formYAML)
	o.cluster.addTo(f)
	o.cluster.addNamespace(f, "Namespace of the policy; with --install the namespace in which the adapter works, if it "+
		"does not work in all.")
	_ = command.MarkFlagFilename("filename", "yaml", "yml", "json")
	return command
}

func (o *checkOptions) run(ctx context.Context, args []string, streams genericiooptions.IOStreams) error {
	if err := o.validate(args); err != nil {
		return err
	}
	kube, err := o.cluster.client()
	if err != nil {
		return err
	}
	now := time.Now()
	c, err := newChecker(kube, types.NamespacedName{Namespace: o.adapterNamespace, Name: adapterName}, now)
	if err != nil {
		return err
	}
	if o.install {
		return o.write(streams.Out, checklist{
			"INSTALLATION", o.adapterNamespace,
			c.installation(ctx, o.cluster.overrides.Context.Namespace),
		})
	}
	namespace, err := o.cluster.namespace()
	if err != nil {
		return err
	}
	var p v1alpha1.AutoscalingPolicy
	var mode v1alpha1.Mode
	if o.file != "" {
		p, mode, err = o.tryOut(ctx, kube, namespace, streams)
	} else {
		err = kube.Get(ctx, client.ObjectKey{Namespace: namespace, Name: args[0]}, &p)
		if err != nil {
			err = fmt.Errorf("reading policy %s in namespace %s: %w", args[0], namespace, withFix(err))
		}
		mode = p.Spec.Mode
	}
	if err != nil {
		return err
	}
	return o.write(streams.Out, checklist{"POLICY", p.Namespace + "/" + p.Name, c.policy(ctx, &p, mode)})
}

// validate validates the arguments and flags.
func (o *checkOptions) validate(args []string) error {
	subjects := len(args)
	for _, isSet := range []bool{o.file != "", o.install} {
		if isSet {
			subjects++
		}
	}
	switch {
	case subjects != 1:
		return errors.New("set one of the name of a policy, -f and --install")
	case o.file == "-" && !o.yes:
		return errors.New("-f - reads standard input, so it cannot ask: set --yes")
	case o.timeout <= 0:
		return fmt.Errorf("--timeout is %s: it must be above 0", o.timeout)
	default:
		return nil
	}
}

// checkResult is the result of a check.
type checkResult string

const (
	resultOK      checkResult = "ok"
	resultWarning checkResult = "warning"
	resultError   checkResult = "error"
	resultUnknown checkResult = "unknown"
)

// checked is a check with its result. The message has the fix.
type checked struct {
	Check   string      `json:"check"`
	Result  checkResult `json:"result"`
	Reason  string      `json:"reason,omitempty"`
	Message string      `json:"message"`
}

// unreadable is the check of what could not be read, with the missing permission.
func unreadable(check, permission string, err error) checked {
	if apierrors.IsForbidden(err) {
		return checked{check, resultUnknown, "PermissionMissing", "your user needs " + permission}
	}
	return checked{check, resultUnknown, "", fmt.Sprintf("reading it failed: %s", err)}
}

// checklist has the checks of something.
type checklist struct {
	title, note string
	Checks      []checked `json:"items"`
}

func (l checklist) count(result checkResult) (n int) {
	for _, c := range l.Checks {
		if c.Result == result {
			n++
		}
	}
	return n
}

// text wraps at width columns.
func (l checklist) text(width int) string {
	s := section{title: l.title, note: l.note}
	for _, c := range l.Checks {
		s.add(string(c.Result), "%s: %s", c.Check, c.Message)
	}
	total := section{title: "RESULT", note: fmt.Sprintf("ok %d, warning %d, error %d, unknown %d", l.count(resultOK),
		l.count(resultWarning), l.count(resultError), l.count(resultUnknown))}
	return text([]section{s, total}, width)
}

// write writes the checks, and returns an error if one of them did.
func (o *checkOptions) write(out io.Writer, l checklist) error {
	err := o.output.write(out, l, l.text)
	if errors := l.count(resultError); err == nil && errors > 0 {
		return fmt.Errorf("%d of %d checks found an error", errors, len(l.Checks))
	}
	return err
}
