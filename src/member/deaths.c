#include "member/deaths.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_NAMESPACE 0xEFFFFFFCU /* inode of the host's PID namespace, PROC_PID_INIT_INO */

static bool is_in_namespace(void)
{
    struct stat about;

    return stat("/proc/self/ns/pid", &about) == 0 && about.st_ino != FIRST_NAMESPACE;
}

struct deaths deaths_here(bool has_guardian, double hang_ms)
{
    bool is_first = getpid() == 1;
    bool is_proved = has_guardian && !is_first;
    const char *place = is_first     ? "the end of this process, which is process 1 of a PID "
                                       "namespace: the guardian ends with it; "
                        : !is_proved ? "the end of this process: it has no guardian; "
                        : is_in_namespace() ? "the end of the PID namespace, with its process 1; "
                                            : "";
    struct deaths ret;

    bool is_hang_proved = is_proved && hang_ms > 0;

    (void)snprintf(ret.at_once, sizeof(ret.at_once), "%s",
                   is_proved ? "the end of this process" : "none");
    if (is_hang_proved) {
        (void)snprintf(ret.at_once, sizeof(ret.at_once),
                       "the end of this process; a hang, after %g ms", hang_ms);
    }
    (void)snprintf(ret.by_lease, sizeof(ret.by_lease), "%s%sthe end of the host or network", place,
                   is_hang_proved ? "" : "a hang; ");
    return ret;
}

struct deaths deaths_by_agent(void)
{
    return (struct deaths){
        .at_once = "the end of this process, and of its container: the agent is outside",
        .by_lease = "a hang; the end of the host or network, or of the agent with this process",
    };
}
