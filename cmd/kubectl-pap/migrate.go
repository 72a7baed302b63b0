// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/migrate"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
)

const migrateLong = `Write policies for what other autoscalers scale today: ScaledObjects of KEDA with pulsar triggers,
HorizontalPodAutoscalers of Functions, Sinks, Sources, their StatefulSets and of consumers with a metric that names the
subscription, and maxReplicas of Function Mesh with its rules. An AutoscalingPolicySet takes the place of policies that
agree, if a label selects their targets.

The policies are written as YAML, with a comment on each choice, the steps that move over without moving a replica, and
what to delete from which manifest. They have mode Recommend, which decides and writes no replicas. What has no
counterpart in a policy is named on the standard error output with what to do, and the command then ends with exit
code 1. Absent CRDs of KEDA and Function Mesh are no error.

With --apply it does the next step of each target, after asking, and a policy is ready for the next run:
  1. It creates the policies that do not exist, in mode Recommend. Compare through a busy hour.
  2. In the next run it sets those that are Ready to mode Auto. With conflictPolicy TakeOver the adapter then suspends
     the other autoscaler and keeps the replicas (rbac.takeOver=true of the chart).
The way back is to delete the policy: the adapter restores what it suspended.

Needed permissions: list of horizontalpodautoscalers, deployments and statefulsets, which the role "view" has; list of
autoscalingpolicies and autoscalingpolicysets, which our chart adds to it; list of scaledobjects (keda.sh), which KEDA's
chart adds to it with rbac.aggregateToDefaultRoles=true; list of functions, sinks, sources and functionmeshes
(compute.functionmesh.io), for which Function Mesh has no role. With --apply also create and patch of
autoscalingpolicies and autoscalingpolicysets, which our chart adds to the role "edit".`

const migrateExample = `  # What scales in all namespaces, as policies in a file
  kubectl pap migrate -A > policies.yaml

  # The ScaledObjects of namespace shop alone
  kubectl pap migrate -n shop --from keda

  # Create the policies in mode Recommend, and a busy hour later switch those that are Ready
  kubectl pap migrate -n shop --apply

  # The same in a pipeline
  kubectl pap migrate -n shop --apply --yes`

// What --from names.
const (
	fromAll          = "all"
	fromKEDA         = "keda"
	fromHPA          = "hpa"
	fromFunctionMesh = "function-mesh"
)

type migrateOptions struct {
	cluster    clusterFlags
	output     outputFlag
	apply, yes bool
	from       string
}

func newMigrate(streams genericiooptions.IOStreams) *cobra.Command {
	o := migrateOptions{cluster: newClusterFlags(), output: outputFlag{form: formYAML}}
	command := &cobra.Command{
		Use: "migrate", Short: "Write policies for what KEDA, HPAs and Function Mesh scale today",
		Long: migrateLong, Example: migrateExample, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command.Context(), streams) },
	}
	f := command.Flags()
	f.StringVar(&o.from, "from", fromAll, "What to translate: all, keda, hpa or function-mesh.")
	o.output.addTo(command, "yaml, or json, which has no comments.", formYAML, formJSON)
	f.BoolVar(&o.apply, "apply", false, "Do the next step of each target, after asking: create policies in mode "+
		"Recommend, or set them to mode Auto.")
	f.BoolVarP(&o.yes, "yes", "y", false, "With --apply: do not ask.")
	o.cluster.addTo(f)
	o.cluster.addNamespaces(f, "Namespace to read.", "Read all namespaces.")
	_ = command.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(
		[]cobra.Completion{fromAll, fromKEDA, fromHPA, fromFunctionMesh}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func (o *migrateOptions) check() error {
	switch {
	case !slices.Contains([]string{fromAll, fromKEDA, fromHPA, fromFunctionMesh}, o.from):
		return fmt.Errorf("--from is %q: it must be all, keda, hpa or function-mesh", o.from)
	case o.apply && o.output.form == formJSON:
		return errors.New("--output json writes policies, and --apply creates them: leave out one of them")
	case o.yes && !o.apply:
		return errors.New("--yes answers the questions of --apply: add --apply, or leave out --yes")
	}
	return nil
}

func (o *migrateOptions) run(ctx context.Context, streams genericiooptions.IOStreams) error {
	if err := o.check(); err != nil {
		return err
	}
	namespace, err := o.cluster.namespaces()
	if err != nil {
		return err
	}
	kube, err := o.cluster.client()
	if err != nil {
		return err
	}
	in, err := inventory{kube, namespace}.read(ctx, o.from)
	if err != nil {
		return err
	}
	result := migrate.Translate(in)
	nothing := len(result.Moves) == 0 && len(result.Begun) == 0 && len(result.Untranslated) == 0
	if nothing {
		err = nothingToMigrate(streams, result, *o.cluster.all)
	}
	switch {
	case o.output.form == formJSON:
		err = errors.Join(err, writeMovesJSON(streams.Out, result.Moves))
	case nothing:
	case o.apply:
		err = mover{kube, bufio.NewReader(streams.In), streams.Out, in.Policies, o.yes}.move(ctx, result)
	default:
		err = writeMoves(streams.Out, result)
	}
	return errors.Join(err, reportUntranslated(streams.ErrOut, result.Untranslated))
}

func nothingToMigrate(streams genericiooptions.IOStreams, result migrate.Result, all bool) error {
	text := "Found nothing to migrate in this namespace: -A reads all namespaces.\n"
	if all {
		text = "Found nothing to migrate.\n"
	}
	if len(result.Foreign) > 0 {
		text += wrapComment(leftAlone(result.Foreign), "", defaultWidth)
	}
	_, err := io.WriteString(streams.ErrOut, text)
	return err
}

// reportUntranslated names what has no counterpart; an error if there is any.
func reportUntranslated(out io.Writer, problems []migrate.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	text := "Not translated:\n"
	for _, p := range problems {
		text += wrapComment("- "+p.Object+": "+p.Message+".", "  ", defaultWidth)
	}
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	return fmt.Errorf("%d problems have no counterpart in a policy: see above", len(problems))
}

type inventory struct {
	kube client.Reader
	// namespace is empty for all.
	namespace string
}

// read returns the autoscalers that --from names, and what their translation needs.
func (i inventory) read(ctx context.Context, from string) (migrate.Input, error) {
	in := migrate.Input{MaxReplicas: from == fromAll || from == fromFunctionMesh}
	var err error
	components := append(cluster.WorkloadKinds(), cluster.KindFunctionMesh)
	if in.Components, err = i.objects(ctx, components...); err != nil {
		return in, err
	}
	if in.Workloads, err = i.objects(ctx, cluster.KindStatefulSet, cluster.KindDeployment); err != nil {
		return in, err
	}
	if from == fromAll || from == fromKEDA {
		if in.ScaledObjects, err = i.objects(ctx, cluster.KindScaledObject); err != nil {
			return in, err
		}
	}
	if from == fromAll || from == fromHPA {
		var found autoscalingv2.HorizontalPodAutoscalerList
		if err := i.list(ctx, "horizontalpodautoscalers", &found); err != nil {
			return in, err
		}
		in.Autoscalers = found.Items
	}
	in.Selectables = selectables(slices.Concat(in.Components, in.Workloads))
	var policies v1alpha1.AutoscalingPolicyList
	if err := i.list(ctx, policyResource, &policies); err != nil {
		return in, err
	}
	in.Policies = policies.Items
	var sets v1alpha1.AutoscalingPolicySetList
	if err := i.list(ctx, "autoscalingpolicysets", &sets); err != nil {
		return in, err
	}
	in.Sets = sets.Items
	return in, nil
}

// selectables are what an AutoscalingPolicySet may select, by namespace.
func selectables(objects []unstructured.Unstructured) map[string][]set.Selectable {
	found := map[string][]set.Selectable{}
	for i := range objects {
		if object := &objects[i]; object.GetKind() != cluster.KindDeployment {
			found[object.GetNamespace()] = append(found[object.GetNamespace()], target.Selectables(target.Decode(object))...)
		}
	}
	return found
}

// objects of kinds; none of a kind that is not installed.
func (i inventory) objects(ctx context.Context, kinds ...string) (all []unstructured.Unstructured, err error) {
	for _, kind := range kinds {
		found := cluster.NewUnstructuredList(kind)
		if err := i.list(ctx, resourceOf(kind), found); err != nil {
			return nil, err
		}
		all = append(all, found.Items...)
	}
	return all, nil
}

// resourceOf is the name of a resource, as a ClusterRole has it.
func resourceOf(kind string) string {
	if kind == cluster.KindFunctionMesh {
		return "functionmeshes"
	}
	return cluster.ResourceFor(kind).Resource
}

func (i inventory) list(ctx context.Context, what string, found client.ObjectList) error {
	err := i.kube.List(ctx, found, client.InNamespace(i.namespace))
	switch {
	case err == nil || meta.IsNoMatchError(err):
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("listing %s: %w: bind a ClusterRole with this permission to your user (kubectl pap migrate "+
			"--help has all permissions)", what, err)
	default:
		return fmt.Errorf("listing %s: %w", what, err)
	}
}
