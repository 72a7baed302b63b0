// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// checkResult is the result of a check.
type checkResult string

const (
	resultOK      checkResult = "ok"
	resultWarning checkResult = "warning"
	resultError   checkResult = "error"
	resultUnknown checkResult = "unknown"
)

// checked is a check with its result. The message has the fix.
type checked struct {
	Check   string      `json:"check"`
	Result  checkResult `json:"result"`
	Reason  string      `json:"reason,omitempty"`
	Message string      `json:"message"`
}

// unreadable is the check of what could not be read, with the missing permission.
func unreadable(check, permission string, err error) checked {
	if apierrors.IsForbidden(err) {
		return checked{check, resultUnknown, "PermissionMissing", "your user needs " + permission}
	}
	return checked{check, resultUnknown, "", fmt.Sprintf("reading it failed: %s", err)}
}

// checklist has the checks of something.
type checklist struct {
	title, note string
	checks      []checked
}

func (l checklist) count(result checkResult) (n int) {
	for _, c := range l.checks {
		if c.Result == result {
			n++
		}
	}
	return n
}

// text wraps at width columns, and at 80 with 0.
func (l checklist) text(width int) string {
	s := section{title: l.title, note: l.note}
	for _, c := range l.checks {
		s.add(string(c.Result), "%s: %s", c.Check, c.Message)
	}
	total := section{title: "RESULT", note: fmt.Sprintf("ok %d, warning %d, error %d, unknown %d", l.count(resultOK),
		l.count(resultWarning), l.count(resultError), l.count(resultUnknown))}
	return text([]section{s, total}, width)
}

// write writes the checks, and returns an error if one of them did.
func (o *checkOptions) write(out io.Writer, l checklist) error {
	var err error
	if o.form == formJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(map[string][]checked{"items": l.checks})
	} else {
		width, _ := terminalSize(out)
		_, err = io.WriteString(out, l.text(width))
	}
	if errors := l.count(resultError); err == nil && errors > 0 {
		return fmt.Errorf("%d of %d checks found an error", errors, len(l.checks))
	}
	return err
}
