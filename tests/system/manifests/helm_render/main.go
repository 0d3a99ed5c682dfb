// helm_render renders a chart as `helm template` does, as far as manifests/helm/railhead uses Helm: values, templates with
// Debian's sprig and Helm's own functions, the chart's files, NOTES.txt. Helm itself is in no package of Debian.
//
//	helm_render [-namespace NAME] [-name NAME] [-values | -notes] CHART [VALUES.yaml...]
//
// stdout: the objects, each behind "---" and "# Source: FILE"; with -values the values that the templates see, as JSON; with
// -notes NOTES.txt.
// exit status: 0; 1 with a reason on stderr, as where a template fails; 2 wrong command line.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type object = map[string]interface{}

// ---- values ------------------------------------------------------------------------------

// merge puts values over defaults. Over a default null removes the key, as Helm does it.
func merge(defaults, values object) object {
	result := object{}
	for key, value := range defaults {
		result[key] = value
	}
	for key, value := range values {
		old, known := defaults[key]
		oldMap, wasMap := old.(object)
		newMap, isMap := value.(object)
		switch {
		case wasMap && isMap:
			result[key] = merge(oldMap, newMap)
		case known && value == nil:
			delete(result, key)
		default:
			result[key] = value
		}
	}
	return result
}

// overlay puts one file of values over another one; null stays, for merge.
func overlay(below, above object) object {
	result := object{}
	for key, value := range below {
		result[key] = value
	}
	for key, value := range above {
		belowMap, wasMap := result[key].(object)
		aboveMap, isMap := value.(object)
		if wasMap && isMap {
			result[key] = overlay(belowMap, aboveMap)
		} else {
			result[key] = value
		}
	}
	return result
}

func readValues(file string) (object, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	values := object{}
	// Strict: a key that stands twice is an error.
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return values, nil
}

// ---- the chart's files -------------------------------------------------------------------

type files map[string][]byte

// readFiles follows links, as Helm does it when it loads or packages a chart.
func readFiles(root string) (files, error) {
	result := files{}
	var read func(name string) error
	read = func(name string) error {
		entries, err := os.ReadDir(filepath.Join(root, name))
		if err != nil {
			return err
		}
		for _, entry := range entries {
			below := path.Join(name, entry.Name())
			info, err := os.Stat(filepath.Join(root, below))
			if err != nil {
				return err
			}
			if info.IsDir() {
				err = read(below)
			} else {
				result[below], err = os.ReadFile(filepath.Join(root, below))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return result, read("")
}

func (f files) Get(name string) string { return string(f[name]) }

func (f files) Glob(pattern string) files {
	result := files{}
	for name, text := range f {
		if matches, err := path.Match(pattern, name); err == nil && matches {
			result[name] = text
		}
	}
	return result
}

func (f files) AsConfig() string {
	result := map[string]string{}
	for name, text := range f {
		result[path.Base(name)] = string(text)
	}
	return toYaml(result)
}

// ---- functions ---------------------------------------------------------------------------

func toYaml(value interface{}) string {
	text, err := yaml.Marshal(value)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(text), "\n")
}

// fromText decodes YAML, or JSON, which is YAML. Helm hides the error in the result; here it ends the rendering.
func fromText[T any](text string) (T, error) {
	var value T
	err := yaml.Unmarshal([]byte(text), &value)
	return value, err
}

func functions(t *template.Template) template.FuncMap {
	result := sprig.TxtFuncMap()
	delete(result, "env")
	delete(result, "expandenv")
	include := func(name string, data interface{}) (string, error) {
		var out strings.Builder
		err := t.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	helms := template.FuncMap{
		"include":       include,
		"toYaml":        toYaml,
		"fromYaml":      fromText[object],
		"fromJson":      fromText[object],
		"fromYamlArray": fromText[[]interface{}],
		"fromJsonArray": fromText[[]interface{}],
		"fail":          func(message string) (string, error) { return "", errors.New(message) },
		"lookup":        func(_, _, _, _ string) object { return object{} },
		"required": func(message string, value interface{}) (interface{}, error) {
			if value == nil || value == "" {
				return nil, errors.New(message)
			}
			return value, nil
		},
		"tpl": func(text string, data interface{}) (string, error) {
			clone, err := t.Clone()
			if err != nil {
				return "", err
			}
			parsed, err := clone.New("tpl").Parse(text)
			if err != nil {
				return "", err
			}
			var out strings.Builder
			err = parsed.Execute(&out, data)
			return out.String(), err
		},
	}
	for name, function := range helms {
		result[name] = function
	}
	return result
}

// ---- rendering ---------------------------------------------------------------------------

type request struct {
	name, namespace, chart string
	values                 []string
	onlyValues, onlyNotes  bool
}

type versions []string

func (v versions) Has(version string) bool { return false }

func top(r request, chart files) (object, error) {
	about, defaults, given := object{}, object{}, object{}
	if err := yaml.Unmarshal(chart["Chart.yaml"], &about); err != nil {
		return nil, fmt.Errorf("Chart.yaml: %w", err)
	}
	if err := yaml.UnmarshalStrict(chart["values.yaml"], &defaults); err != nil {
		return nil, fmt.Errorf("values.yaml: %w", err)
	}
	for _, file := range r.values {
		values, err := readValues(file)
		if err != nil {
			return nil, err
		}
		given = overlay(given, values)
	}
	titled := object{}
	for key, value := range about {
		titled[strings.ToUpper(key[:1])+key[1:]] = value
	}
	// What is below templates/ is no file to the templates.
	visible := files{}
	for name, text := range chart {
		if !strings.HasPrefix(name, "templates/") {
			visible[name] = text
		}
	}
	return object{
		"Values":       merge(defaults, given),
		"Chart":        titled,
		"Release":      object{"Name": r.name, "Namespace": r.namespace, "Service": "Helm", "IsInstall": true, "IsUpgrade": false, "Revision": 1},
		"Files":        visible,
		"Capabilities": object{"KubeVersion": object{"Version": "v1.30.0", "Major": "1", "Minor": "30"}, "APIVersions": versions{}},
	}, nil
}

func render(r request, out io.Writer) error {
	chart, err := readFiles(r.chart)
	if err != nil {
		return err
	}
	data, err := top(r, chart)
	if err != nil {
		return err
	}
	if r.onlyValues {
		return json.NewEncoder(out).Encode(data["Values"])
	}
	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(functions(all))
	var names []string
	for name, text := range chart {
		if !strings.HasPrefix(name, "templates/") {
			continue
		}
		if _, err := all.New(name).Parse(string(text)); err != nil {
			return err
		}
		if !strings.HasPrefix(path.Base(name), "_") {
			names = append(names, name)
		}
	}
	// Helm's order: of several templates that fail, the last by name says so.
	sort.Sort(sort.Reverse(sort.StringSlice(names)))
	document := regexp.MustCompile(`(?m)^---\s*$`)
	for _, name := range names {
		data["Template"] = object{"Name": name, "BasePath": "templates"}
		var text strings.Builder
		if err := all.ExecuteTemplate(&text, name, data); err != nil {
			return err
		}
		// As Helm does it for missing keys.
		said := strings.ReplaceAll(text.String(), "<no value>", "")
		if isNotes := name == "templates/NOTES.txt"; isNotes || r.onlyNotes {
			if isNotes && r.onlyNotes {
				fmt.Fprintln(out, strings.TrimSpace(said))
			}
			continue
		}
		for _, part := range document.Split(said, -1) {
			if value, err := fromText[object](part); err != nil {
				return fmt.Errorf("%s: %w in\n%s", name, err, part)
			} else if len(value) > 0 {
				fmt.Fprintf(out, "---\n# Source: %s\n%s\n", name, strings.Trim(part, "\n"))
			}
		}
	}
	return nil
}

func main() {
	var r request
	flag.StringVar(&r.name, "name", "railhead", "name of the release")
	flag.StringVar(&r.namespace, "namespace", "railhead", "namespace of the release")
	flag.BoolVar(&r.onlyValues, "values", false, "print the values")
	flag.BoolVar(&r.onlyNotes, "notes", false, "print NOTES.txt")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	r.chart, r.values = flag.Arg(0), flag.Args()[1:]
	if err := render(r, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "helm_render: %v\n", err)
		os.Exit(1)
	}
}
