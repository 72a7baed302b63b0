// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestExpandReplacesWhatIsDefined(t *testing.T) {
	env := map[string]string{"POD": "adapter-0"}
	for name, test := range map[string]struct{ text, want string }{
		"a defined variable":       {"--name=$(POD)", "--name=adapter-0"},
		"an undefined variable":    {"--name=$(NODE)", "--name=$(NODE)"},
		"an escaped variable":      {"--name=$$(POD)", "--name=$(POD)"},
		"a shell's variable stays": {"--name=$POD", "--name=$POD"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, expand(test.text, env)) })
	}
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
			got, err := command(test.container, config, nil)
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

func TestProbeCountsInARow(t *testing.T) {
	began := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	p := newProbe(&corev1.Probe{PeriodSeconds: 5, SuccessThreshold: 1, FailureThreshold: 2, InitialDelaySeconds: 3}, began)
	require.False(t, p.due(began.Add(2*time.Second)))
	require.True(t, p.due(began.Add(3*time.Second)))
	require.False(t, p.succeeds())
	p = p.after(began, nil)
	require.True(t, p.succeeds())
	p = p.after(began, errors.New("refused"))
	require.True(t, p.succeeds(), "one failure is not enough")
	require.False(t, p.fails())
	p = p.after(began, errors.New("refused"))
	require.False(t, p.succeeds())
	require.True(t, p.fails())
	require.True(t, probe{}.succeeds(), "no probe is a success")
}

func TestFilesOfAVolumeChangeAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	for _, files := range []map[string][]byte{
		{"tls.crt": []byte("one"), "tls.key": []byte("one")}, {"tls.crt": []byte("two"), "tls.key": []byte("two")},
	} {
		require.NoError(t, publish(dir, files))
		before, err := os.Readlink(filepath.Join(dir, "..data"))
		require.NoError(t, err)
		for name, want := range files {
			got, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		require.NoError(t, publish(dir, files))
		after, err := os.Readlink(filepath.Join(dir, "..data"))
		require.NoError(t, err)
		require.Equal(t, before, after, "the same files are not written again")
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 4, "the files, ..data and its directory")
}
