/* A folder for what a target writes, gone when the process ends. */
#ifndef FUZZ_PLACE_H
#define FUZZ_PLACE_H

#include "detector/model/folder.h"

#include <fcntl.h>
#include <stdlib.h>

static char place[] = "/tmp/baton-fuzz-XXXXXX";

static inline void clean_up(void)
{
    (void)folder_remove(AT_FDCWD, place, NULL);
}

/* The same for the whole process. */
static inline int open_place(void)
{
    static int fd = -1;

    if (fd < 0) {
        if (mkdtemp(place) == NULL) {
            abort();
        }
        (void)atexit(clean_up);
        fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return fd;
}

#endif
