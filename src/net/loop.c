#include "net/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int loop_init(uv_loop_t *ret)
{
    int room[3] = {-1, -1, -1}; /* the loop's own descriptor comes before the pipe */
    int failed = 0;

    if (pipe2(room, O_CLOEXEC) != 0 || (room[2] = fcntl(room[0], F_DUPFD_CLOEXEC, 0)) < 0) {
        failed = uv_translate_sys_error(errno);
    }
    for (int i = 0; i < 3 && room[i] >= 0; i++) {
        (void)close(room[i]);
    }
    return failed ? failed : uv_loop_init(ret);
}
