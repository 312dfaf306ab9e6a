package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// document is one YAML or JSON document of a file.
type document struct {
	file string
	line int // of the file, at which the text begins
	text []byte
	json []byte

	root *yamlnode.Node // parsed when a line is asked for
}

// documents splits a file, and leaves out what is empty.
func (in *Input) documents(f file) []*document {
	if trimmed := bytes.TrimSpace(f.text); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		if all, ok := in.jsonDocuments(f); ok {
			return all
		}
	}
	var all []*document
	for _, d := range split(f) {
		converted, ok := in.convert(d)
		if ok && !bytes.Equal(converted, []byte("null")) {
			d.json = converted
			all = append(all, d)
		}
	}
	return all
}

// jsonDocuments splits a file of JSON values. It is false where the file is
// YAML that only begins like JSON.
func (in *Input) jsonDocuments(f file) ([]*document, bool) {
	decoder := json.NewDecoder(bytes.NewReader(f.text))
	var all []*document
	for {
		begin := decoder.InputOffset()
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return all, true
		}
		if err != nil {
			if len(all) == 0 && yaml.Unmarshal(f.text, new(any)) == nil {
				return nil, false
			}
			at := begin
			if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
				at = max(begin, min(syntax.Offset, int64(len(f.text))))
			}
			in.bad(Place{f.name, lineAt(f.text, at)}, "%v", err)
			return all, true
		}
		begin += int64(len(f.text[begin:]) - len(bytes.TrimLeft(f.text[begin:], " \t\r\n")))
		all = append(all, &document{file: f.name, line: lineAt(f.text, begin), text: raw, json: raw})
	}
}

// lineAt is the number of the line that an offset is in.
func lineAt(text []byte, offset int64) int {
	return 1 + bytes.Count(text[:offset], []byte("\n"))
}

// split cuts a file of YAML at the lines that begin with ---. What else is on
// such a line belongs to the document that it begins.
func split(f file) []*document {
	var all []*document
	current := &document{file: f.name, line: 1}
	number := 0
	for line := range bytes.Lines(f.text) {
		number++
		rest, cut := bytes.CutPrefix(line, []byte("---"))
		if cut && (len(bytes.TrimSpace(rest)) == 0 || rest[0] == ' ' || rest[0] == '\t') {
			all = append(all, current)
			current = &document{file: f.name, line: number, text: append([]byte("   "), rest...)}
			continue
		}
		current.text = append(current.text, line...)
	}
	return append(all, current)
}

// convert makes JSON of a document.
func (in *Input) convert(d *document) ([]byte, bool) {
	strict, problem := yaml.YAMLToJSONStrict(d.text)
	if problem == nil {
		return strict, true
	}
	line, text := d.explain(problem)
	converted, err := yaml.YAMLToJSON(d.text)
	if err != nil {
		if bytes.Contains(d.text, []byte("{{")) {
			text = "this looks like a template, not yet rendered"
		}
		in.bad(Place{d.file, line}, "%s", text)
		return nil, false
	}
	in.note(Place{d.file, line}, "%s: the last one counts", text)
	return converted, true
}

// explain takes the line out of an error of the YAML parser.
func (d *document) explain(err error) (line int, text string) {
	text = strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	text = strings.TrimPrefix(text, "yaml: ")
	text = strings.TrimSpace(strings.TrimPrefix(text, "unmarshal errors:"))
	text, _, _ = strings.Cut(text, "\n") // the first is enough
	found := regexp.MustCompile(`line (\d+): `).FindStringSubmatchIndex(text)
	if found == nil {
		return d.begin(), text
	}
	number, _ := strconv.Atoi(text[found[2]:found[3]]) //nolint:errcheck // it is digits
	return d.at(number), text[:found[0]] + text[found[1]:]
}

// at is the line of the file for one of the document. YAML knows more line
// ends than editors do, and some parsers count one too many.
func (d *document) at(line int) int {
	last := bytes.Count(bytes.TrimSuffix(d.text, []byte("\n")), []byte("\n"))
	return d.line + max(0, min(line-1, last))
}

// begin is the line of the first text that is no comment.
func (d *document) begin() int {
	number := d.line
	for line := range bytes.Lines(d.text) {
		if content := bytes.TrimSpace(line); len(content) > 0 && content[0] != '#' {
			return number
		}
		number++
	}
	return d.line
}

// node is the document's text as a tree that knows lines; nil where it cannot
// be parsed that way.
func (d *document) node() *yamlnode.Node {
	if d.root == nil {
		var parsed yamlnode.Node
		if err := yamlnode.Unmarshal(d.text, &parsed); err != nil || len(parsed.Content) == 0 {
			return nil
		}
		d.root = parsed.Content[0]
	}
	return d.root
}
