// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	kubewait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/manifest"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
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
  get of the target of Function Mesh     receive queue, maxReplicas to take over
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
	c := checker{kube, types.NamespacedName{Namespace: o.adapterNamespace, Name: adapterName}, time.Now()}
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

// tryOut creates the policy of the file in mode Recommend, waits for the verdict of the adapter, and deletes it. It
// returns the policy with the verdict, and the mode of the file.
func (o *checkOptions) tryOut(ctx context.Context, kube client.Client, namespace string,
	streams genericiooptions.IOStreams,
) (p v1alpha1.AutoscalingPolicy, mode v1alpha1.Mode, err error) {
	file, err := readPolicy(ctx, o.file, streams.In)
	if err != nil {
		return p, "", err
	}
	if p, err = o.trial(file, namespace); err != nil {
		return p, "", err
	}
	if err := alone(ctx, kube, &p); err != nil {
		return p, "", err
	}
	name := p.Namespace + "/" + p.Name
	if !o.yes {
		agreed, err := confirmed(bufio.NewReader(streams.In), streams.ErrOut, "Create AutoscalingPolicy "+name+
			" in mode Recommend, which changes no replicas, and delete it after the check?")
		if err != nil || !agreed {
			return p, "", cmp.Or(err, errors.New("nothing was created: answer y, or set --yes"))
		}
	}
	if err := kube.Create(ctx, &p, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
		return p, "", fmt.Errorf("creating policy %s: %w", name, withEditFix(err))
	}
	created := p.DeepCopy()
	defer func() { err = errors.Join(err, remove(ctx, kube, created)) }()
	output.Printf(streams.ErrOut, "created %s, waiting up to %s for the adapter\n", name, o.timeout)
	err = o.awaitVerdict(ctx, kube, &p)
	return p, file.Spec.Mode, err
}

func (o *checkOptions) trial(file v1alpha1.AutoscalingPolicy, namespace string) (v1alpha1.AutoscalingPolicy, error) {
	p := v1alpha1.AutoscalingPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: file.Namespace, Name: file.Name, Labels: file.Labels, Annotations: file.Annotations,
		},
		Spec: file.Spec,
	}
	explicit := o.cluster.overrides.Context.Namespace
	switch {
	case p.Name == "":
		return p, fmt.Errorf("policy %s has no metadata.name: set it", o.file)
	case p.Namespace == "":
		p.Namespace = namespace
	case explicit != "" && explicit != p.Namespace:
		return p, fmt.Errorf("policy %s is in namespace %s, and --namespace is %s: correct one of them", o.file, p.Namespace,
			explicit)
	}
	p.Spec.Mode = v1alpha1.ModeRecommend
	return p, nil
}

// alone refuses a target that has a policy: one of a user takes precedence over one of an AutoscalingPolicySet, so that
// the target would lose its autoscaler during the check.
func alone(ctx context.Context, kube client.Client, p *v1alpha1.AutoscalingPolicy) error {
	others, err := selection{namespace: p.Namespace, labels: labels.Everything()}.list(ctx, kube)
	if err != nil {
		return err
	}
	for i := range others {
		other := &others[i]
		if other.Name == p.Name || sameTarget(other, p) {
			return fmt.Errorf("AutoscalingPolicy %s/%s has this name or this target: run kubectl pap check %[2]s -n %[1]s "+
				"instead", other.Namespace, other.Name)
		}
	}
	return nil
}

// sameTarget compares the objects that run the replicas, which is the first key of each.
func sameTarget(a, b *v1alpha1.AutoscalingPolicy) bool {
	ofA, ofB := target.Keys(a), target.Keys(b)
	return len(ofA) > 0 && len(ofB) > 0 && ofA[0] == ofB[0]
}

// awaitVerdict reads the policy until the status has a verdict on the target and on Pulsar, or the timeout has passed.
func (o *checkOptions) awaitVerdict(ctx context.Context, kube client.Client, p *v1alpha1.AutoscalingPolicy) error {
	limited, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	uid := p.UID
	err := kubewait.PollUntilContextCancel(limited, time.Second, true, func(ctx context.Context) (bool, error) {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return false, err
		}
		if p.UID != uid {
			return false, errors.New("another policy has replaced the one of this check")
		}
		return judged(p), nil
	})
	if err == nil || (limited.Err() != nil && ctx.Err() == nil) {
		return nil // what is not known yet is shown as unknown
	}
	return fmt.Errorf("waiting for the adapter: %w", err)
}

// judged reports whether the adapter has checked the target and Pulsar.
func judged(p *v1alpha1.AutoscalingPolicy) bool {
	known := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionBacklogKnown)
	return p.Status.ObservedGeneration == p.Generation &&
		(meta.IsStatusConditionFalse(p.Status.Conditions, v1alpha1.ConditionTargetFound) ||
			known != nil && known.Status != metav1.ConditionUnknown)
}

// remove deletes the policy, also after an interrupt.
func remove(ctx context.Context, kube client.Client, p *v1alpha1.AutoscalingPolicy) error {
	const limit = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	err := kube.Delete(ctx, p, client.Preconditions{UID: new(p.UID)})
	// With a conflict, another policy has the name: this one is deleted.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting the policy: %w: run kubectl -n %s delete pap %s", err, p.Namespace, p.Name)
	}
	return nil
}

// readPolicy reads a policy from a file, or from standard input for "-".
func readPolicy(ctx context.Context, path string, stdin io.Reader) (v1alpha1.AutoscalingPolicy, error) {
	from := stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return v1alpha1.AutoscalingPolicy{}, fmt.Errorf("--filename: %w", err)
		}
		defer file.Close() //nolint:errcheck // nothing was written
		from = file
	}
	policy, err := manifest.Policy(ctx, from)
	if err != nil {
		return policy, fmt.Errorf("reading policy %s: %w", path, err)
	}
	return policy, nil
}
