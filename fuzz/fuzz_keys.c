/* Orders and snapshots of the replicated keys, as a peer or a disk may give them. */
#include "provider/raft/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct keys *keys = keys_new();
    struct keys_value changed;
    struct keys_order order;
    struct buffer again;

    if (!keys) {
        return 0;
    }
    if (keys_decode(&order, data, bytes) == BATON_OK) {
        (void)keys_carry_out(keys, &order, 1, (instant){0}, &changed);
        order.revision = UINT64_MAX;
        (void)keys_carry_out(keys, &order, 2, (instant){0}, &changed);
    }
    if (keys_restore(keys, data, bytes, (instant){0}) == BATON_OK) {
        buffer_init(&again, bytes + 64);
        keys_snapshot(keys, &again);
        if (again.failed || keys_restore(keys, again.data, again.bytes, (instant){0}) != BATON_OK) {
            __builtin_trap(); /* what was taken must be given back */
        }
        buffer_fini(&again);
    }
    keys_free(keys);
    return 0;
}
