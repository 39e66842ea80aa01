/* A folder of this process's own among the temporary ones, that does not outlive it for long.
 *
 *   TMPDIR/baton-model-XXXXXX/lock    locked as long as the process lives
 *
 * What a killed process left is not locked any more, and removed by the next that makes one.
 */
#ifndef DETECTOR_PROGRAM_OWN_FOLDER_H
#define DETECTOR_PROGRAM_OWN_FOLDER_H

#include <baton/error.h>

#include <limits.h>

struct own_folder {
    char path[PATH_MAX];
    int fd, lock_fd;
};

/* In $TMPDIR, else /tmp. May block on the disk. After a failure there is nothing to be removed. */
int own_folder_new(struct own_folder *ret, struct baton_error *reterr);
/* With all that is in it. */
void own_folder_remove(struct own_folder *folder);

#endif
