// Volumes, as a container sees them. The layout of files is a kubelet's, so that a program which watches them sees
// the same events:
//
//	FOLDER/..data -> ..2        replaced by a rename when the content changes
//	FOLDER/..2/key              the files
//	FOLDER/key -> ..data/key
//
// With subPath, files are written once, without links: a kubelet does not update them either.

package nodes

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// refreshInterval is how often the content of volumes is compared with the cluster's. A kubelet needs up to two
// minutes.
const refreshInterval = 5 * time.Second

// reserved are the folders that the helper program weir-pod mounts over.
var reserved = []string{"/usr", "/dev", "/proc", "/etc/ssl", "/app"}

// file is a file of a volume.
type file struct {
	content []byte
	mode    os.FileMode
}

// files are the files of a volume by path.
type files map[string]file

// equal reports whether both have the same paths, contents and modes.
func (f files) equal(other files) bool {
	return maps.EqualFunc(f, other, func(a, b file) bool { return a.mode == b.mode && bytes.Equal(a.content, b.content) })
}

// mounted is a volume whose files are kept up to date.
type mounted struct {
	volume  *corev1.Volume
	folder  string
	written files
	// version is the number of the folder that ..data leads to.
	version int
}

// mountVolumes writes the files of the container's volumes below its root folder, and collects the folders that are
// mounted.
func (c *container) mountVolumes(ctx context.Context) error {
	for _, mount := range c.spec.VolumeMounts {
		if err := c.mountVolume(ctx, &mount); err != nil {
			return fmt.Errorf("volume %s: %w", mount.Name, err)
		}
	}
	return nil
}

func (c *container) mountVolume(ctx context.Context, mount *corev1.VolumeMount) error {
	if mount.SubPathExpr != "" {
		return fmt.Errorf("subPathExpr is not supported; use subPath")
	}
	path := filepath.Clean("/" + mount.MountPath)
	for _, folder := range reserved {
		if path == folder || strings.HasPrefix(path, folder+"/") {
			return fmt.Errorf("a mountPath below %s is not supported; use another folder", folder)
		}
	}
	volumes := c.pod.object.Spec.Volumes
	index := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
	if index < 0 {
		return fmt.Errorf("the Pod has no volume of this name")
	}
	volume := &volumes[index]
	if volume.EmptyDir != nil {
		return c.mountEmptyDir(volume, mount, path)
	}
	content, err := volumeFiles(ctx, c.pod, volume)
	if err != nil {
		return err
	}
	folder := filepath.Join(c.root, path)
	if mount.SubPath != "" {
		return writeSubPath(folder, content, mount.SubPath)
	}
	m := &mounted{volume: volume, folder: folder}
	if err := m.write(content); err != nil {
		return err
	}
	c.mounted = append(c.mounted, m)
	return nil
}

// mountEmptyDir adds a folder that all containers of the Pod share.
func (c *container) mountEmptyDir(volume *corev1.Volume, mount *corev1.VolumeMount, path string) error {
	folder := filepath.Join(c.pod.folder(), ".volumes", volume.Name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	// Every user may write to it, as with a kubelet. The umask does not apply to Chmod.
	if err := os.Chmod(folder, 0o777); err != nil {
		return err
	}
	folder = filepath.Join(folder, mount.SubPath)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	c.mounts = append(c.mounts, folder+"="+path)
	return nil
}

// refresh keeps the files of the container's volumes up to date until the context ends.
func (c *container) refresh(ctx context.Context) {
	lastMessage := ""
	for pause(ctx, refreshInterval) {
		for _, m := range c.mounted {
			content, err := volumeFiles(ctx, c.pod, m.volume)
			if err == nil && !content.equal(m.written) {
				err = m.write(content)
			}
			if err == nil || ctx.Err() != nil {
				continue
			}
			// The old files stay.
			if message := err.Error(); message != lastMessage {
				log.Printf("Pod %s: volume %s keeps its files: %s", c.pod.name(), m.volume.Name, message)
				lastMessage = message
			}
		}
	}
}

// write replaces the files of the volume.
func (m *mounted) write(content files) error {
	m.version++
	name := fmt.Sprintf("..%d", m.version)
	if err := writeFiles(filepath.Join(m.folder, name), content); err != nil {
		return err
	}
	data := filepath.Join(m.folder, "..data")
	old, _ := os.Readlink(data)
	temporary := filepath.Join(m.folder, "..data_tmp")
	if err := os.Symlink(name, temporary); err != nil {
		return err
	}
	if err := os.Rename(temporary, data); err != nil {
		return err
	}
	for element := range elements(content) {
		link := filepath.Join(m.folder, element)
		if err := os.Symlink(filepath.Join("..data", element), link); err != nil && !os.IsExist(err) {
			return err
		}
	}
	kept := elements(content)
	for element := range elements(m.written) {
		if !kept[element] {
			if err := os.Remove(filepath.Join(m.folder, element)); err != nil {
				return err
			}
		}
	}
	m.written = content
	if old == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(m.folder, old))
}

// elements are the first elements of the files' paths.
func elements(content files) map[string]bool {
	found := map[string]bool{}
	for path := range content {
		first, _, _ := strings.Cut(path, "/")
		found[first] = true
	}
	return found
}

// writeSubPath writes the file or the folder of a volume to a path of the container.
func writeSubPath(target string, content files, subPath string) error {
	subPath = filepath.Clean(subPath)
	if one, found := content[subPath]; found {
		return writeFiles(filepath.Dir(target), files{filepath.Base(target): one})
	}
	below := files{}
	for path, one := range content {
		if rest, found := strings.CutPrefix(path, subPath+"/"); found {
			below[rest] = one
		}
	}
	if len(below) == 0 {
		return fmt.Errorf("subPath %s does not exist in the volume", subPath)
	}
	return writeFiles(target, below)
}

func writeFiles(folder string, content files) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for path, one := range content {
		target := filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, one.content, one.mode); err != nil {
			return err
		}
		// WriteFile keeps the mode of an existing file, and applies the umask.
		if err := os.Chmod(target, one.mode); err != nil {
			return err
		}
	}
	return nil
}
