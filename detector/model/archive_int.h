/* A folder that is made of an archive's files: pipeline.json, each file that it names, and
 * SUM_FILE, the digest of all of them, to find what the disk has damaged. */
#ifndef DETECTOR_MODEL_ARCHIVE_INT_H
#define DETECTOR_MODEL_ARCHIVE_INT_H

#include "detector/model/archive.h"
#include "detector/model/unpack_wire.h"

/* An archive cannot have this name: see name.h. */
#define SUM_FILE ".sum"

/* Takes one file of an archive: its size, then its bytes. */
struct archive_sink {
    int (*begin)(void *userdata, uint64_t bytes, struct baton_error *reterr);
    int (*take)(void *userdata, const void *bytes, size_t count, struct baton_error *reterr);
    void *userdata;
};

/* Gives the files of an archive by name. It is not trusted. */
struct archive_source {
    int (*file)(void *userdata, const char *name, const struct archive_sink *sink,
                struct baton_error *reterr);
    void *userdata;
};

/* Writes the files of the source as folder `name`. Returns the codes of archive_unpack(). */
int archive_write(const struct archive_source *source, int parent_fd, const char *name,
                  const struct archive_rules *rules, struct baton_error *reterr);

/* Hands a message of baton-unpack, of so many bytes, to the sink. The last one of a file sets
 * `is_done`. */
int archive_accept(const struct archive_sink *sink, const struct unpack_message *message,
                   size_t bytes, bool *is_done, struct baton_error *reterr);

int archive_nonsense(struct baton_error *reterr);

#endif
