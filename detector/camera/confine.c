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

/* A call that this architecture does not have is no error. */
static int add_all(scmp_filter_ctx filter, uint32_t action, const int *calls, size_t count)
{
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = seccomp_rule_add(filter, action, calls[i], 0);
        rc = rc == -EDOM || rc == -EACCES ? 0 : rc;
    }
    return rc;
}

/* The rule holds where argument `index`, masked, has that value. */
static int add_masked(scmp_filter_ctx filter, uint32_t action, int call, unsigned index,
                      uint64_t mask, uint64_t value)
{
    return seccomp_rule_add(filter, action, call, 1,
                            SCMP_CMP(index, SCMP_CMP_MASKED_EQ, mask, value));
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
static int allow_sockets(scmp_filter_ctx filter)
{
    int rc =
        seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
                         SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_EQ, NETLINK_ROUTE));

    for (size_t i = 0; i < 2 * sizeof(sockets) / sizeof(sockets[0]) && rc == 0; i++) {
        int type = sockets[i / 2].type;
        int protocol = i % 2 == 0 ? 0 : type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
        rc = seccomp_rule_add(
            filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 3,
            SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)sockets[i / 2].family),
            SCMP_A1(SCMP_CMP_MASKED_EQ, ~(scmp_datum_t)SOCKET_FLAGS, (scmp_datum_t)type),
            SCMP_A2(SCMP_CMP_EQ, (scmp_datum_t)protocol));
    }
    for (size_t i = 0; i < sizeof(socket_options) / sizeof(socket_options[0]) && rc == 0; i++) {
        rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(setsockopt),
                              socket_options[i].option < 0 ? 1 : 2,
                              SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)socket_options[i].level),
                              SCMP_A2(SCMP_CMP_EQ, (scmp_datum_t)socket_options[i].option));
    }
    return rc;
}

/* The broker reads a system call of another process and answers it, and puts a tunnel in the place
 * of a socket. */
static int allow_answers(scmp_filter_ctx filter)
{
    static const unsigned long controls[] = {SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_IOCTL_NOTIF_SEND};
    int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(dup3), 0);

    for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]) && rc == 0; i++) {
        rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
                              SCMP_A1(SCMP_CMP_EQ, controls[i]));
    }
    return rc;
}

/* A process with a broker passes each address to it. It sends no messages, which can hold one. */
static int allow_connections(scmp_filter_ctx filter, const struct confinement *confinement)
{
    static const int calls[] = {SCMP_SYS(connect), SCMP_SYS(sendto), SCMP_SYS(sendmsg),
                                SCMP_SYS(sendmmsg)};
    int rc;

    if (confinement->listener == NULL) {
        rc = add_all(filter, SCMP_ACT_ALLOW, calls, sizeof(calls) / sizeof(calls[0]));
        return rc || !confinement->is_broker ? rc : allow_answers(filter);
    }
    rc = seccomp_rule_add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(connect), 0);
    rc = rc ? rc
            : seccomp_rule_add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(sendto), 1,
                               SCMP_A4(SCMP_CMP_NE, 0));
    return rc ? rc
              : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(sendto), 1,
                                 SCMP_A4(SCMP_CMP_EQ, 0));
}

/* abort() sends a signal to this process; no other process gets one. */
static int allow_signals(scmp_filter_ctx filter)
{
    int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                              SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));

    for (size_t i = 0; i < sizeof(file_commands) / sizeof(file_commands[0]) && rc == 0; i++) {
        rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
                              SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)file_commands[i]));
    }
    return rc;
}

static int allow_by_argument(scmp_filter_ctx filter, const struct confinement *confinement)
{
    static const int controls[] = {FIONBIO, FIONREAD, TCGETS};
    uint64_t writing = O_ACCMODE | O_CREAT | O_TRUNC;
    int rc = add_masked(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 2,
                        confinement->uses_hardware ? 0 : writing, O_RDONLY);

    rc = rc ? rc
            : add_masked(filter, SCMP_ACT_ALLOW, SCMP_SYS(open), 1,
                         confinement->uses_hardware ? 0 : writing, O_RDONLY);
    rc = rc ? rc : allow_sockets(filter);
    rc = rc ? rc : allow_connections(filter, confinement);
    rc = rc ? rc : allow_signals(filter);
    for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]) && rc == 0; i++) {
        rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
                              SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)controls[i]));
    }
    if (confinement->uses_hardware && rc == 0) {
        rc = add_all(filter, SCMP_ACT_ALLOW, drivers, sizeof(drivers) / sizeof(drivers[0]));
    }
    /* The limits can be read, not set. */
    rc = rc ? rc
            : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1,
                               SCMP_A2(SCMP_CMP_EQ, 0));
    /* Threads are allowed (libcurl looks names up in one), processes are not. clone3 has its flags
     * behind a pointer; if it is missing, the C library uses clone. */
    rc = rc ? rc
            : add_masked(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 0, CLONE_THREAD, CLONE_THREAD);
    return rc ? rc : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
}

static int refuse(struct baton_error *reterr, int error)
{
    return error_set(reterr, BATON_EUNAVAILABLE, "seccomp: %s; a camera is not opened unconfined",
                     strerror(error));
}

/* Loads the filter if `rc` is 0, so all rules were added. libseccomp's error is of another step;
 * without memory there is no filter, to which no rule can be added. */
static int load(scmp_filter_ctx filter, int rc, int *listener, struct baton_error *reterr)
{
    rc = filter == NULL ? -ENOMEM : rc ? rc : seccomp_load(filter);
    if (rc == 0 && listener != NULL) {
        *listener = seccomp_notify_fd(filter);
    }
    seccomp_release(filter);
    if (rc != 0 && rc != -ENOMEM && listener != NULL) {
        return error_set(reterr, BATON_EUNAVAILABLE,
                         "seccomp: connections cannot be checked: the kernel is older than 5.0, or "
                         "the runtime of this container listens to system calls itself");
    }
    return rc == 0 ? 0 : refuse(reterr, -rc);
}

/* An answer at its listener could replace the broker. */
static int filter_brokered(struct baton_error *reterr)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int rc = add_masked(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1, IOCTL_TYPE,
                        SECCOMP_IOC_MAGIC << 8);

    return load(filter, rc, NULL, reterr);
}

static int filter_process(const struct confinement *confinement, struct baton_error *reterr)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    int rc = add_all(filter, SCMP_ACT_ALLOW, allowed, sizeof(allowed) / sizeof(allowed[0]));

    rc = rc ? rc
            : add_all(filter, SCMP_ACT_KILL_PROCESS, deadly, sizeof(deadly) / sizeof(deadly[0]));
    rc = rc ? rc : allow_by_argument(filter, confinement);
    rc = load(filter, rc, confinement->listener, reterr);
    return rc || confinement->listener == NULL ? rc : filter_brokered(reterr);
}

int confine_stream(const struct confinement *confinement, struct baton_error *reterr)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    uint32_t no = SCMP_ACT_ERRNO(EPERM);
    int rc = add_all(filter, no, finished, sizeof(finished) / sizeof(finished[0]));

    if (!confinement->uses_hardware) {
        /* No thread starts, and no memory can be both filled and run. */
        rc = rc ? rc : seccomp_rule_add(filter, no, SCMP_SYS(clone), 0);
        rc = rc ? rc : add_masked(filter, no, SCMP_SYS(mmap), 2, PROT_EXEC, PROT_EXEC);
        rc = rc ? rc : add_masked(filter, no, SCMP_SYS(mprotect), 2, PROT_EXEC, PROT_EXEC);
    }
    if (!confinement->uses_udp) {
        rc = rc ? rc : seccomp_rule_add(filter, no, SCMP_SYS(sendto), 1, SCMP_A4(SCMP_CMP_NE, 0));
    }
    return load(filter, rc, NULL, reterr);
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
        unsigned mib = confinement->memory_max_mib;
        limit(RLIMIT_AS, (rlim_t)(mib > 0 ? mib : MEMORY_MAX_MIB) << 20);
    }
}

/* Root becomes the user nobody. A driver's devices may be open to a group only, so groups stay for
 * hardware. */
static int drop_root(const struct confinement *confinement, struct baton_error *reterr)
{
    if (geteuid() != 0) {
        return 0;
    }
    if (!confinement->uses_hardware && setgroups(0, NULL) != 0) {
        return error_set(reterr, BATON_EUNAVAILABLE, "groups: %s", strerror(errno));
    }
    if ((!confinement->uses_hardware && setresgid(NOBODY, NOBODY, NOBODY) != 0) ||
        setresuid(NOBODY, NOBODY, NOBODY) != 0) {
        return error_set(reterr, BATON_EUNAVAILABLE, "user: %s", strerror(errno));
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
    /* A change of user undoes the last two. A parent that has died since shows at the socket. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
        prctl(PR_SET_DUMPABLE, 0) != 0) {
        return refuse(reterr, errno);
    }
    landlock_restrict(confinement);
    return filter_process(confinement, reterr);
}
