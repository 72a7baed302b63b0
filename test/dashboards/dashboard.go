// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Dashboard is what is read of Grafana's JSON.
type Dashboard struct {
	UID         string  `json:"uid"`
	Title       string  `json:"title"`
	Description string  `json:"description"`
	Panels      []Panel `json:"panels"`
	Templating  struct {
		List []Variable `json:"list"`
	} `json:"templating"`
	Annotations struct {
		List []Annotation `json:"list"`
	} `json:"annotations"`
}

// Panel is a panel, or a row, which has no targets.
type Panel struct {
	ID          int         `json:"id"`
	Type        string      `json:"type"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	Targets     []Target    `json:"targets"`
	FieldConfig FieldConfig `json:"fieldConfig"`
}

// Row is the type of panels that are headings.
const Row = "row"

// FieldConfig says how values are shown.
type FieldConfig struct {
	Defaults struct {
		Unit string `json:"unit"`
	} `json:"defaults"`
	Overrides []Override `json:"overrides"`
}

// Override is how values of some series or columns are shown.
type Override struct {
	Matcher struct {
		ID      string `json:"id"`
		Options string `json:"options"`
	} `json:"matcher"`
	Properties []struct {
		ID    string          `json:"id"`
		Value json.RawMessage `json:"value"`
	} `json:"properties"`
}

// Target is a query of a panel.
type Target struct {
	Expression   string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
	Instant      bool   `json:"instant"`
	Range        bool   `json:"range"`
}

// Variable is chosen at the top of a dashboard.
type Variable struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Label string `json:"label"`
	// Definition is the query for its values.
	Definition string `json:"definition"`
	// AllValue is what All stands for; empty where All cannot be chosen.
	AllValue string `json:"allValue"`
}

// Annotation is a query for marks in all panels.
type Annotation struct {
	Name       string `json:"name"`
	Expression string `json:"expr"`
}

// Read reads all dashboards of a folder, by the names of their files without the extension.
func Read(dir string) (map[string]Dashboard, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("listing dashboards: %w", err)
	}
	found := map[string]Dashboard{}
	for _, path := range paths {
		name := filepath.Base(path)
		if name == "package.json" || name == "package-lock.json" {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a dashboard: %w", err)
		}
		var dashboard Dashboard
		if err := json.Unmarshal(content, &dashboard); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", path, err)
		}
		found[name[:len(name)-len(".json")]] = dashboard
	}
	if len(found) == 0 {
		return nil, errors.New("no dashboard in " + dir + ": write them with make dashboards")
	}
	return found, nil
}
