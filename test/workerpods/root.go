// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package workerpods

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/distribution"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/jdk"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

//go:embed root
var files embed.FS

// root is the file system of all pods' containers.
type root struct {
	dir, jar string
	kit      jdk.JDK
}

// layOut creates the directory with the part of Pulsar's image that instances need.
func layOut(dist distribution.Pulsar, jar string) (_ root, err error) {
	r := root{jar: jar}
	if r.kit, err = jdk.Find(); err != nil {
		return root{}, err
	}
	if r.dir, err = os.MkdirTemp("", "pulsar-autoscaler-pods-*"); err != nil {
		return root{}, fmt.Errorf("making the directory of pods: %w", err)
	}
	if err := r.fill(dist); err != nil {
		return root{}, errors.Join(err, os.RemoveAll(r.dir))
	}
	return r, nil
}

func (r root) path(parts ...string) string {
	return filepath.Join(append([]string{r.dir}, parts...)...)
}

func (r root) fill(dist distribution.Pulsar) error {
	for _, dir := range []string{"bin", "java", "tmp", filepath.Join("instances", "deps")} {
		if err := os.MkdirAll(r.path(dir), 0o750); err != nil {
			return fmt.Errorf("making the directory of pods: %w", err)
		}
	}
	for name, to := range map[string]string{
		"pulsar-admin.sh": r.path("bin", "pulsar-admin"),
		"java.sh":         r.path("java", "java"), "log4j2.xml": r.path("log4j2.xml"),
	} {
		text, err := files.ReadFile("root/" + name)
		if err != nil {
			return fmt.Errorf("reading what pods have: %w", err)
		}
		if err := os.WriteFile(to, text, 0o700); err != nil { //nolint:gosec // two of them are programs
			return fmt.Errorf("writing what pods have: %w", err)
		}
	}
	return errors.Join(os.Symlink(dist.Lib, r.path("lib")),
		os.Symlink(dist.InstanceJar, r.path("instances", "java-instance.jar")))
}

// environment returns the variables of a pod's container. The second port serves its metrics.
func (r root) environment(pod string, ports []int) []string {
	return []string{
		"POD_NAME=" + pod, "PATH=" + r.path("java") + string(os.PathListSeparator) + os.Getenv("PATH"),
		"INSTANCE_PORT=" + strconv.Itoa(ports[0]), "INSTANCE_METRICS_PORT=" + strconv.Itoa(ports[1]), "INSTANCE_TMP=" +
			r.path("tmp"),
		"INSTANCE_LOG=" + r.path("log4j2.xml"), "INSTANCE_PACKAGE=" + r.jar, "INSTANCE_JAVA=" + r.kit.Java(),
		"INSTANCE_FLAGS=" + strings.Join(replica.JVMFlags(r.kit, r.path("tmp")), " "),
	}
}

// config returns how to run a pod's command.
func (r root) config(pod string, command []string, ports []int) proc.Config {
	return proc.Config{Name: "pod " + pod, Path: command[0], Args: command[1:], Env: r.environment(pod, ports), Dir: r.dir}
}
