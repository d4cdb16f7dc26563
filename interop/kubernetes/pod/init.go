// Prepares a container's file system and executes the command `reap` in it.
//
// The caller has made this process the first one of a new PID namespace, in a new mount namespace with private
// propagation. The mounts end with the process.

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// shared are the host's folders that a container sees. The program's dynamic libraries and its trusted
// certificates are below /usr and /etc/ssl.
var shared = []string{"/usr", "/etc/ssl"}

// devices are the files of the host's /dev that a container sees.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// streams are the links in /dev to the streams of a process.
var streams = map[string]string{
	"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
}

// dropped are capabilities that reach beyond the container's namespaces.
var dropped = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_MKNOD, unix.CAP_SYS_BOOT}

// links are symbolic links into /usr on Debian.
var links = []string{"/bin", "/sbin", "/lib", "/lib64"}

// programs is the folder of the image's program in the container.
const programs = "/app"

// settings are the options of the command `init`.
type settings struct {
	root, directory, hostname, program, user string
	// mounts are folders of the host that the container may write to.
	mounts [][2]string
	// command is the command in the container. An empty first word stands for the image's program.
	command []string
}

func parse(arguments []string) (*settings, error) {
	s := &settings{}
	flags := flag.NewFlagSet("init", flag.ContinueOnError)
	flags.StringVar(&s.root, "root", "", "`FOLDER` that becomes the root folder")
	flags.StringVar(&s.directory, "directory", "/", "working directory in the container")
	flags.StringVar(&s.hostname, "hostname", "", "`NAME` of the host that the container sees")
	flags.StringVar(&s.program, "program", "", "`PATH` of the image's program on the host")
	flags.StringVar(&s.user, "user", rootUser, "`UID:GID` that runs the command")
	flags.Func("mount", "`FOLDER=PATH`: mounts the host's folder, writable; repeatable", func(value string) error {
		folder, path, found := strings.Cut(value, "=")
		if !found {
			return fmt.Errorf("%q is not FOLDER=PATH", value)
		}
		s.mounts = append(s.mounts, [2]string{folder, path})
		return nil
	})
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	s.command = flags.Args()
	if s.root == "" || s.program == "" || len(s.command) == 0 {
		return nil, fmt.Errorf("init needs --root FOLDER, --program PATH and a command")
	}
	if s.command[0] == "" {
		s.command[0] = s.target()
	}
	return s, nil
}

// target is the path of the image's program in the container.
func (s *settings) target() string { return programs + "/" + filepath.Base(s.program) }

// enter changes to the root folder and executes the command `reap` there.
func enter(arguments []string) error {
	s, err := parse(arguments)
	if err != nil {
		return err
	}
	if err := s.prepare(); err != nil {
		return err
	}
	if err := syscall.Sethostname([]byte(s.hostname)); err != nil {
		return fmt.Errorf("the hostname could not be set: %w", err)
	}
	if err := syscall.Chroot(s.root); err != nil {
		return err
	}
	if err := os.Chdir(s.directory); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	// This program is outside of the new root folder; the kernel's link still leads to it.
	err = syscall.Exec("/proc/self/exe", append([]string{"weir-pod", "reap", s.user}, s.command...), os.Environ())
	return fmt.Errorf("weir-pod could not execute itself: %w", err)
}

// prepare mounts what the container sees below the root folder.
func (s *settings) prepare() error {
	for _, folder := range shared {
		if err := bind(folder, s.root+folder, true); err != nil {
			return err
		}
	}
	if err := bindDevices(s.root + "/dev"); err != nil {
		return err
	}
	if err := mountProc(s.root + "/proc"); err != nil {
		return err
	}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil {
			return fmt.Errorf("%s is not a link into /usr: %w; nodes needs Debian's merged /usr", link, err)
		}
		if err := symlink(target, s.root+link); err != nil {
			return err
		}
	}
	// Every user may write to /tmp. The umask does not apply to Chmod.
	if err := os.MkdirAll(s.root+"/tmp", 0o777); err != nil {
		return err
	}
	if err := os.Chmod(s.root+"/tmp", 0o777|os.ModeSticky); err != nil {
		return err
	}
	for _, mount := range s.mounts {
		target := s.root + mount[1]
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount(mount[0], target, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("%s could not be mounted on %s: %w", mount[0], target, err)
		}
	}
	if err := os.MkdirAll(s.root+programs, 0o755); err != nil {
		return err
	}
	return bind(s.program, s.root+s.target(), false)
}

// dropCapabilities prevents the programs that this thread executes from getting the dropped capabilities.
func dropCapabilities() error {
	for _, capability := range dropped {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil {
			return fmt.Errorf("capability %d could not be dropped: %w", capability, err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("the capabilities could not be read: %w", err)
	}
	sets[0].Inheritable, sets[1].Inheritable = 0, 0
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return fmt.Errorf("the inheritable capabilities could not be cleared: %w", err)
	}
	return nil
}

func bindDevices(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, device := range devices {
		if err := bind("/dev/"+device, folder+"/"+device, false); err != nil {
			return err
		}
	}
	for name, target := range streams {
		if err := symlink(target, folder+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

// symlink creates a symbolic link, unless an earlier run of the container has created it.
func symlink(target, path string) error {
	if err := os.Symlink(target, path); err != nil && !os.IsExist(err) {
		return err
	}
	return nil
}

// bind makes a folder or a file of the host visible, read-only, at the target.
func bind(source, target string, folder bool) error {
	if folder {
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
	} else {
		file, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o755)
		if err != nil {
			return err
		}
		file.Close()
	}
	source, err := filepath.EvalSymlinks(source)
	if err != nil {
		return err
	}
	return mountReadOnly(source, target)
}

func mountReadOnly(source, target string) error {
	if err := syscall.Mount(source, target, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("%s could not be mounted on %s: %w", source, target, err)
	}
	if err := syscall.Mount("", target, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("%s could not be made read-only: %w", target, err)
	}
	return nil
}

// mountProc mounts /proc without write access to the kernel's settings.
func mountProc(target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount("proc", target, "proc", 0, ""); err != nil {
		return fmt.Errorf("/proc could not be mounted: %w", err)
	}
	for _, path := range []string{target + "/sys", target + "/sysrq-trigger"} {
		// Not every kernel has sysrq-trigger.
		if _, err := os.Stat(path); os.IsNotExist(err) {
			continue
		}
		if err := mountReadOnly(path, path); err != nil {
			return err
		}
	}
	return nil
}
