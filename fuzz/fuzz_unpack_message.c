/* What baton-unpack says, if a hostile archive has taken it over: whatever it is, no file comes of
 * it but those that pipeline.json names, whole, and of no more bytes than are allowed.
 *
 * The input: for each message two bytes of length, then the message. */
#include "detector/model/archive.h"
#include "place.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { UNPACKED_BYTES = 1 << 16 };

/* Puts all messages that find room into the socket of a child that ends then. */
static void send_all(int fd, const uint8_t *data, size_t size)
{
    while (size >= 2) {
        size_t bytes = (size_t)data[0] | (size_t)data[1] << 8;

        bytes = bytes > size - 2 ? size - 2 : bytes;
        (void)send(fd, data + 2, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        data += 2 + bytes;
        size -= 2 + bytes;
    }
    (void)close(fd);
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
    const struct archive_rules rules = {.unpacked_bytes_max = UNPACKED_BYTES};
    struct helper child = {.pid = 0};
    int parent_fd = open_place();
    int sockets[2];

    assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
    child.socket = sockets[0];
    send_all(sockets[1], data, size);
    if (archive_write(&child, size, parent_fd, "model", &rules, NULL) == 0) {
        struct pipeline pipeline;
        uint64_t bytes;
        read_pipeline(&pipeline, parent_fd);
        pipeline_fini(&pipeline);
        assert(folder_bytes(parent_fd, "model", &bytes, NULL) == 0 && bytes <= UNPACKED_BYTES + 64);
        assert(folder_remove(parent_fd, "model", NULL) == 0);
    }
    assert(folder_remove(parent_fd, DRAFT, NULL) == BATON_ENOENT);
    unpack_child_end(&child);
    return 0;
}
