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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	kubewait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/manifest"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
)

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

// trial is the policy to create.
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
