// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

const (
	// variableInside is set for a process in the node's namespaces.
	variableInside = "PULSAR_AUTOSCALER_NODE"
	// Gateway is the node's address for pods.
	Gateway = "10.244.0.1"

	bridge = "pods0"
	// serviceNetwork is that of test/cluster.
	serviceNetwork = "10.0.0.0/24"

	allowNamespaces = "allow user namespaces with all rights (sysctl -w user.max_user_namespaces=15000; Ubuntu: also " +
		"sysctl -w kernel.apparmor_restrict_unprivileged_userns=0; in a container, its seccomp and AppArmor profiles), or " +
		"run as root"
	loadModules = "load the kernel modules bridge and veth (modprobe -a bridge veth)"
)

// Main is for a TestMain. In the first process, which has the network of the machine, it calls prepare and runs this
// program again in the namespaces of a node; then done is true, and code is the exit code. In that second process it
// returns with done false. It also is the first process of each pod, where it does not return.
func Main(ctx context.Context, prepare func(context.Context) error) (code int, done bool) {
	if path := os.Getenv(variableContainer); path != "" {
		fmt.Fprintln(os.Stderr, "starting the container:", enterContainer(path))
		return exitContainer, true
	}
	if os.Getenv(variableInside) != "" {
		if err := network(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "node:", err)
			return 1, true
		}
		return 0, false
	}
	err := checkMachine(ctx) // what follows takes longer
	if err == nil {
		err = prepare(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return again(ctx), true
}

// again runs this program again, in the namespaces of a node.
func again(ctx context.Context) int {
	command := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	command.Env = append(os.Environ(), variableInside+"=1")
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.SysProcAttr = namespaces()
	err := command.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	}
	fmt.Fprintf(os.Stderr, "starting this program in namespaces of its own: %v: %s\n", err, allowNamespaces)
	return 1
}

// network configures the loopback device, the bridge of the pods, and all cluster IPs as addresses of this node.
func network(ctx context.Context) error {
	return errors.Join(
		ip(ctx, "link set lo up"),
		ip(ctx, "link add "+bridge+" type bridge"),
		ip(ctx, "addr add "+Gateway+"/16 dev "+bridge),
		ip(ctx, "link set "+bridge+" up"),
		ip(ctx, "route add local "+serviceNetwork+" dev lo"),
	)
}

// ip runs the ip command of iproute2.
func ip(ctx context.Context, args string) error {
	out, err := exec.CommandContext(ctx, "ip", strings.Fields(args)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s%s", args, err, out, remedy(string(out)))
	}
	return nil
}

// remedy is what the machine lacks when the ip command says so, or "".
func remedy(out string) string {
	switch {
	case strings.Contains(out, "Operation not permitted"):
		return allowNamespaces
	case strings.Contains(out, "Operation not supported"), strings.Contains(out, "Unknown device type"):
		return loadModules
	}
	return ""
}
