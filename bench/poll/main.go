// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

func main() {
	command.Main("poll", run)
}

// options are the flags; role, name and admin are for the processes that the benchmark starts itself.
type options struct {
	setting           setting
	sizes, path       string
	role, name, admin string
	pace              pace
}

// The roles of a process; none for the one that the user starts.
const (
	roleBroker    = "broker"
	roleContender = "contender"
)

func parseFlags(args []string, progress io.Writer) (options, error) {
	o := options{}
	flags := command.Flags("poll", progress)
	flags.StringVar(&o.sizes, "sizes", "1000,10000,100000", "topic-partitions of each measurement")
	flags.IntVar(&o.setting.Partitions, "partitions", 4, "partitions of a topic")
	flags.IntVar(&o.setting.Busy, "busy", 10, "of 100 topics, how many have something waiting")
	flags.DurationVar(&o.setting.Interval, "interval", 10*time.Second, "between two polls of a topic")
	flags.IntVar(&o.pace.warmUp, "warm-up", 2, "intervals before measuring")
	flags.IntVar(&o.pace.measured, "measured", 6, "intervals to measure; idle topics are looked at whole once a minute")
	flags.StringVar(&o.path, "out", "", "file for the numbers as JSON; none when empty")
	flags.StringVar(&o.role, "role", "", "internal: role of this process")
	flags.StringVar(&o.name, "contender", "", "internal: who polls")
	flags.StringVar(&o.admin, "admin", "", "internal: URL of the broker")
	flags.IntVar(&o.setting.Topics, "topics", 0, "internal: number of topics")
	o.pace.looks = 10
	if err := command.Parse(flags, args); err != nil {
		return o, err
	}
	switch {
	case o.setting.Partitions < 1:
		return o, fmt.Errorf("-partitions is %d: it must be at least 1", o.setting.Partitions)
	case o.setting.Busy < 0 || o.setting.Busy > 100:
		return o, fmt.Errorf("-busy is %d: it must be from 0 to 100", o.setting.Busy)
	case o.setting.Interval < time.Second || o.setting.Interval > time.Minute:
		return o, fmt.Errorf("-interval is %s: it must be from 1s to 1m", o.setting.Interval)
	case o.pace.warmUp < 1 || o.pace.measured < 1:
		return o, fmt.Errorf("-warm-up is %d and -measured %d: both must be at least 1", o.pace.warmUp, o.pace.measured)
	}
	return o, nil
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parseFlags(args, progress)
	if err != nil {
		return err
	}
	switch o.role {
	case roleBroker:
		return serveBroker(ctx, o.setting, out)
	case roleContender:
		c, err := newContender(o.name, o.setting, o.admin)
		if err != nil {
			return err
		}
		return measurement{contender: c, setting: o.setting, admin: o.admin, pace: o.pace}.run(ctx, out)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	return measureAll(ctx, o, launcher{path: self, progress: progress}, out)
}

// measureAll runs every contender with every size, each in its own process with its own broker.
func measureAll(ctx context.Context, o options, launch launcher, out io.Writer) error {
	measured := report{
		CPUs: runtime.NumCPU(), PartitionsPerTopic: o.setting.Partitions, BusyPercent: o.setting.Busy,
		IntervalSeconds: o.setting.Interval.Seconds(),
	}
	for _, size := range strings.Split(o.sizes, ",") {
		partitions, err := strconv.Atoi(size)
		if err != nil || partitions < o.setting.Partitions {
			return fmt.Errorf("-sizes has %q: each must be a number of topic-partitions, at least -partitions (%d)", size,
				o.setting.Partitions)
		}
		s := o.setting
		s.Topics = partitions / s.Partitions
		for _, name := range []string{nameOurs, namePerTrigger} {
			_, _ = fmt.Fprintf(launch.progress, "%s polls %d topic-partitions for %s\n", name, partitions,
				time.Duration(o.pace.warmUp+o.pace.measured)*s.Interval) // only an expected duration
			one, err := launch.measure(ctx, name, s, o.pace)
			if err != nil {
				return fmt.Errorf("%s polling %d topic-partitions: %w", name, partitions, err)
			}
			measured.Results = append(measured.Results,
				result{
					Contender: name, TopicPartitions: partitions, Topics: s.Topics, Flags: s.flagsThatDiffer(name), figures: one,
				})
		}
	}
	if err := measured.writeTable(out); err != nil {
		return err
	}
	return output.JSON(o.path, measured)
}

// launcher starts this program in its other roles.
type launcher struct {
	path     string
	progress io.Writer
}

func (l launcher) command(ctx context.Context, role string, s setting, p pace, more ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, l.path, append([]string{
		"-role=" + role, "-topics=" + strconv.Itoa(s.Topics), "-partitions=" + strconv.Itoa(s.Partitions), "-busy=" +
			strconv.Itoa(s.Busy),
		"-interval=" + s.Interval.String(), "-warm-up=" + strconv.Itoa(p.warmUp), "-measured=" + strconv.Itoa(p.measured),
	}, more...)...)
	command.Stderr = l.progress
	return command
}

func (l launcher) measure(ctx context.Context, name string, s setting, p pace) (one figures, err error) {
	ctx, stop := context.WithCancel(ctx)
	broker := l.command(ctx, roleBroker, s, p)
	lines, err := broker.StdoutPipe()
	if err == nil {
		err = broker.Start()
	}
	if err != nil {
		stop()
		return one, fmt.Errorf("starting the broker: %w", err)
	}
	defer func() {
		stop()
		_ = broker.Wait() // it was killed
	}()
	url, err := bufio.NewReader(lines).ReadString('\n')
	if err != nil {
		return one, fmt.Errorf("waiting for the broker's URL: %w", err)
	}
	text, err := l.output(l.command(ctx, roleContender, s, p, "-contender="+name, "-admin="+strings.TrimSpace(url)))
	if err != nil {
		return one, err
	}
	if err := json.Unmarshal(text, &one); err != nil {
		return one, fmt.Errorf("reading the figures: %w", err)
	}
	if one.UnknownRequests > 0 {
		return one, fmt.Errorf("%d requests were about nothing that the broker has", one.UnknownRequests)
	}
	return one, nil
}

func (l launcher) output(command *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	command.Stdout = &out
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("running the contender: %w", err)
	}
	return out.Bytes(), nil
}
