/* Folders that appear whole or not at all.
 *
 *   draft ".draft-XXXXXX", locked ──all written, synced──▶ rename to its name
 *         └─ writer gone: no longer locked ──▶ removed by the next process that opens the store
 *
 * Every call may block on the disk; none belongs on the loop's thread. Names must be valid
 * (name.h); links are never followed.
 */
#ifndef DETECTOR_MODEL_FOLDER_H
#define DETECTOR_MODEL_FOLDER_H

#include <baton/error.h>

#include <stdint.h>

enum { DRAFT_NAME_BYTES = sizeof(".draft-XXXXXX") };

struct draft {
    int parent_fd; /* borrowed */
    int fd;        /* of the draft; locked. -1: none */
    char name[DRAFT_NAME_BYTES];
};

/* After success the caller calls draft_take() or draft_drop(). */
int draft_new(struct draft *ret, int parent_fd, struct baton_error *reterr);

/* Makes a draft of a folder that has a name, so that it can be removed whole at once. The caller
 * has the parent's lock and, as `fd`, the folder's own (LOCK_EX), which is the draft's after
 * success. */
int draft_of(struct draft *ret, int parent_fd, const char *name, int fd,
             struct baton_error *reterr);

/* Makes a new file of the draft for writing, with its folders. Returns its descriptor or a code. */
int draft_file(const struct draft *draft, const char *name, struct baton_error *reterr);

/* Gives the draft its name, once all of it is on the disk; the writers have synced the files.
 * Returns BATON_EEXIST if the name is taken. After a failure it is still a draft. */
int draft_take(struct draft *draft, const char *name, struct baton_error *reterr);

void draft_drop(struct draft *draft); /* removes a draft; without effect after draft_take() */

/* Removes the drafts whose writers have ended; returns how many, or a code. */
int drafts_sweep(int parent_fd, struct baton_error *reterr);

/* Removes a folder with its content. Returns BATON_ENOENT if there is none. */
int folder_remove(int parent_fd, const char *name, struct baton_error *reterr);

/* Returns the bytes of all files in the folder. */
int folder_bytes(int parent_fd, const char *name, uint64_t *ret, struct baton_error *reterr);

/* Opens a folder that is no link. Returns its descriptor, or -1 with errno. */
int folder_open(int parent_fd, const char *name);

/* Locks the folder until the returned descriptor is closed; returns a code on failure. */
int folder_lock(int parent_fd, struct baton_error *reterr);

#endif
