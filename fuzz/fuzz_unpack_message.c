/* What baton-unpack says, if a hostile archive has taken it over: whatever it is, no file comes of
 * it but those that pipeline.json names, and of no more bytes than are allowed.
 *
 * The input: for each message two bytes of length, then the message. */
#include "detector/model/archive.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

static void check(const struct unpacked *unpacked)
{
    uint64_t bytes = 0;

    assert(unpacked->pipeline.model_count > 0);
    for (size_t i = 0; i < PIPELINE_MODELS_MAX; i++) {
        struct stat status = {0};
        assert((unpacked->files[i] >= 0) == (i < unpacked->pipeline.model_count));
        (void)fstat(unpacked->files[i], &status);
        bytes += (uint64_t)status.st_size;
    }
    /* All but pipeline.json. */
    assert(bytes < unpacked->bytes && unpacked->bytes <= UNPACKED_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct archive_rules rules = {.unpacked_bytes_max = UNPACKED_BYTES};
    struct helper child = {.pid = 0};
    int folder_fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct unpacked unpacked;
    int sockets[2];

    assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
    child.socket = sockets[0];
    send_all(sockets[1], data, size);
    if (archive_write(&unpacked, &child, size, folder_fd, &rules, NULL) == 0) {
        check(&unpacked);
        unpacked_fini(&unpacked);
    }
    (void)close(folder_fd);
    unpack_child_end(&child);
    return 0;
}
