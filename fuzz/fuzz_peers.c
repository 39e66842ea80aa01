/* A peer as a person writes it. */
#include "provider/raft/options.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct raft_member member;
    struct baton_error error;
    char *text = malloc(bytes + 1);

    if (!text) {
        return 0;
    }
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    if (raft_options_parse_peer(&member, text, &error) == BATON_OK && member.id == RAFT_NOBODY) {
        abort();
    }
    free(text);
    return 0;
}
