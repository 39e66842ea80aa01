#include "detector/camera/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

enum {
    NOBODY = 65534,
    FILES_MAX = 64,
    MEMORY_MAX_MIB = 3696, /* sixteen reference pictures of the largest size, and the ring */
    FILE_MAX_MIB = 720,    /* standard error may be a log that has grown */
    SOCKET_FLAGS = SOCK_CLOEXEC | SOCK_NONBLOCK,
    IOCTL_TYPE = 0xff00,
};

/* Every other call fails with EPERM, so that an unforeseen call of a library costs a feature, not
 * the process. */
static const int allowed[] = {
    SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(write), SCMP_SYS(writev),
    SCMP_SYS(lseek), SCMP_SYS(close), SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(stat),
    SCMP_SYS(lstat), SCMP_SYS(statx), SCMP_SYS(fstatfs), SCMP_SYS(access), SCMP_SYS(faccessat),
    SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getdents64),
    /* memory */
    SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(mprotect), SCMP_SYS(madvise),
    SCMP_SYS(brk), SCMP_SYS(membarrier),
    /* time and waiting */
    SCMP_SYS(futex), SCMP_SYS(nanosleep), SCMP_SYS(clock_nanosleep), SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_getres), SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(poll), SCMP_SYS(ppoll),
    SCMP_SYS(select), SCMP_SYS(pselect6), SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl),
    SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(pipe2), SCMP_SYS(eventfd2),
    SCMP_SYS(sched_yield), SCMP_SYS(restart_syscall),
    /* the network; see also allow_sockets and allow_connections */
    SCMP_SYS(socketpair), SCMP_SYS(bind), SCMP_SYS(getsockname), SCMP_SYS(getpeername),
    SCMP_SYS(getsockopt), SCMP_SYS(recvfrom), SCMP_SYS(recvmsg), SCMP_SYS(recvmmsg),
    SCMP_SYS(shutdown),
    /* the process itself */
    SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack),
    SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getppid), SCMP_SYS(getuid), SCMP_SYS(geteuid),
    SCMP_SYS(getgid), SCMP_SYS(getegid), SCMP_SYS(getrandom), SCMP_SYS(sched_getaffinity),
    SCMP_SYS(sysinfo), SCMP_SYS(uname), SCMP_SYS(getrlimit), SCMP_SYS(getrusage),
    SCMP_SYS(arch_prctl), SCMP_SYS(rseq), SCMP_SYS(set_robust_list), SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    /* for confine_stream */
    SCMP_SYS(prctl), SCMP_SYS(seccomp)};

/* Of graphics drivers. Without one there is no file in memory, which RLIMIT_AS would not count. */
static const int drivers[] = {SCMP_SYS(ioctl), SCMP_SYS(memfd_create), SCMP_SYS(ftruncate)};

/* No library of ours makes these calls: they come from code that has taken the process over. */
static const int deadly[] = {
    SCMP_SYS(execve),
    SCMP_SYS(execveat),
    SCMP_SYS(fork),
    SCMP_SYS(vfork),
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(mount),
    SCMP_SYS(setns),
    SCMP_SYS(unshare),
    SCMP_SYS(bpf),
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(keyctl),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(io_uring_setup),
};

/* These are refused once the stream is open. */
static const int finished[] = {
    SCMP_SYS(socket),     SCMP_SYS(socketpair), SCMP_SYS(connect),   SCMP_SYS(bind),
    SCMP_SYS(open),       SCMP_SYS(openat),     SCMP_SYS(readlink),  SCMP_SYS(readlinkat),
    SCMP_SYS(getdents64), SCMP_SYS(access),     SCMP_SYS(faccessat), SCMP_SYS(faccessat2),
    SCMP_SYS(stat),       SCMP_SYS(lstat),      SCMP_SYS(prctl),     SCMP_SYS(seccomp),
};

/* The first rule that cannot be added is why it is not loaded; then no other one is tried. */
struct filter {
    scmp_filter_ctx rules;
    int rc;
};

static struct filter begin(uint32_t otherwise)
{
    scmp_filter_ctx rules = seccomp_init(otherwise);

    return (struct filter){rules, rules == NULL ? -ENOMEM : 0};
}

/* The rule holds where argument `index`, masked, has that value. */
static struct scmp_arg_cmp where(unsigned index, uint64_t mask, uint64_t value)
{
    return SCMP_CMP(index, SCMP_CMP_MASKED_EQ, mask, value);
}

static struct scmp_arg_cmp equal(unsigned index, int64_t value)
{
    return SCMP_CMP(index, SCMP_CMP_EQ, (scmp_datum_t)value);
}

/* `count` comparisons of arguments follow, which all must hold. A call that this architecture does
 * not have is no error. */
static void add(struct filter *filter, uint32_t action, int call, unsigned count, ...)
{
    struct scmp_arg_cmp arguments[3];
    va_list list;

    va_start(list, count);
    for (unsigned i = 0; i < count; i++) {
        arguments[i] = va_arg(list, struct scmp_arg_cmp);
    }
    va_end(list);
    if (filter->rc == 0) {
        filter->rc = seccomp_rule_add_array(filter->rules, action, call, count, arguments);
        filter->rc = filter->rc == -EDOM || filter->rc == -EACCES ? 0 : filter->rc;
    }
}

static void add_all(struct filter *filter, uint32_t action, const int *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        add(filter, action, calls[i], 0);
    }
}

/* These commands of fcntl() set no owner: the kernel sends the owner of a descriptor, which can be
 * any process, a signal of the caller's choice. */
static const int file_commands[] = {
    F_DUPFD,     F_DUPFD_CLOEXEC, F_GETFD,      F_SETFD,      F_GETFL,     F_SETFL,
    F_GETLK,     F_SETLK,         F_SETLKW,     F_OFD_GETLK,  F_OFD_SETLK, F_OFD_SETLKW,
    F_ADD_SEALS, F_GET_SEALS,     F_SETPIPE_SZ, F_GETPIPE_SZ,
};

/* An internet socket is of TCP or UDP: others take an address in calls that are not filtered. */
static const struct {
    int family, type;
} sockets[] = {
    {AF_INET, SOCK_STREAM}, {AF_INET, SOCK_DGRAM}, {AF_INET6, SOCK_STREAM}, {AF_INET6, SOCK_DGRAM}};

/* All options of SOL_SOCKET and TCP, and those that the C library sets to look names up. An option
 * with a route would send packets by way of another address. */
static const struct {
    int level, option; /* -1: any */
} socket_options[] = {{SOL_SOCKET, -1},
                      {IPPROTO_TCP, -1},
                      {IPPROTO_IP, IP_RECVERR},
                      {IPPROTO_IPV6, IPV6_RECVERR},
                      {IPPROTO_IPV6, IPV6_V6ONLY}};

/* Sockets of other programs on this machine have no port, so they are refused: names are looked up
 * in /etc/hosts and by DNS, not by a daemon. With netlink the C library learns the machine's
 * addresses. */
static void allow_sockets(struct filter *filter)
{
    add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, equal(0, AF_NETLINK), equal(2, NETLINK_ROUTE));
    for (size_t i = 0; i < 2 * sizeof(sockets) / sizeof(sockets[0]); i++) {
        int type = sockets[i / 2].type;
        int protocol = i % 2 == 0 ? 0 : type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
        add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 3, equal(0, sockets[i / 2].family),
            where(1, ~(scmp_datum_t)SOCKET_FLAGS, (scmp_datum_t)type), equal(2, protocol));
    }
    for (size_t i = 0; i < sizeof(socket_options) / sizeof(socket_options[0]); i++) {
        add(filter, SCMP_ACT_ALLOW, SCMP_SYS(setsockopt), socket_options[i].option < 0 ? 1 : 2,
            equal(1, socket_options[i].level), equal(2, socket_options[i].option));
    }
}

/* A process with a broker passes each address to it. It sends no messages, which can hold one. The
 * broker reads a system call of another process and answers it, and puts a tunnel in the place of a
 * socket. */
static void allow_connections(struct filter *filter, const struct confinement *confinement)
{
    static const int calls[] = {SCMP_SYS(connect), SCMP_SYS(sendto), SCMP_SYS(sendmsg),
                                SCMP_SYS(sendmmsg)};

    if (confinement->broker != 0) {
        add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(connect), 0);
        add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(sendto), 1, SCMP_A4(SCMP_CMP_NE, 0));
        add(filter, SCMP_ACT_ALLOW, SCMP_SYS(sendto), 1, equal(4, 0));
        return;
    }
    add_all(filter, SCMP_ACT_ALLOW, calls, sizeof(calls) / sizeof(calls[0]));
    if (confinement->is_broker) {
        add(filter, SCMP_ACT_ALLOW, SCMP_SYS(dup3), 0);
        add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, equal(1, SECCOMP_IOCTL_NOTIF_RECV));
        add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, equal(1, SECCOMP_IOCTL_NOTIF_SEND));
    }
}

static void allow_by_argument(struct filter *filter, const struct confinement *confinement)
{
    static const int controls[] = {FIONBIO, FIONREAD, TCGETS};
    uint64_t writing = confinement->uses_hardware ? 0 : O_ACCMODE | O_CREAT | O_TRUNC;

    add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, where(2, writing, O_RDONLY));
    add(filter, SCMP_ACT_ALLOW, SCMP_SYS(open), 1, where(1, writing, O_RDONLY));
    /* abort() sends a signal to this process; no other process gets one. */
    add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, equal(0, getpid()));
    for (size_t i = 0; i < sizeof(file_commands) / sizeof(file_commands[0]); i++) {
        add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1, equal(1, file_commands[i]));
    }
    for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++) {
        add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, equal(1, controls[i]));
    }
    /* The limits can be read, not set; that of memory can be lower for a while. */
    add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1, equal(2, 0));
    add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2, equal(0, 0), equal(1, RLIMIT_AS));
    /* Threads are allowed (libcurl looks names up in one), processes are not. clone3 has its flags
     * behind a pointer; if it is missing, the C library uses clone. */
    add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, where(0, CLONE_THREAD, CLONE_THREAD));
    add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
}

static int refuse(struct baton_error *reterr, int error)
{
    return error_set(reterr, BATON_EUNAVAILABLE, "seccomp: %s; a camera is not opened unconfined",
                     strerror(error));
}

/* Loads it if all rules were added, and tells the broker (0: none) where it is asked. libseccomp's
 * error is of another step. */
static int load(struct filter *filter, int broker, struct baton_error *reterr)
{
    int rc = filter->rc != 0 ? filter->rc : seccomp_load(filter->rules);

    if (rc == 0 && broker != 0) {
        int listener = seccomp_notify_fd(filter->rules);
        (void)!write(broker, &listener, sizeof(listener));
    }
    seccomp_release(filter->rules);
    if (rc != 0 && rc != -ENOMEM && broker != 0) {
        return error_set(reterr, BATON_EUNAVAILABLE,
                         "seccomp: connections cannot be checked: the kernel is older than 5.0, or "
                         "the runtime of this container listens to system calls itself");
    }
    return rc == 0 ? 0 : refuse(reterr, -rc);
}

/* An answer at its listener could replace the broker. */
static int filter_brokered(struct baton_error *reterr)
{
    struct filter filter = begin(SCMP_ACT_ALLOW);

    add(&filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
        where(1, IOCTL_TYPE, SECCOMP_IOC_MAGIC << 8));
    return load(&filter, 0, reterr);
}

static int filter_process(const struct confinement *confinement, struct baton_error *reterr)
{
    struct filter filter = begin(SCMP_ACT_ERRNO(EPERM));
    int rc;

    add_all(&filter, SCMP_ACT_ALLOW, allowed, sizeof(allowed) / sizeof(allowed[0]));
    add_all(&filter, SCMP_ACT_KILL_PROCESS, deadly, sizeof(deadly) / sizeof(deadly[0]));
    allow_by_argument(&filter, confinement);
    allow_sockets(&filter);
    allow_connections(&filter, confinement);
    if (confinement->uses_hardware) {
        add_all(&filter, SCMP_ACT_ALLOW, drivers, sizeof(drivers) / sizeof(drivers[0]));
    }
    rc = load(&filter, confinement->broker, reterr);
    return rc || confinement->broker == 0 ? rc : filter_brokered(reterr);
}

int confine_stream(const struct confinement *confinement, struct baton_error *reterr)
{
    struct filter filter = begin(SCMP_ACT_ALLOW);
    uint32_t no = SCMP_ACT_ERRNO(EPERM);

    add_all(&filter, no, finished, sizeof(finished) / sizeof(finished[0]));
    if (!confinement->uses_hardware) {
        /* No thread starts, and no memory can be both filled and run. */
        add(&filter, no, SCMP_SYS(clone), 0);
        add(&filter, no, SCMP_SYS(mmap), 1, where(2, PROT_EXEC, PROT_EXEC));
        add(&filter, no, SCMP_SYS(mprotect), 1, where(2, PROT_EXEC, PROT_EXEC));
    }
    if (!confinement->uses_udp) {
        add(&filter, no, SCMP_SYS(sendto), 1, SCMP_A4(SCMP_CMP_NE, 0));
    }
    return load(&filter, 0, reterr);
}

static void limit(int resource, rlim_t most)
{
    struct rlimit limits = {.rlim_cur = most, .rlim_max = most};

    (void)setrlimit((__rlimit_resource_t)resource, &limits); /* lower is always allowed */
}

static void limit_all(const struct confinement *confinement)
{
    limit(RLIMIT_CORE, 0); /* a core would hold the password */
    limit(RLIMIT_NOFILE, FILES_MAX);
    limit(RLIMIT_FSIZE, (rlim_t)FILE_MAX_MIB << 20);
    limit(RLIMIT_MSGQUEUE, 0);
    if (!IS_SANITIZED && !confinement->uses_hardware) { /* both map terabytes that they never use */
        limit(RLIMIT_AS, (rlim_t)MEMORY_MAX_MIB << 20);
    }
}

/* Root becomes the user nobody. A driver's devices may be open to a group only, so groups stay for
 * hardware. */
static int drop_root(const struct confinement *confinement, struct baton_error *reterr)
{
    if (geteuid() != 0) {
        return 0;
    }
    if ((!confinement->uses_hardware &&
         (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0)) ||
        setresuid(NOBODY, NOBODY, NOBODY) != 0) {
        return error_set(reterr, BATON_EUNAVAILABLE, "user nobody: %s", strerror(errno));
    }
    return 0;
}

int confine_process(const struct confinement *confinement, struct baton_error *reterr)
{
    int rc = drop_root(confinement, reterr);

    if (rc != 0) {
        return rc;
    }
    limit_all(confinement);
    /* A change of user undoes these two. A parent that has died since shows at the socket. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0) {
        return refuse(reterr, errno);
    }
    if (confinement->broker == 0) {
        landlock_restrict(confinement);
    }
    return filter_process(confinement, reterr);
}
