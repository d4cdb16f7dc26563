// Reads objects from files.

package objects

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// extensions are those of the files that are read from folders.
var extensions = []string{".yaml", ".yml", ".json"}

// paths are the values of -f: files, folders, or - for the standard input.
type paths []string

func (p *paths) String() string { return "" }

func (p *paths) Set(value string) error {
	*p = append(*p, value)
	return nil
}

// source is an object of a file.
type source struct {
	*unstructured.Unstructured
	file string
}

// read returns the objects of files and folders, in the order of the paths; the files of a folder are sorted by name.
// Folders below a folder are left out.
func read(all []string) ([]source, error) {
	var found []source
	for _, path := range all {
		files, err := filesOf(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			objects, err := readFile(file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			found = append(found, objects...)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no objects in %v", all)
	}
	return found, nil
}

func filesOf(path string) ([]string, error) {
	if path == "-" {
		return []string{"/dev/stdin"}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && slices.Contains(extensions, filepath.Ext(entry.Name())) {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	return files, nil
}

func readFile(path string) ([]source, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var found []source
	documents := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(object)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		switch {
		case len(object.Object) == 0:
		case object.IsList():
			list, err := object.ToList()
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				found = append(found, source{&list.Items[i], path})
			}
		default:
			found = append(found, source{object, path})
		}
	}
}
