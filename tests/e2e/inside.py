"""Becomes process 1 of a container, as an engine makes it, and then the program of its image.

usage: inside.py ROOT SPEC

Runs as process 1 of new PID, mount, UTS and IPC namespaces (unshare(1)). ROOT is an empty folder,
and SPEC is JSON: `mounts` of [source, target, may be written], `files` by path, `uid`, `gid`,
`groups`, `env`, `words`, `name`. What is left to the program is what engines leave by default, and
less: a root that cannot be written, no capability, no new privileges, and a filter of system
calls.
"""
import ctypes
import json
import os
import sys

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC = 1, 2, 4, 32, 4096, 16384
MS_PRIVATE, MNT_DETACH = 1 << 18, 2
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 24, 38, 47, 4
SCMP_ACT_ALLOW, EPERM, ENOSYS = 0x7FFF0000, 1, 38
SCMP_CMP_MASKED_EQ = 7
# CLONE_NEWNS and the other namespaces
NAMESPACES = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)

# What the default filters of Docker, Podman and containerd refuse to a container without
# capabilities.
DENIED = """
acct add_key bpf clock_adjtime clock_settime delete_module fanotify_init finit_module fsconfig
fsmount fsopen fspick get_mempolicy init_module io_uring_enter io_uring_register io_uring_setup
ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie mbind mount mount_setattr
move_mount move_pages open_by_handle_at open_tree perf_event_open pidfd_getfd pivot_root
process_madvise process_vm_readv process_vm_writev ptrace quotactl quotactl_fd reboot request_key
set_mempolicy setdomainname sethostname setns settimeofday swapoff swapon syslog umount umount2
unshare userfaultfd uselib vhangup
""".split()

# Python's own library may not be in the image: everything is loaded before the root changes.
libc = ctypes.CDLL(None, use_errno=True)
seccomp = ctypes.CDLL("libseccomp.so.2", use_errno=True)
seccomp.seccomp_init.restype = ctypes.c_void_p


def call(name, *words):
    if getattr(libc, name)(*words) != 0:
        raise OSError(ctypes.get_errno(), "%s%r" % (name, words))


def mount(source, target, kind, flags, data=None):
    call("mount", source.encode(), target.encode(), kind.encode() if kind else None,
         ctypes.c_ulong(flags), data.encode() if data else None)


def place(source, target, writable):
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        open(target, "wb").close()
    mount(source, target, None, MS_BIND | MS_REC)
    if not writable:
        mount("none", target, None, MS_BIND | MS_REMOUNT | MS_RDONLY)


def furnish(root, spec):
    """The file system of the image, and the volumes in it."""
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", root, "tmpfs", 0, "mode=755")
    for name in ("bin", "sbin", "lib", "lib64"):
        if os.path.islink("/" + name):
            os.symlink("usr/" + name, os.path.join(root, name))
        elif os.path.isdir("/" + name):
            place("/" + name, os.path.join(root, name), False)
    place("/usr", root + "/usr", False)
    for path, text in spec["files"].items():
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        with open(root + path, "w", encoding="utf-8") as file:
            file.write(text)
    for name in ("null", "zero", "full", "random", "urandom"):
        place("/dev/" + name, root + "/dev/" + name, True)
    for name in ("proc", "tmp", "run", "etc"):
        os.makedirs(os.path.join(root, name), exist_ok=True)
    mount("proc", root + "/proc", "proc", MS_NOSUID | MS_NODEV)
    for source, target, writable in spec["mounts"]:
        place(source, root + target, writable)
    mount("none", root, None, MS_REMOUNT | MS_RDONLY)
    os.chdir(root)
    call("syscall", ctypes.c_long(libc_number("pivot_root")), b".", b".")
    call("umount2", b".", MNT_DETACH)
    os.chdir("/")


def libc_number(name):
    number = seccomp.seccomp_syscall_resolve_name(name.encode())
    if number < 0:
        raise OSError("%s: no such system call here" % name)
    return number


class Argument(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("mask", ctypes.c_uint64),
                ("value", ctypes.c_uint64)]


def refuse(filters, action, name, *arguments):
    number = seccomp.seccomp_syscall_resolve_name(name.encode())
    array = (Argument * max(1, len(arguments)))(*arguments)
    if number >= 0 and seccomp.seccomp_rule_add_array(
            ctypes.c_void_p(filters), ctypes.c_uint32(0x00050000 | action), number,
            len(arguments), array) != 0:
        raise OSError("seccomp: no rule for %s" % name)


def filter_calls():
    filters = seccomp.seccomp_init(ctypes.c_uint32(SCMP_ACT_ALLOW))
    for name in DENIED:
        refuse(filters, EPERM, name)
    for bit in NAMESPACES:
        refuse(filters, EPERM, "clone", Argument(0, SCMP_CMP_MASKED_EQ, bit, bit))
    refuse(filters, ENOSYS, "clone3")  # its flags lie in memory: so do the engines
    if seccomp.seccomp_load(ctypes.c_void_p(filters)) != 0:
        raise OSError("seccomp: the filter is not taken")


def give_up(spec):
    for number in range(spec["last_capability"] + 1):
        call("prctl", PR_CAPBSET_DROP, number, 0, 0, 0)
    call("prctl", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    os.setgroups(spec["groups"])
    os.setresgid(spec["gid"], spec["gid"], spec["gid"])
    os.setresuid(spec["uid"], spec["uid"], spec["uid"])
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    filter_calls()


def main():
    root, spec = sys.argv[1], json.loads(sys.argv[2])
    with open("/proc/sys/kernel/cap_last_cap", encoding="ascii") as file:
        spec["last_capability"] = int(file.read())
    call("sethostname", spec["name"].encode(), len(spec["name"]))
    furnish(root, spec)
    os.umask(0o022)
    give_up(spec)
    os.execvpe(spec["words"][0], spec["words"], spec["env"])


if __name__ == "__main__":
    main()
