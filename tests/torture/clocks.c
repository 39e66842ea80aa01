/* A library for LD_PRELOAD: the clocks of one host, off by a rate and with jumps of the wall clock.
 *
 * What is faked: CLOCK_BOOTTIME, by which all of Baton's deadlines go, in clock_gettime() and in
 * timers of timerfd_settime(), runs at TORTURE_PPM millionths too fast, or too slow if negative,
 * since TORTURE_SINCE_NS by the true clock; so it is the same in all processes of a host.
 * CLOCK_REALTIME jumps by the number of seconds in the file TORTURE_WALL (a mapped int64_t).
 *
 * What is not: CLOCK_MONOTONIC and the timeouts of epoll_wait() and of condition variables, by
 * which Baton decides nothing that must be safe, and programs that ask the kernel itself.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

enum { MILLION = 1000000, NS_PER_S = 1000000000 };

static int64_t ppm, since_ns;
static const volatile int64_t *wall_jump_s;

__attribute__((constructor)) static void begin(void)
{
    const char *rate = getenv("TORTURE_PPM");
    const char *since = getenv("TORTURE_SINCE_NS");
    const char *wall = getenv("TORTURE_WALL");
    int fd = wall ? open(wall, O_RDONLY | O_CLOEXEC) : -1;
    ppm = rate ? strtoll(rate, NULL, 10) : 0;
    since_ns = since ? strtoll(since, NULL, 10) : 0;
    if (fd >= 0) {
        void *page = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
        wall_jump_s = page == MAP_FAILED ? NULL : page;
        (void)close(fd);
    }
}

static int64_t ns_of(const struct timespec *time)
{
    return (int64_t)time->tv_sec * NS_PER_S + time->tv_nsec;
}

static struct timespec time_of(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

EXPORTED int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    int result = (int)syscall(SYS_clock_gettime, clock, ret_time);
    if (result == 0 && clock == CLOCK_BOOTTIME) {
        int64_t passed_ns = ns_of(ret_time) - since_ns;
        *ret_time = time_of(since_ns + passed_ns + passed_ns / MILLION * ppm);
    }
    if (result == 0 && clock == CLOCK_REALTIME && wall_jump_s) {
        ret_time->tv_sec += *wall_jump_s;
    }
    return result;
}

/* Only the way that Baton sets them: once, and by CLOCK_BOOTTIME at an instant. */
EXPORTED int timerfd_settime(int fd, int flags, const struct itimerspec *value,
                             struct itimerspec *ret_old)
{
    struct itimerspec true_value = *value;
    int64_t at_ns = ns_of(&value->it_value);
    if ((flags & TFD_TIMER_ABSTIME) && at_ns > since_ns) {
        int64_t passed_ns = at_ns - since_ns;
        int64_t true_ns = (int64_t)((double)passed_ns * MILLION / (double)(MILLION + ppm));
        true_value.it_value = time_of(since_ns + true_ns);
    }
    return (int)syscall(SYS_timerfd_settime, fd, flags, &true_value, ret_old);
}
