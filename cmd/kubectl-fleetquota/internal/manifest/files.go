package manifest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// stdin is the path that stands for standard input.
const stdin = "-"

// file is the text of one file.
type file struct {
	name string
	text []byte
}

// files reads all files of the paths.
func (in *Input) files(paths []string) []file {
	var all []file
	seen := map[string]bool{}
	for _, path := range paths {
		for _, name := range in.find(path) {
			if seen[filepath.Clean(name)] {
				continue // named twice, or in a directory that is named too
			}
			seen[filepath.Clean(name)] = true
			if f, ok := in.load(name); ok {
				all = append(all, f)
			}
		}
	}
	return all
}

// find lists the files of one path.
func (in *Input) find(path string) []string {
	if path == stdin {
		return []string{path}
	}
	if strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://") {
		in.bad(Place{File: path}, "nothing is fetched from the network: download it first")
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		in.bad(Place{File: path}, "%v", reason(err))
		return nil
	case !info.IsDir():
		return []string{path}
	}
	return in.below(path)
}

// below lists the files of a directory and of all below it, but for hidden ones.
func (in *Input) below(directory string) []string {
	var names []string
	err := filepath.WalkDir(directory, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			in.bad(Place{File: name}, "%v", reason(err))
			return nil
		}
		hidden := name != directory && strings.HasPrefix(entry.Name(), ".")
		switch {
		case hidden && entry.IsDir():
			return fs.SkipDir
		case !hidden && !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)):
			names = append(names, name)
		}
		return nil
	})
	if err == nil && len(names) == 0 {
		in.bad(Place{File: directory}, "there is no file *.yaml, *.yml or *.json in it")
	}
	return names
}

// load reads one file.
func (in *Input) load(name string) (file, bool) {
	var text []byte
	var err error
	if name == stdin {
		name = "standard input"
		text, err = io.ReadAll(in.options.In)
	} else {
		text, err = os.ReadFile(name) //nolint:gosec // to read the files that are named is what it is for
	}
	if err != nil {
		in.bad(Place{File: name}, "%v", reason(err))
		return file{}, false
	}
	in.rank(name)
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(text) {
		in.bad(Place{File: name}, "this is not UTF-8 text")
		return file{}, false
	}
	return file{name: name, text: text}, true
}

// reason is an error of the file system without the path, which stands before it.
func reason(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}
