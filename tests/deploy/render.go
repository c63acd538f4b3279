// render: what `helm template` prints, for a chart that uses the functions below and no more: Helm itself is in no
// package of Debian's or npm's. Its language is Go's text/template with sprig's functions, which are Debian's packages.
//
// usage: render CHART [NAME=VALUE]...    values by dotted name, read as YAML
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v2"
)

type values = map[string]interface{}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

// plain gives maps the keys that templates look up.
func plain(value interface{}) interface{} {
	switch typed := value.(type) {
	case map[interface{}]interface{}:
		result := values{}
		for key, item := range typed {
			result[fmt.Sprint(key)] = plain(item)
		}
		return result
	case []interface{}:
		for i := range typed {
			typed[i] = plain(typed[i])
		}
	}
	return value
}

func read(text []byte) interface{} {
	var value interface{}
	check(yaml.Unmarshal(text, &value))
	return plain(value)
}

func readFile(path string) values {
	text, err := os.ReadFile(path)
	check(err)
	return read(text).(values)
}

func set(all values, assignment string) {
	name, value, _ := strings.Cut(assignment, "=")
	parts := strings.Split(name, ".")
	for _, part := range parts[:len(parts)-1] {
		next, ok := all[part].(values)
		if !ok {
			check(fmt.Errorf("no value %s", name))
		}
		all = next
	}
	all[parts[len(parts)-1]] = read([]byte(value))
}

func functions() template.FuncMap {
	all := sprig.TxtFuncMap()
	all["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	all["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, fmt.Errorf("%s", message)
		}
		return value, nil
	}
	// There is no cluster to ask.
	all["lookup"] = func(version, kind, namespace, name string) map[string]interface{} {
		return map[string]interface{}{}
	}
	return all
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: render CHART [NAME=VALUE]...")
		os.Exit(2)
	}
	chart := readFile(filepath.Join(os.Args[1], "Chart.yaml"))
	all := readFile(filepath.Join(os.Args[1], "values.yaml"))
	for _, assignment := range os.Args[2:] {
		set(all, assignment)
	}
	data := values{
		"Values":  all,
		"Release": values{"Name": "tcpx", "Namespace": "default"},
		"Chart":   values{"Name": chart["name"], "Version": chart["version"], "AppVersion": chart["appVersion"]},
	}
	paths, err := filepath.Glob(filepath.Join(os.Args[1], "templates", "*"))
	check(err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		check(err)
		parsed, err := template.New(path).Funcs(functions()).Option("missingkey=error").Parse(string(text))
		check(err)
		var out bytes.Buffer
		check(parsed.Execute(&out, data))
		if strings.HasSuffix(path, ".yaml") && strings.TrimSpace(out.String()) != "" {
			fmt.Printf("---\n# Source: %s\n%s", filepath.Base(path), strings.TrimLeft(out.String(), "\n"))
		}
	}
}
