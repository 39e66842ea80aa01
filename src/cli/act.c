#include "cli/act.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct slot {
    _Atomic uint64_t count;
    _Atomic uint64_t epoch;
    _Atomic int64_t acquired_ns;
    _Atomic int64_t lost_ns;
    _Atomic int64_t alive_ns;
    char padding[24]; /* a cache line each */
};

struct act {
    _Atomic uint32_t bells;
    char padding[60];
    struct slot slots[ACT_SLOTS];
};

int act_open(struct act **ret, const char *path, struct baton_error *reterr)
{
    void *mapping = MAP_FAILED;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && ftruncate(fd, sizeof(struct act)) == 0) {
        mapping = mmap(NULL, sizeof(struct act), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    int errnum = errno;
    if (fd >= 0) {
        close(fd);
    }
    if (mapping == MAP_FAILED) {
        return error_set(reterr, BATON_EIO, "%s: %s", path, strerror(errnum));
    }
    *ret = mapping;
    return 0;
}

void act_close(struct act *act)
{
    if (act) {
        (void)munmap(act, sizeof(*act));
    }
}

static void ring(struct act *act)
{
    atomic_fetch_add(&act->bells, 1);
    (void)syscall(SYS_futex, &act->bells, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void act_stamp_acquired(struct act *act, unsigned slot, uint64_t epoch, instant at)
{
    atomic_store(&act->slots[slot].epoch, epoch);
    atomic_store(&act->slots[slot].acquired_ns, at.ns);
    atomic_fetch_add(&act->slots[slot].count, 1);
    ring(act);
}

void act_stamp_lost(struct act *act, unsigned slot, instant at)
{
    atomic_store(&act->slots[slot].lost_ns, at.ns);
    ring(act);
}

void act_stamp_alive(struct act *act, unsigned slot, instant at)
{
    atomic_store(&act->slots[slot].alive_ns, at.ns);
}

struct act_stamp act_read(const struct act *act, unsigned slot)
{
    const struct slot *from = &act->slots[slot];
    return (struct act_stamp){
        .count = atomic_load(&from->count),
        .epoch = atomic_load(&from->epoch),
        .acquired = {atomic_load(&from->acquired_ns)},
        .lost = {atomic_load(&from->lost_ns)},
        .alive = {atomic_load(&from->alive_ns)},
    };
}

uint32_t act_bells(const struct act *act)
{
    return atomic_load(&act->bells);
}

bool act_wait(const struct act *act, uint32_t bells, instant deadline)
{
    while (atomic_load(&act->bells) == bells) {
        span left = instant_since(deadline, clock_now());
        if (left.ns <= 0) {
            return false;
        }
        left.ns = left.ns > SPAN_S(60).ns ? SPAN_S(60).ns : left.ns;
        struct timespec wait = {.tv_sec = left.ns / 1000000000, .tv_nsec = left.ns % 1000000000};
        (void)syscall(SYS_futex, &act->bells, FUTEX_WAIT, bells, &wait, NULL, 0);
    }
    return true;
}
