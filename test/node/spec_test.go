// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestANodeRefusesWhatItDoesNotHave(t *testing.T) {
	variable := func(v corev1.EnvVar) corev1.Container { return corev1.Container{Env: []corev1.EnvVar{v}} }
	for want, c := range map[string]corev1.Container{
		"envFrom":                   {EnvFrom: make([]corev1.EnvFromSource, 1)},
		"valueFrom of a variable":   variable(corev1.EnvVar{ValueFrom: &corev1.EnvVarSource{}}),
		"$(NAME) of a variable":     {Args: []string{"--name=$(POD)"}},
		"probes other than httpGet": {LivenessProbe: &corev1.Probe{}},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{c}}}
		require.EqualError(t, unsupported(pod), "this node runs no pod with "+want)
	}
	usual := variable(corev1.EnvVar{Name: "A", Value: "$A"})
	usual.Args = []string{"--name=$NAME"}
	require.NoError(t, unsupported(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{usual}}}))
}

func TestCommandIsThePodsOrTheImages(t *testing.T) {
	config := imageConfig{Entrypoint: []string{"/adapter"}, Cmd: []string{"--help"}}
	for name, test := range map[string]struct {
		container corev1.Container
		want      []string
	}{
		"the image's":              {corev1.Container{}, []string{"/adapter", "--help"}},
		"args replace the image's": {corev1.Container{Args: []string{"-v"}}, []string{"/adapter", "-v"}},
		"a command replaces both":  {corev1.Container{Command: []string{"/sh"}}, []string{"/sh"}},
		"a command with args replaces both": {
			corev1.Container{Command: []string{"/sh"}, Args: []string{"-c"}}, []string{"/sh", "-c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := command(test.container, config)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestIdentityRefusesRootWhereThePodDoes(t *testing.T) {
	for name, test := range map[string]struct {
		user    string
		pod     *corev1.PodSecurityContext
		uid     int
		refused bool
	}{
		"the image's user":             {user: "65532:65532", uid: 65532},
		"the pod's user":               {user: "65532", pod: &corev1.PodSecurityContext{RunAsUser: new(int64(7))}, uid: 7},
		"rejects a root image":         {pod: &corev1.PodSecurityContext{RunAsNonRoot: new(true)}, refused: true},
		"rejects an unknown user name": {user: "nobody", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: test.pod, Containers: make([]corev1.Container, 1)}}
			uid, _, err := identity(pod, imageConfig{User: test.user})
			require.Equal(t, test.refused, err != nil, err)
			require.Equal(t, test.uid, uid)
		})
	}
}
