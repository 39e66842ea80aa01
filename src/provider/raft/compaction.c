/* Keeps the disk's content short, at moments at which nobody waits for a write: moves SQLite's log
 * into its file, and replaces a long log of entries by a snapshot. */
#include "provider/raft/node.h"
#include "sessions/sessions.h"

/* The members store the same at the same time, and should not all be busy at the same time. */
enum { MOVE_LOG_MIN_MS = 100, MOVE_LOG_SPREAD_MS = 1000 };

static void move_log(struct node *node)
{
    struct raft_input failed = {.type = RAFT_IN_STORAGE_FAILED};
    struct baton_error error;

    if (storage_checkpoint(node->storage, &error) != BATON_OK) {
        log_error(node->logger, "checkpoint-failed", LOG_STR("error", error.message));
        event_error(node, error.code, &error);
        (void)node_step(node, &failed);
    }
}

static void on_log_due(uv_timer_t *timer)
{
    move_log(timer->data);
}

/* Not at once: what was written last is waited for. */
void node_move_log_if_due(struct node *node)
{
    if (storage_is_log_due(node->storage) && !uv_is_active((uv_handle_t *)&node->log_timer) &&
        !uv_is_closing((uv_handle_t *)&node->log_timer)) {
        (void)uv_timer_start(&node->log_timer, on_log_due,
                             MOVE_LOG_MIN_MS + node_draw_number(node) % MOVE_LOG_SPREAD_MS, 0);
    }
}

/* The log has more bytes than it may, and than the state that replaces it. Orders of sessions are
 * small, come in thousands, and stay in memory until then: of them the memory counts. */
static bool is_long(const struct node *node)
{
    return (node->applied_bytes > NODE_COMPACT_BYTES && node->applied_bytes > node->state_bytes) ||
           (node->order_bytes > NODE_COMPACT_ORDER_BYTES && node->order_bytes > node->state_bytes);
}

/* Bounds what the next start has to read: moves SQLite's log into the file, and compacts a long log
 * of entries. */
static void on_checkpoint(uv_timer_t *timer)
{
    struct node *node = timer->data;
    struct raft_status status;

    raft_get_status(node->raft, &status);
    if ((status.applied_index >= status.first_index + NODE_COMPACT_ENTRIES || is_long(node)) &&
        !node->state_is_lost) {
        struct raft_input compact = {.type = RAFT_IN_COMPACT,
                                     .compact = {.index = status.applied_index}};
        struct buffer state;
        buffer_init(&state, 2 * ((size_t)KEYS_ALL_MAX + SESSIONS_BYTES_MAX));
        state_snapshot(node, &state);
        compact.compact.data = state.data;
        compact.compact.bytes = state.bytes;
        if (!state.failed) {
            (void)node_step(node, &compact);
        }
        node->applied_bytes = node->order_bytes = 0;
        node->state_bytes = state.bytes;
        buffer_fini(&state);
    }
    meeting_remember(node);
    move_log(node);
    event_deliver(node);
}

void node_compact_if_long(struct node *node)
{
    if (is_long(node) && uv_is_active((uv_handle_t *)&node->checkpoint)) {
        (void)uv_timer_start(&node->checkpoint, on_checkpoint, 0,
                             uv_timer_get_repeat(&node->checkpoint));
    }
}

void compaction_begin(struct node *node)
{
    uint64_t every_ms = (uint64_t)(node->options.checkpoint.ns / 1000000);

    if (every_ms > 0) {
        (void)uv_timer_start(&node->checkpoint, on_checkpoint,
                             every_ms - node_draw_number(node) % (every_ms / 2 + 1), every_ms);
    }
}
