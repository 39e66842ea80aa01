/* Reads an archive and writes nothing; baton-unpack runs this. */
#ifndef DETECTOR_MODEL_ARCHIVE_SCAN_H
#define DETECTOR_MODEL_ARCHIVE_SCAN_H

#include "detector/model/archive.h"

#include <stdio.h>

/* The receiver of an archive's content: pipeline.json first, then each file that it names. */
struct archive_sink {
    int (*begin)(void *userdata, const char *name, uint64_t bytes, struct baton_error *reterr);
    int (*take)(void *userdata, const void *bytes, size_t count, struct baton_error *reterr);
    void *userdata;
};

/* Reads the archive and closes the file. Returns the codes of archive_unpack(), and the sink's. */
int archive_scan(FILE *file, const struct archive_rules *rules, const struct archive_sink *sink,
                 struct baton_error *reterr);

#endif
