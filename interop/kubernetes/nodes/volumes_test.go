package nodes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAVolumeIsReplacedAtOnce(t *testing.T) {
	m := &mounted{folder: t.TempDir()}
	for _, content := range []files{
		{"a": {[]byte("1"), 0o644}, "below/b": {[]byte("2"), 0o600}},
		{"a": {[]byte("3"), 0o644}},
	} {
		if err := m.write(content); err != nil {
			t.Fatal(err)
		}
		for path, one := range content {
			path = filepath.Join(m.folder, path)
			text, err := os.ReadFile(path)
			if err != nil || string(text) != string(one.content) {
				t.Errorf("%s: %q, %v", path, text, err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode() != one.mode {
				t.Errorf("%s: %v, %v", path, info, err)
			}
		}
	}
	if _, err := os.Lstat(filepath.Join(m.folder, "below")); !os.IsNotExist(err) {
		t.Errorf("a removed file is left: %v", err)
	}
	if found, err := os.ReadDir(m.folder); err != nil || len(found) != 3 {
		t.Errorf("not only a, ..data and the folder of its target: %v, %v", found, err)
	}
}

func TestASubPathIsAFileOrAFolder(t *testing.T) {
	content := files{"a": {[]byte("1"), 0o644}, "below/b": {[]byte("2"), 0o644}}
	folder := t.TempDir()
	for subPath, expected := range map[string]string{"a": "file", "below": "folder/b"} {
		target, _, _ := strings.Cut(expected, "/")
		if err := writeSubPath(filepath.Join(folder, target), content, subPath); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(folder, expected)); err != nil {
			t.Error(err)
		}
	}
	if err := writeSubPath(folder, content, "c"); err == nil {
		t.Error("no error for a subPath that does not exist")
	}
}
