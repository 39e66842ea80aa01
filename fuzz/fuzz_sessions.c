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

/* For a session that has an election: of the order's node, with its secret. */
static void carry_out(struct sessions *sessions, struct session_order *order)
{
    struct session_order open = {
        .type = SESSION_OPEN, .node = order->node, .lifetime = SPAN_S(30), .name = "p"};
    struct session_order enter = {
        .type = SESSION_ENTER, .node = order->node, .session = 1, .is_eligible = true};
    struct buffer bytes;

    memcpy(open.secret, order->secret, sizeof(open.secret));
    memcpy(enter.name, order->name, sizeof(enter.name));
    enter.name[0] = order->name[0] ? order->name[0] : 'e';
    (void)sessions_carry_out(sessions, &open, 1);
    (void)sessions_carry_out(sessions, &enter, 2);
    order->session = order->type == SESSION_OPEN ? 0 : 1;
    for (uint64_t index = 3; index < 6; index++) {
        (void)sessions_carry_out(sessions, order, index);
    }
    buffer_init(&bytes, 1 << 16);
    sessions_snapshot(sessions, &bytes);
    if (!bytes.failed) {
        struct sessions *copy = NULL;
        if (sessions_restore(&copy, bytes.data, bytes.bytes) != BATON_OK) {
            __builtin_trap();
        }
        give_back(copy, bytes.data, bytes.bytes);
        sessions_free(copy);
    }
    buffer_fini(&bytes);
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
        carry_out(other, &order);
    }
    if (sessions_restore(&sessions, data, bytes) == BATON_OK) {
        give_back(sessions, data, bytes);
        sessions_install(other, sessions);
    }
    sessions_free(other);
    return 0;
}
