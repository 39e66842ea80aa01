#include "guardian/fatal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK_BYTES = 64 * 1024 };

static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS};
enum { SIGNALS = sizeof(signals) / sizeof(signals[0]) };

/* Process-wide, because signal handlers are. The handler reads this without a lock: an entry is
 * valid once `is_used` is set, which happens after its content is written. */
static struct {
    struct fatal_entry entry;
    pid_t owner; /* a forked child inherits handler, entry and socket, but is not the leader */
    _Atomic int fd;
    _Atomic bool is_used;
    _Atomic bool is_taken;
} slots[FATAL_ENTRIES_MAX];

static struct sigaction earlier[SIGNALS];
static bool is_ours[SIGNALS];
static int install_count;
static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_mine(int i, pid_t self)
{
    return atomic_load(&slots[i].is_used) && slots[i].owner == self;
}

/* Voids all leases before it sends anything: no datagram may say what is not yet true. */
static void void_and_tell(void)
{
    pid_t self = getpid();
    for (int i = 0; i < FATAL_ENTRIES_MAX; i++) {
        if (is_mine(i, self)) {
            slots[i].entry.void_lease(slots[i].entry.lease);
        }
    }
    for (int i = 0; i < FATAL_ENTRIES_MAX; i++) {
        int fd = atomic_load(&slots[i].fd);
        if (is_mine(i, self) && fd >= 0) {
            /* A failure is ignored: the guardian still sees the death itself. */
            (void)send(fd, slots[i].entry.datagram, slots[i].entry.bytes,
                       MSG_DONTWAIT | MSG_NOSIGNAL);
        }
    }
}

/* Takes the default action, with the status and core dump that the program would have had without
 * us: a fault recurs when the handler returns; a signal that was sent is sent again to this
 * thread. */
static void die_by(int number, const siginfo_t *info)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    (void)sigaction(number, &standard, NULL);
    if (info->si_code <= 0 || number == SIGSYS) {
        (void)syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
    }
}

static void on_fatal(int number, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    const struct sigaction *before = NULL;

    void_and_tell();
    for (int i = 0; i < (int)SIGNALS; i++) {
        if (signals[i] == number) {
            before = &earlier[i];
        }
    }
    errno = saved_errno;
    if (before != NULL && before->sa_flags & SA_SIGINFO) {
        before->sa_sigaction(number, info, context);
    } else if (before != NULL && before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) {
        before->sa_handler(number);
    } else {
        die_by(number, info);
    }
}

int fatal_guard_thread(void)
{
    stack_t now, stack = {.ss_size = STACK_BYTES};

    if (sigaltstack(NULL, &now) == 0 && !(now.ss_flags & SS_DISABLE)) {
        return 0; /* set by the program or a sanitizer */
    }
    stack.ss_sp = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack.ss_sp == MAP_FAILED) {
        return BATON_ENOMEM;
    }
    if (sigaltstack(&stack, NULL) != 0) {
        (void)munmap(stack.ss_sp, STACK_BYTES);
        return BATON_ENOMEM;
    }
    return 0;
}

/* A signal that the program ignores stays ignored, since it is not fatal. */
static int install_one(int i)
{
    struct sigaction ours = {.sa_sigaction = on_fatal, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    if (sigaction(signals[i], NULL, &earlier[i]) != 0) {
        return -1;
    }
    if (!(earlier[i].sa_flags & SA_SIGINFO) && earlier[i].sa_handler == SIG_IGN) {
        return 0;
    }
    ours.sa_flags |= earlier[i].sa_flags & SA_NODEFER; /* as the earlier handler expects */
    ours.sa_mask = earlier[i].sa_mask;
    is_ours[i] = sigaction(signals[i], &ours, NULL) == 0;
    return is_ours[i] ? 0 : -1;
}

static void put_back(void)
{
    for (int i = 0; i < (int)SIGNALS; i++) {
        struct sigaction now;
        if (is_ours[i] && sigaction(signals[i], NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
            now.sa_sigaction == on_fatal) {
            (void)sigaction(signals[i], &earlier[i], NULL);
        }
        is_ours[i] = false;
    }
}

int fatal_install(struct baton_error *reterr)
{
    int code = fatal_guard_thread();
    if (code != 0) {
        return error_set(reterr, code, "no memory for the stack that fatal signals run on");
    }
    (void)pthread_mutex_lock(&install_lock);
    for (int i = 0; install_count == 0 && i < (int)SIGNALS && code == 0; i++) {
        if (install_one(i) != 0) {
            put_back();
            code = error_set(reterr, BATON_EIO, "signal %d: the handler was refused: %s",
                             signals[i], strerror(errno));
        }
    }
    install_count += code == 0 ? 1 : 0;
    (void)pthread_mutex_unlock(&install_lock);
    return code;
}

void fatal_uninstall(void)
{
    (void)pthread_mutex_lock(&install_lock);
    if (install_count > 0 && --install_count == 0) {
        put_back();
    }
    (void)pthread_mutex_unlock(&install_lock);
}

int fatal_add(const struct fatal_entry *entry)
{
    for (int i = 0; i < FATAL_ENTRIES_MAX; i++) {
        if (!atomic_exchange(&slots[i].is_taken, true)) {
            slots[i].entry = *entry;
            slots[i].owner = getpid();
            atomic_store(&slots[i].fd, entry->fd);
            atomic_store(&slots[i].is_used, true);
            return i;
        }
    }
    return BATON_ETOOBIG;
}

void fatal_set_fd(int slot, int fd)
{
    atomic_store(&slots[slot].fd, fd);
}

void fatal_remove(int slot)
{
    atomic_store(&slots[slot].is_used, false);
    atomic_store(&slots[slot].fd, -1);
    atomic_store(&slots[slot].is_taken, false);
}
