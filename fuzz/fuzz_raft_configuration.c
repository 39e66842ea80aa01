/* A configuration from the log or a peer: what decodes must encode to the same bytes again. */
#include "base/invariant.h"
#include "raft/raft.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct raft_configuration configuration = {0};

    if (raft_configuration_decode(&configuration, data, bytes)) {
        return 0;
    }
    INVARIANT(configuration.count <= RAFT_MEMBERS_MAX);
    void *again = NULL;
    size_t again_bytes = 0;
    if (!raft_configuration_encode(&configuration, &again, &again_bytes)) {
        INVARIANT(again_bytes == bytes);
        INVARIANT(memcmp(again, data, bytes) == 0);
        free(again);
    }
    raft_configuration_fini(&configuration);
    return 0;
}
