/* Folders that appear whole or not at all: written as DRAFT, synced, renamed. One process at a time
 * writes in a parent, under the parent's lock; what a killed one has left is removed by the next.
 *
 * Every call may block on the disk; none belongs on the loop's thread. Names must be valid
 * (name.h); links are never followed.
 */
#ifndef DETECTOR_MODEL_FOLDER_H
#define DETECTOR_MODEL_FOLDER_H

#include <baton/error.h>

#include <stdatomic.h>
#include <stdint.h>

#define DRAFT ".draft"

/* Makes the draft anew. Returns its descriptor or a code. */
int draft_new(int parent_fd, struct baton_error *reterr);

/* Gives the draft its name, once all of it is on the disk. Returns BATON_EEXIST if the name is
 * taken. After a failure it may still be a draft. */
int draft_take(int parent_fd, const char *name, struct baton_error *reterr);

/* Makes a new file for writing, with its folders. Returns its descriptor or a code. */
int folder_new_file(int folder_fd, const char *name, struct baton_error *reterr);

/* Removes a folder with its content. Returns BATON_ENOENT if there is none. */
int folder_remove(int parent_fd, const char *name, struct baton_error *reterr);

/* Returns the bytes of all files in the folder. */
int folder_bytes(int parent_fd, const char *name, uint64_t *ret, struct baton_error *reterr);

/* Sets the error of errno: "make folder x: Permission denied". Returns its code. */
int folder_failed(struct baton_error *reterr, const char *what, const char *name);

/* Opens a folder that is no link. Returns its descriptor, or -1 with errno. */
int folder_open(int parent_fd, const char *name);

/* Locks the open folder, LOCK_EX or LOCK_SH, until the descriptor is closed. Waits for other
 * holders until `is_canceled` (NULL: never). */
int folder_lock(int fd, int kind, const atomic_bool *is_canceled, struct baton_error *reterr);

#endif
