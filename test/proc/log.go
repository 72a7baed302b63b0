// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

// tailBytes bounds LogTail: a stack dump of an API server is about 40 KiB.
const tailBytes = 64 << 10

// logFile is the output of one run of a child.
type logFile struct {
	file  *os.File
	start int64 // offset of this run: a named log is appended to
}

// openLog opens the file at path for appending; without a path a temporary file that is already unlinked, so that it
// needs no removal.
func openLog(path string) (*logFile, error) {
	if path == "" {
		file, err := os.CreateTemp("", "pulsar-autoscaler-*.log")
		if err != nil {
			return nil, err
		}
		return &logFile{file: file}, os.Remove(file.Name())
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return &logFile{file: file, start: info.Size()}, nil
}

func (l *logFile) tail(n int) string {
	if n <= 0 {
		return ""
	}
	info, err := l.file.Stat()
	if err != nil {
		return fmt.Sprintf("(reading the log: %v)", err)
	}
	from := max(l.start, info.Size()-tailBytes)
	text, err := io.ReadAll(io.NewSectionReader(l.file, from, max(0, info.Size()-from)))
	if err != nil {
		return fmt.Sprintf("(reading the log: %v)", err)
	}
	if from > l.start { // cut: start with a whole line, unless there is only one
		if _, whole, found := bytes.Cut(text, []byte("\n")); found {
			text = whole
		}
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
