/* Model archives: whatever the bytes are, they become a folder of plain files that pipeline.json
 * names, or nothing at all. */
#include "place.h"
#include "unit/detector_model/unpack_here.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ENTRIES = 16, UNPACKED_BYTES = 1 << 20 };

static void check_file(int parent_fd, const char *file)
{
    char path[512];
    struct stat status;

    (void)snprintf(path, sizeof(path), "model/%s", file);
    assert(fstatat(parent_fd, path, &status, AT_SYMLINK_NOFOLLOW) == 0);
    assert(S_ISREG(status.st_mode) && (status.st_mode & 07777) == 0600);
}

static void read_pipeline(struct pipeline *ret, int parent_fd)
{
    struct buffer text;

    buffer_init(&text, ARCHIVE_TEXT_MAX);
    assert(archive_text(&text, parent_fd, "model", NULL) == 0);
    assert(pipeline_parse(ret, (const char *)text.data, text.bytes, NULL) == 0);
    buffer_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int parent_fd = open_place();
    int fd = memfd_create("archive", MFD_CLOEXEC);
    struct archive_rules rules = {.archive_bytes_max = UNPACKED_BYTES,
                                  .unpacked_bytes_max = UNPACKED_BYTES,
                                  .entries_max = ENTRIES};
    struct pipeline pipeline;

    assert(fd >= 0 && parent_fd >= 0 && write(fd, data, size) == (ssize_t)size);
    if (unpack_here(fd, parent_fd, "model", &rules, NULL) == 0) {
        uint64_t bytes;
        read_pipeline(&pipeline, parent_fd);
        for (size_t i = 0; i < pipeline.model_count; i++) {
            check_file(parent_fd, pipeline.models[i].file);
        }
        pipeline_fini(&pipeline);
        assert(folder_bytes(parent_fd, "model", &bytes, NULL) == 0 && bytes <= UNPACKED_BYTES);
        assert(folder_remove(parent_fd, "model", NULL) == 0);
    }
    assert(drafts_sweep(parent_fd, NULL) == 0);
    close(fd);
    return 0;
}
