// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// variableContainer is the file with the container for this process.
	variableContainer = "PULSAR_AUTOSCALER_NODE_CONTAINER"
	exitContainer     = 127
	// device is the network device of a pod.
	device       = "eth0"
	deviceWithin = time.Minute
)

// container is what a process needs to become a container.
type container struct {
	// Root is the directory that becomes /.
	Root     string   `json:"root"`
	ReadOnly bool     `json:"readOnly"`
	Mounts   []mount  `json:"mounts"`
	Address  string   `json:"address"`
	Host     string   `json:"host"`
	Args     []string `json:"args"`
	Env      []string `json:"env"`
	Dir      string   `json:"dir"`
	// NoNewPrivileges is set for allowPrivilegeEscalation: false.
	NoNewPrivileges bool `json:"noNewPrivileges"`
}

// mount mounts the directory or file Source at Target.
type mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly"`
}

// isolate gives a child the namespaces of a pod, with the user.
func isolate(uid, gid int) func(*syscall.SysProcAttr) {
	return func(to *syscall.SysProcAttr) {
		to.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET |
			syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC
		to.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getuid(), Size: 1}}
		to.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: os.Getgid(), Size: 1}}
		// For the code that runs before the program of the image, which has none.
		to.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN}
	}
}

// enterContainer turns this process into the container, and returns only after an error.
func enterContainer(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var c container
	if err := json.Unmarshal(text, &c); err != nil {
		return fmt.Errorf("decoding %s: %w", path, err)
	}
	if err := errors.Join(unix.Sethostname([]byte(c.Host)), c.connect(context.Background()), c.mountAll()); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	if c.NoNewPrivileges {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("setting no_new_privs: %w", err)
		}
	}
	if err := os.Chdir(c.Dir); err != nil {
		return err
	}
	return fmt.Errorf("executing %s: %w", c.Args[0], unix.Exec(c.Args[0], c.Args, c.Env))
}

// connect waits for the device from the node, and configures it.
func (c container) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deviceWithin)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := net.InterfaceByName(device); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return errors.New("waiting for the network device of the pod: " + ctx.Err().Error())
		case <-tick.C:
		}
	}
	return errors.Join(
		ip(ctx, "link set lo up"),
		ip(ctx, "addr add "+c.Address+"/16 dev "+device),
		ip(ctx, "link set "+device+" up"),
		ip(ctx, "route add default via "+Gateway),
	)
}

// mountAll mounts the file system and makes it the root.
func (c container) mountAll() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := bind(mount{Source: c.Root, Target: c.Root}); err != nil {
		return err
	}
	for _, m := range c.Mounts {
		m.Target = filepath.Join(c.Root, m.Target)
		if err := bind(m); err != nil {
			return err
		}
	}
	if err := unix.Mount("proc", filepath.Join(c.Root, "proc"), "proc", 0, ""); err != nil {
		// A container with a masked /proc gives its children no /proc at all.
		if err := bind(mount{Source: "/proc", Target: filepath.Join(c.Root, "proc")}); err != nil {
			return err
		}
	}
	if c.ReadOnly {
		if err := readOnly(c.Root); err != nil {
			return err
		}
	}
	if err := os.Chdir(c.Root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("entering the root file system: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the machine's file system: %w", err)
	}
	return nil
}

func bind(m mount) error {
	if err := unix.Mount(m.Source, m.Target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mounting %s at %s: %w", m.Source, m.Target, err)
	}
	if m.ReadOnly {
		return readOnly(m.Target)
	}
	return nil
}

// readOnly keeps the other options of the mount, which a user namespace must keep.
func readOnly(target string) error {
	var now unix.Statfs_t
	if err := unix.Statfs(target, &now); err != nil {
		return fmt.Errorf("reading the options of %s: %w", target, err)
	}
	// statfs and mount have the same bits for all of these but the last.
	const kept, relative = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME, 0x1000
	flags := uintptr(now.Flags&kept) | unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY
	if now.Flags&relative != 0 {
		flags |= unix.MS_RELATIME
	}
	if err := unix.Mount("", target, "", flags, ""); err != nil {
		return fmt.Errorf("making %s read-only: %w", target, err)
	}
	return nil
}

// attach connects the network namespace of the process to the bridge.
func attach(ctx context.Context, pid, number int) error {
	name := fmt.Sprintf("pod%d", number)
	return errors.Join(
		ip(ctx, fmt.Sprintf("link add %s type veth peer name %s netns %d", name, device, pid)),
		ip(ctx, "link set "+name+" master "+bridge),
		ip(ctx, "link set "+name+" up"),
	)
}
