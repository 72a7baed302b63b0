// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
)

// Component is pulsar-admin's request to the worker for a function, sink or source of public/default.
type Component struct {
	// Kind is "function", "sink" or "source".
	Kind string
	// Config has the fields of the kind's configuration; "name" is required.
	Config map[string]any
	// Jar has the code; empty keeps the worker's.
	Jar string
}

// path is that of the component in the worker's API.
func (c Component) path() string {
	return fmt.Sprintf("/admin/v3/%ss/public/default/%s", c.Kind, c.Config["name"])
}

// CreateComponent registers a component. The worker then starts it.
func (b *Broker) CreateComponent(ctx context.Context, c Component) error {
	return b.submit(ctx, http.MethodPost, c)
}

// UpdateComponent changes the fields of Config, and the code if there is a Jar; the worker restarts the instances.
func (b *Broker) UpdateComponent(ctx context.Context, c Component) error {
	return b.submit(ctx, http.MethodPut, c)
}

func (b *Broker) submit(ctx context.Context, method string, c Component) error {
	body, contentType, err := c.encode()
	if err != nil {
		return fmt.Errorf("encoding %s %v: %w", c.Kind, c.Config["name"], err)
	}
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	status, answer, err := b.send(ctx, method, c.path(), contentType, body)
	if err != nil {
		return err
	}
	if status/100 != 2 {
		return fmt.Errorf("%s %s answered %d: %s", method, c.path(), status, bytes.TrimSpace(answer))
	}
	return nil
}

// encode writes the form of pulsar-admin: the configuration as JSON, and the jar as a file.
func (c Component) encode() (body []byte, contentType string, err error) {
	text, err := json.Marshal(c.Config)
	if err != nil {
		return nil, "", err
	}
	var buffer bytes.Buffer
	form := multipart.NewWriter(&buffer)
	part, err := form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {fmt.Sprintf(`form-data; name="%sConfig"`, c.Kind)},
		"Content-Type":        {"application/json"},
	})
	if err != nil {
		return nil, "", err
	}
	if _, err := part.Write(text); err != nil {
		return nil, "", err
	}
	if c.Jar != "" {
		if err := attach(form, c.Jar); err != nil {
			return nil, "", err
		}
	}
	err = form.Close()
	return buffer.Bytes(), form.FormDataContentType(), err
}

func attach(form *multipart.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	part, err := form.CreateFormFile("data", filepath.Base(path))
	if err == nil {
		_, err = io.Copy(part, file)
	}
	return errors.Join(err, file.Close())
}
