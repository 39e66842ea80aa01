/* A folder for files without names, and what a good archive holds. */
#ifndef UNIT_DETECTOR_MODEL_ARCHIVE_PLACE_H
#define UNIT_DETECTOR_MODEL_ARCHIVE_PLACE_H

#include "cmocka_all.h"

#include "detector/model/archive.h"
#include "lib/process.h"
#include "unit/detector_model/sample.h"
#include "unit/detector_model/zip_maker.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARCHIVE_BYTES = 1 << 20 };

static const struct zip_part good_parts[] = {{.name = "pipeline.json", .text = SAMPLE_PIPELINE},
                                             {.name = SAMPLE_MODEL, .text = "a model"}};

struct place {
    char path[64];
    int fd;
    struct buffer archive;
    struct archive_rules rules;
    struct unpacked unpacked; /* what came of the last good one */
};

static inline int unpack(struct place *place, int archive_fd, struct baton_error *error)
{
    unpacked_fini(&place->unpacked);
    return archive_unpack(&place->unpacked, archive_fd, place->fd, &place->rules, error);
}

static inline int set_up(void **state)
{
    struct place *place = calloc(1, sizeof(*place));

    assert_non_null(place);
    process_make_folder(place->path, sizeof(place->path));
    place->fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(place->fd >= 0);
    buffer_init(&place->archive, ARCHIVE_BYTES);
    place->rules = archive_rules_default();
    memset(place->unpacked.files, -1, sizeof(place->unpacked.files));
    *state = place;
    return 0;
}

static inline int tear_down(void **state)
{
    struct place *place = *state;

    unpacked_fini(&place->unpacked);
    process_remove_folder(place->path);
    close(place->fd);
    buffer_fini(&place->archive);
    free(place);
    return 0;
}

#endif
