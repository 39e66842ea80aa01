/* Orders and snapshots of sessions, as a peer or a disk may give them. */
#include "sessions/sessions.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* What was taken must be given back, byte by byte. */
static void give_back(const struct sessions *sessions, const uint8_t *data, size_t bytes)
{
    struct buffer again;

    buffer_init(&again, bytes + 64);
    sessions_snapshot(sessions, &again);
    if (again.failed || again.bytes != bytes || memcmp(again.data, data, bytes) != 0) {
        __builtin_trap();
    }
    buffer_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct sessions *sessions = NULL;
    struct sessions *other = sessions_new(NULL, NULL);
    struct session_order order;

    if (!other) {
        return 0;
    }
    if (session_order_decode(&order, data, bytes) == BATON_OK) {
        order.session = order.type == SESSION_OPEN ? 0 : 1;
        for (uint64_t index = 1; index < 4; index++) {
            (void)sessions_carry_out(other, &order, index);
        }
    }
    if (sessions_restore(&sessions, data, bytes) == BATON_OK) {
        give_back(sessions, data, bytes);
        sessions_install(other, sessions);
    }
    sessions_free(other);
    return 0;
}
