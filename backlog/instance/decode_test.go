// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func ptr[T any](v T) *T { return &v }

func fixture(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(text)
}

// Answers of real instances; the numbers were read by eye.
func TestDecodeReadsEveryLanguage(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		want backlog.InstanceSample
	}{
		"Java counts failed calls and writes trailing commas": {"4.0.8-java-instance.txt", backlog.InstanceSample{
			Received: 15, Processed: 12, UserExceptions: 3,
			Calls: ptr(int64(15)), BusyTime: ptr(3808003183 * time.Nanosecond), FailedCallsCounted: true,
		}},
		"asynchronous Java without its comments": {"4.0.8-java-async-instance.txt", backlog.InstanceSample{
			Received: 15, Processed: 12, UserExceptions: 3,
			Calls: ptr(int64(15)), BusyTime: ptr(618468359 * time.Nanosecond), FailedCallsCounted: true,
		}},
		"Java of Pulsar 4.2": {"4.2.4-java-instance.txt", backlog.InstanceSample{
			Received: 52, Processed: 50, UserExceptions: 2,
			Calls: ptr(int64(52)), BusyTime: ptr(615427924 * time.Nanosecond), FailedCallsCounted: true,
		}},
		"asynchronous Java of Pulsar 5": {"5.0.0-M1-java-async-instance.txt", backlog.InstanceSample{
			Received: 52, Processed: 50, UserExceptions: 2,
			Calls: ptr(int64(52)), BusyTime: ptr(768316332 * time.Nanosecond), FailedCallsCounted: true,
		}},
		"Java before its first message, its quantiles NaN": {"5.0.0-M1-java-idle-instance.txt", backlog.InstanceSample{
			Calls: ptr(int64(0)), BusyTime: ptr(time.Duration(0)), FailedCallsCounted: true,
		}},
		"Java with a request for our series only": {"4.0.8-java-idle-named-instance.txt", backlog.InstanceSample{
			Calls: ptr(int64(0)), BusyTime: ptr(time.Duration(0)), FailedCallsCounted: true,
		}},
		"Python leaves failed calls out": {"4.0.8-python-instance.txt", backlog.InstanceSample{
			Received: 15, Processed: 12, UserExceptions: 3,
			Calls: ptr(int64(12)), BusyTime: ptr(3202979326 * time.Nanosecond),
		}},
		"Go has gauges and the function's id as instance_id": {"3.2-go-instance.txt", backlog.InstanceSample{
			Received: 5, Processed: 5, Calls: ptr(int64(5)), BusyTime: ptr(252564061 * time.Nanosecond),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.ID = "pod-0"
			text := fixture(t, test.file)
			got, err := decode(strings.NewReader(text), "pod-0")
			require.NoError(t, err)
			require.Equal(t, test.want, got)

			got, err = decode(iotest.OneByteReader(strings.NewReader(text)), "pod-0")
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

// Every series exists before the first message, so a missing one is never 0.
func TestDecodeNeverReadsMissingSeriesAsZero(t *testing.T) {
	for _, file := range []string{"4.0.8-java-instance.txt", "4.0.8-python-instance.txt", "3.2-go-instance.txt"} {
		text := fixture(t, file)
		for q := range quantities {
			name := function.series(q)
			var rest []string
			for _, line := range strings.SplitAfter(text, "\n") {
				if !strings.HasPrefix(line, name+"{") {
					rest = append(rest, line)
				}
			}
			_, err := decode(strings.NewReader(strings.Join(rest, "")), "")
			require.ErrorContains(t, err, "it lacks "+name, file)
		}
	}
}

// functionText is the text of a function in which the given lines replace those of the same name.
func functionText(lines ...string) string {
	all := []string{
		`pulsar_function_received_total{fqfn="t/n/f",instance_id="0"} 5`,
		`pulsar_function_processed_successfully_total{fqfn="t/n/f",instance_id="0"} 4`,
		`pulsar_function_user_exceptions_total{fqfn="t/n/f",instance_id="0"} 0`,
		`pulsar_function_system_exceptions_total{fqfn="t/n/f",instance_id="0"} 0`,
		`pulsar_function_process_latency_ms_count{fqfn="t/n/f",instance_id="0"} 4`,
		`pulsar_function_process_latency_ms_sum{fqfn="t/n/f",instance_id="0"} 1000`,
	}
	for _, line := range lines {
		name, _, _ := strings.Cut(line, "{")
		replaced := false
		for i := range all {
			if strings.HasPrefix(all[i], name+"{") {
				all[i], replaced = line, true
			}
		}
		if !replaced {
			all = append(all, line)
		}
	}
	return strings.Join(all, "\n") + "\n"
}

func TestDecodeAcceptsWhatInstancesWrite(t *testing.T) {
	want := backlog.InstanceSample{Received: 5, Processed: 4, Calls: ptr(int64(4)), BusyTime: ptr(time.Second)}
	for name, text := range map[string]string{
		"plain": functionText(),
		"scientific numbers": functionText(`pulsar_function_received_total{fqfn="t/n/f",instance_id="0"} 5E0`,
			`pulsar_function_process_latency_ms_sum{fqfn="t/n/f",instance_id="0"} 1.0e+03`),
		"timestamps":       strings.ReplaceAll(functionText(), "\n", " 1795266661641\n"),
		"exemplars":        strings.ReplaceAll(functionText(), "\n", " # {trace=\"a b\"} 1 1.5\n"),
		"carriage returns": strings.ReplaceAll(functionText(), "\n", "\r\n"),
		"spaces": strings.NewReplacer("{", " { ", ",", " , ", "=", " = ", "}",
			" } ").Replace(functionText()),
		"names without _total":           strings.ReplaceAll(functionText(), "_total", ""),
		"no labels at all":               strings.ReplaceAll(functionText(), `{fqfn="t/n/f",instance_id="0"}`, ""),
		"labels with all kinds of marks": strings.ReplaceAll(functionText(), `{`, `{error="a \"}, {\\",empty="",`),
		"OpenMetrics with its end":       functionText() + "# EOF",
		"a user metric of any name": functionText(`pulsar_function_user_metric_{metric="received_total"} NaN`,
			`pulsar_function_user_metric_received_total 1`, `pulsar_functionless 3`, `pulsar_ 3`, `pulsar_function_ 3`,
			`pulsar_function__total 3`),
		"bad lines of others": functionText(`user_metric{`, `{"quoted"} 1`, `up`, `=`, `"`),
		"windows of a minute": functionText(`pulsar_function_received_1min_total{} 1`,
			`pulsar_function_received_total_1min{} 1`, `pulsar_function_received_1min 1`),
		"a line longer than memory": functionText(`pulsar_function_user_exception{error="` +
			strings.Repeat("x", 3*maxLineBytes) + `"} 1`),
		"a latency that is no summary": functionText(
			`pulsar_function_process_latency_ms{fqfn="t/n/f",instance_id="0"} 1`),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decode(strings.NewReader(text), "")
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestDecodeRefusesInvalidValues(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"nothing":         {"", "no metrics of a function, sink or source"},
		"another program": {"# TYPE up gauge\nup 1\n", "is that the metrics port of an instance?"},
		"a web page":      {"<html>\n<body>\n", "no metrics of a function, sink or source"},
		"no value": {
			functionText(`pulsar_function_received_total{fqfn="t/n/f"}`),
			"reading pulsar_function_received_total: it has no value",
		},
		"a word for a value":   {functionText(`pulsar_function_received_total{} many`), "invalid syntax"},
		"NaN":                  {functionText(`pulsar_function_received_total{} NaN`), "its value NaN cannot be"},
		"infinity":             {functionText(`pulsar_function_process_latency_ms_sum{} +Inf`), "its value +Inf cannot be"},
		"a negative value":     {functionText(`pulsar_function_processed_successfully_total{} -1`), "its value -1 cannot be"},
		"half a message":       {functionText(`pulsar_function_received_total{} 0.5`), "its value 0.5 cannot be"},
		"more than is counted": {functionText(`pulsar_function_received_total{} 1e16`), "its value 1e+16 cannot be"},
		"1000 years busy":      {functionText(`pulsar_function_process_latency_ms_sum{} 3.2e13`), "cannot be"},
		"a label without end":  {functionText(`pulsar_function_received_total{fqfn="t/n/f} 5`), "its labels cannot be read"},
		"a label without name": {functionText(`pulsar_function_received_total{"t/n/f"} 5`), "its labels cannot be read"},
		"labels without end":   {functionText(`pulsar_function_received_total{fqfn="t/n/f" 5`), "its labels cannot be read"},
		"a series twice": {
			functionText() + "pulsar_function_received_total{fqfn=\"t/n/f\",instance_id=\"0\"} 6\n",
			"it has pulsar_function_received_total twice",
		},
		"two instances": {
			functionText() + strings.ReplaceAll(functionText(), `instance_id="0"`, `instance_id="1"`),
			"it has pulsar_function_received_total twice",
		},
		"two kinds": {
			functionText() + "pulsar_sink_received_total 1\n",
			"it has metrics of a function and a sink",
		},
		"an incomplete number": {strings.TrimSuffix(functionText(), "00\n"), "cut off"},
		"an incomplete name":   {functionText() + "pulsar_function_rec", "cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decode(strings.NewReader(test.text), "")
			require.ErrorContains(t, err, test.want)
			require.Empty(t, got)
		})
	}
}

func TestDecodeReadsWhenTheProcessBegan(t *testing.T) {
	for name, test := range map[string]struct {
		line string
		want time.Time
	}{
		"Java":                  {"process_start_time_seconds 1.795266661641E9", time.UnixMilli(1795266661641)},
		"Python":                {"process_start_time_seconds 1795266661.64", time.UnixMilli(1795266661640)},
		"another series":        {"process_start_time_seconds_total 5", time.Time{}},
		"no number":             {"process_start_time_seconds NaN", time.Time{}},
		"a negative number":     {"process_start_time_seconds -1", time.Time{}},
		"more than time can be": {"process_start_time_seconds 1e300", time.Time{}},
		"no value":              {"process_start_time_seconds ", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range []string{test.line + "\n" + functionText(), functionText() + test.line + "\n"} {
				got, err := decode(strings.NewReader(text), "")
				require.NoError(t, err)
				require.Equal(t, test.want, got.Began)
			}
		})
	}
}

func TestDecodeReadsConnectors(t *testing.T) {
	for _, k := range []kind{sink, source} {
		text := ""
		for _, line := range []string{
			"received_total 7", "written_total 6", string(k) + "_exceptions_total 1",
			"system_exceptions_total 0",
		} {
			text += "pulsar_" + string(k) + "_" + line + "\n"
		}
		got, err := decode(strings.NewReader(text), "s")
		require.NoError(t, err)
		require.Equal(t, backlog.InstanceSample{ID: "s", Received: 7, Processed: 6, UserExceptions: 1}, got)
	}
}

func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Add(functionText())
	f.Fuzz(func(t *testing.T, text string) {
		got, err := decode(strings.NewReader(text), "i")
		if err != nil {
			require.Zero(t, got)
			return
		}
		require.Equal(t, "i", got.ID)
		require.GreaterOrEqual(t, min(got.Received, got.Processed, got.UserExceptions, got.SystemExceptions), int64(0))
		require.Equal(t, got.Calls == nil, got.BusyTime == nil)
		if got.Calls != nil {
			require.GreaterOrEqual(t, *got.Calls, int64(0))
			require.GreaterOrEqual(t, *got.BusyTime, time.Duration(0))
		}
	})
}
