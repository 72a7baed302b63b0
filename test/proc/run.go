// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"errors"
	"fmt"
)

// quoted is the number of last lines that an error of Run quotes.
const quoted = 30

// Run starts a child as Start does and waits until it has ended. The error quotes its last lines.
func Run(ctx context.Context, config Config) error {
	p, err := Start(ctx, config)
	if err != nil {
		return err
	}
	<-p.Done()
	if err := errors.Join(ctx.Err(), p.Err()); err != nil {
		return fmt.Errorf("running %s: %w; it printed:\n%s", config.Name, err, p.LogTail(quoted))
	}
	return nil
}
