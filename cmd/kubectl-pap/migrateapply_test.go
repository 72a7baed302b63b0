// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/migrate"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// forbidden is what an API server answers.
func forbidden(why string) error {
	return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(why))
}

// allYes moves with a yes to all questions.
func allYes(kube client.Client) mover {
	return mover{kube, bufio.NewReader(strings.NewReader("")), io.Discard, nil, true}
}

func TestMigrateCreatesTheRestAfterARefusal(t *testing.T) {
	refused := map[string]error{
		"billing":  apierrors.NewAlreadyExists(schema.GroupResource{}, ""),
		"invoices": forbidden(`User "jane" cannot create resource "autoscalingpolicies"`),
		"mixed":    forbidden("ValidatingAdmissionPolicy 'limits' denied request: maxReplicas is at most 50 in a"),
	}
	kube := interceptor.NewClient(fakeCluster(t, migrateFixtures(t)...), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := refused[object.GetName()]; err != nil {
				return err
			}
			return c.Create(ctx, object, options...)
		},
	})
	moves := translated(t, kube, fromAll).Moves
	err := allYes(kube).create(t.Context(), moves)
	require.ErrorContains(t, err, "pap/billing was created in namespace shop meanwhile")
	require.Regexp(t, `creating pap/invoices in .* cannot create .*: bind the ClusterRole edit, `, err)
	require.Regexp(t, `(?m)creating pap/mixed in .*: maxReplicas is at most 50 in a$`, err, "a role does not change that")
	require.Len(t, modesOf(t, kube), len(moves)-len(refused))
}

func TestMigrateStopsWhereNothingCanBeCreated(t *testing.T) {
	for want, failed := range map[string]error{
		"install pulsar-autoscaler on this cluster": &meta.NoKindMatchError{},
		"the token has expired":                     apierrors.NewUnauthorized("the token has expired"),
		"failed calling webhook":                    apierrors.NewInternalError(errors.New("failed calling webhook")),
	} {
		tried := 0
		kube := interceptor.NewClient(fakeCluster(t, migrateFixtures(t)...), interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				tried++
				return failed
			},
		})
		err := allYes(kube).create(t.Context(), translated(t, kube, fromAll).Moves)
		require.ErrorContains(t, err, want)
		require.Equal(t, 1, tried, want)
	}
}

func TestMigrateSwitchesTheRestAfterARefusal(t *testing.T) {
	one, two := mediaPolicy("one"), mediaPolicy("two")
	one.OwnerReferences, two.OwnerReferences = nil, nil
	kube := interceptor.NewClient(fakeCluster(t, &one, &two), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch,
			options ...client.PatchOption,
		) error {
			if object.GetName() == "one" {
				return forbidden("admission webhook denied the request")
			}
			return c.Patch(ctx, object, patch, options...)
		},
	})
	err := allYes(kube).switchOver(t.Context(), []migrate.Begun{{Policy: one}, {Policy: two}})
	require.ErrorContains(t, err, "setting the mode of pap/one in namespace media: ")
	require.Equal(t, map[string]v1alpha1.Mode{"one": v1alpha1.ModeRecommend, "two": v1alpha1.ModeAuto}, modesOf(t, kube))
}

func TestMigrateLeavesAPausedScaledObject(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		want        v1alpha1.Mode
	}{
		"by a user":               {map[string]string{plan.AnnotationPaused: "true"}, v1alpha1.ModeRecommend},
		"at a number of replicas": {map[string]string{plan.AnnotationPausedAt: "0"}, v1alpha1.ModeRecommend},
		"but not by the policy, which had mode Auto before": {
			map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedBy: "billing"}, v1alpha1.ModeAuto,
		},
	} {
		t.Run(name, func(t *testing.T) {
			fixtures := migrateFixtures(t)
			for _, object := range fixtures {
				if object.GetObjectKind().GroupVersionKind().Kind == plan.KindScaledObject && object.GetName() == "billing" {
					object.SetAnnotations(test.annotations)
				}
			}
			kube := fakeCluster(t, fixtures...)
			out, err := migrateStep(t, kube, "", true)
			require.NoError(t, err)
			require.Contains(t, flat(out), "- ScaledObject billing is paused now")

			setDecision(t, kube, "billing")
			out, err = migrateStep(t, kube, "", true)
			require.Error(t, err, "the rest is not Ready")
			require.Equal(t, test.want, modesOf(t, kube)["billing"])
			if test.want == v1alpha1.ModeRecommend {
				require.ErrorContains(t, err, "pap/billing in namespace shop was not switched")
				require.Contains(t, flat(out), "ScaledObject billing is paused, and policy billing would scale its target in mode "+
					"Auto: resume it first")
				billing := &v1alpha1.AutoscalingPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "billing"}}
				require.NoError(t, kube.Patch(t.Context(), billing,
					client.RawPatch(types.MergePatchType, []byte(`{"spec":{"mode":"Paused"}}`))))
				out, err = migrateStep(t, kube, "", true)
				require.NotContains(t, err.Error(), "pap/billing")
				require.Contains(t, flat(out), "policy billing is paused, as is ScaledObject billing")
			}
		})
	}
}
