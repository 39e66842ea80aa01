/* A temporary folder of this process, which is removed soon after its end at the latest.
 *
 *   TMPDIR/baton-model-XXXXXX/lock    locked as long as the process lives
 *
 * The folder of a killed process is not locked any more, and the next process that makes one
 * removes it.
 */
#ifndef DETECTOR_PROGRAM_OWN_FOLDER_H
#define DETECTOR_PROGRAM_OWN_FOLDER_H

#include <baton/error.h>

#include <limits.h>

struct own_folder {
    char path[PATH_MAX];
    int fd, lock_fd;
};

/* Makes the folder in $TMPDIR, else /tmp. May block on the disk. After a failure there is nothing
 * to remove. */
int own_folder_new(struct own_folder *ret, struct baton_error *reterr);
/* Removes the folder with its content. */
void own_folder_remove(struct own_folder *folder);

#endif
