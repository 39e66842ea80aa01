/* Folders that appear whole or not at all.
 *
 *   draft ".draft-XXXXXX", locked ──all written, synced──▶ rename to its name
 *         └─ writer gone: no longer locked ──▶ swept away by whoever looks next
 *
 * Every call may block on the disk; none belongs on the loop's thread. Names that are given are
 * right (name.h); links are never followed.
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

/* Makes a draft of a folder that has a name, so that it is gone at once and whole. The caller has
 * the parent's lock and, as `fd`, the folder's own (LOCK_EX), which is the draft's after success.
 */
int draft_of(struct draft *ret, int parent_fd, const char *name, int fd,
             struct baton_error *reterr);

/* A new file of the draft, for writing; its folders are made. Returns its descriptor or a code. */
int draft_file(const struct draft *draft, const char *name, struct baton_error *reterr);

/* Gives the draft its name, once all of it is on the disk. Files must be synced by who wrote them.
 * BATON_EEXIST: the name is taken. After a failure it is still a draft. */
int draft_take(struct draft *draft, const char *name, struct baton_error *reterr);

void draft_drop(struct draft *draft); /* removes it; also of one that was taken: nothing */

/* Removes the drafts whose writers are gone; returns how many, or a code. */
int drafts_sweep(int parent_fd, struct baton_error *reterr);

/* Removes a folder and all that is in it. BATON_ENOENT: there is none. */
int folder_remove(int parent_fd, const char *name, struct baton_error *reterr);

/* Bytes of all files in the folder. */
int folder_bytes(int parent_fd, const char *name, uint64_t *ret, struct baton_error *reterr);

/* A lock of the folder, held until the descriptor that is returned is closed; a code on failure. */
int folder_lock(int parent_fd, struct baton_error *reterr);

#endif
