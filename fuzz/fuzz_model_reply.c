/* What comes with a model: the head of the server's answer, and the address itself. The input's
 * lines are the head; all of it is an address as well, which must be told to whoever reads messages
 * without its secrets. */
#include "detector/model/address.h"
#include "detector/model/reply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_reply(const struct reply *reply)
{
    assert(memchr(reply->etag, '\0', sizeof(reply->etag)) != NULL);
    for (const char *c = reply->etag; *c != '\0'; c++) {
        assert(*c > 0x20 && *c < 0x7f); /* nothing that could begin another line of ours */
    }
    assert(reply->range_start >= -1 && reply->range_total >= -1);
    assert(reply->range_total == -1 || reply->range_total > reply->range_start);
}

static void read_head(const char *data, size_t size)
{
    struct reply reply;

    reply_init(&reply);
    while (size > 0) {
        const char *end = memchr(data, '\n', size);
        size_t bytes = end != NULL ? (size_t)(end - data) + 1 : size;

        reply_line(&reply, data, bytes);
        check_reply(&reply);
        data += bytes;
        size -= bytes;
    }
}

static void read_address(const char *text)
{
    static const char *const hosts[] = {".example", NULL};
    struct address address;
    char *identity = NULL;

    (void)address_parse(&address, text, hosts, NULL);
    if (address_parse(&address, text, NULL, NULL) != 0) {
        return;
    }
    assert(strchr(address.url.masked, '@') == NULL && strchr(address.url.masked, '?') == NULL);
    if (address_identity(&identity, 7, text, NULL) == 0) {
        assert(strncmp(identity, "7 http", 6) == 0 && strchr(identity, '?') == NULL);
        free(identity);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    read_head(text, size);
    read_address(text);
    free(text);
    return 0;
}
