/* Reads and writes the replicated keys, and reports changes to watches.
 *
 *   put    order ─▶ leader proposes ─▶ committed ─▶ every node carries it out; the requesting node
 *                                                   replies when it has done so
 *   get    read index ─▶ applied up to it ─▶ reply from this node's keys
 *
 * A leader that fails may lose an order, and no reply comes. The caller is told that it may still
 * be carried out: at the deadline, or when this node has carried out an entry of a later term while
 * that leader is not connected. A leader that lives refuses what it did not append, and it is sent
 * again.
 */
#include "base/invariant.h"
#include "provider/listing.h"
#include "provider/raft/node.h"
#include "provider/raft/orders.h"
#include "provider/raft/questions.h"
#include "provider/raft/session_host.h"
#include "provider/raft/watches.h"

#include <stdlib.h>
#include <string.h>

enum { QUESTIONS_MAX = 4096, PATIENCE_MS = 10000, RETRY_MS = 20, EXPIRE_RETRY_MS = 200 };

struct node_state {
    struct node *node;
    struct keys *keys;
    struct keys *offered; /* the state of the snapshot offered last; NULL: none */
    struct sessions *offered_sessions;
    struct questions questions;
    struct orders orders; /* used while this node leads */
    struct watches watches;
    uv_timer_t timer;
    raft_term term; /* of the latest entry that was carried out */
    bool is_telling;
    bool is_held_up; /* the leader reads slowly: writes wait for the timer, the first one first */
};

/* ---- Life ------------------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);
static void order_refused(struct node *node, raft_id asker, uint64_t request);

/* u8 format | u32 bytes of the keys | keys | sessions; nothing: neither of them has any. */
static int restore(const void *data, size_t bytes, struct keys *keys, struct sessions **ret)
{
    struct reader reader = reader_of(data, bytes);
    uint8_t format = bytes > 0 ? reader_u8(&reader) : NODE_STATE_FORMAT;
    uint32_t keys_bytes = bytes > 0 ? reader_u32(&reader) : 0;
    const uint8_t *keys_data = reader_take(&reader, keys_bytes);
    int code;

    if (format > NODE_STATE_FORMAT) {
        return BATON_ENOTSUP;
    }
    if (reader.failed || format != NODE_STATE_FORMAT) {
        return BATON_ECORRUPT;
    }
    code = keys_restore(keys, keys_data, keys_bytes, clock_now());
    if (code == BATON_OK && bytes == 0) {
        *ret = sessions_new(NULL, NULL);
        return *ret ? BATON_OK : BATON_ENOMEM;
    }
    return code == BATON_OK ? sessions_restore(ret, reader.data, reader.bytes) : code;
}

int state_begin(struct node *node, const struct raft_snapshot *snapshot, struct baton_error *reterr)
{
    struct node_state *state = calloc(1, sizeof(*state));
    struct sessions *sessions = NULL;
    int code = BATON_ENOMEM;

    if (state && (state->keys = keys_new())) {
        code = restore(snapshot->data, snapshot->bytes, state->keys, &sessions);
    }
    if (code == BATON_OK && !(node->host = session_host_new(node))) {
        code = BATON_ENOMEM;
    }
    if (code != BATON_OK) {
        sessions_free(sessions);
        if (state) {
            keys_free(state->keys);
            free(state);
        }
        return error_set(
            reterr, code, "data directory %s: the state in its snapshot: %s", node->options.data,
            code == BATON_ENOMEM    ? "out of memory"
            : code == BATON_ENOTSUP ? "a newer version of Baton has made it; run that one"
                                    : "damaged; " STORAGE_WAY_OUT);
    }
    state->node = node;
    session_host_install(node->host, sessions);
    watches_init(&state->watches);
    (void)uv_timer_init(node->loop, &state->timer);
    state->timer.data = state;
    orders_init(&state->orders, node, order_refused);
    node->state = state;
    return BATON_OK;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct node_state *state = handle->data;
    struct node *node = state->node;

    watches_sweep(&state->watches);
    keys_free(state->keys);
    keys_free(state->offered);
    sessions_free(state->offered_sessions);
    free(state);
    node_release(node);
}

static void on_orders_closed(uv_handle_t *handle)
{
    struct node_state *state =
        (struct node_state *)((char *)handle->data - offsetof(struct node_state, orders));

    uv_close((uv_handle_t *)&state->timer, on_timer_closed);
}

void state_end(struct node *node)
{
    struct node_state *state = node->state;

    if (!state) {
        return;
    }
    questions_end(&state->questions);
    watches_end(&state->watches); /* may run inside a watch's callback */
    node->state = NULL;
    session_host_end(node->host);
    node->host = NULL;
    node->open_handles++;
    orders_close(&state->orders, on_orders_closed);
}

/* ---- Answers --------------------------------------------------------------------------------- */

static const struct keys_value *next_of(const struct node_state *state, bool is_list,
                                        const char *name, const struct keys_value *prev)
{
    if (is_list) {
        return keys_next(state->keys, name, prev);
    }
    return prev ? NULL : keys_find(state->keys, name);
}

static int add_value(struct listing *ret, const struct keys_value *value)
{
    const struct provider_value found = {.key = value->name,
                                         .data = value->data,
                                         .bytes = value->bytes,
                                         .revision = value->revision};

    return listing_add(ret, &found);
}

static int collect(const struct node_state *state, bool is_list, const char *name,
                   struct listing *ret)
{
    const struct keys_value *value = NULL;

    *ret = (struct listing){0};
    while ((value = next_of(state, is_list, name, value))) {
        if (add_value(ret, value) != BATON_OK) {
            listing_fini(ret);
            return BATON_ENOMEM;
        }
    }
    return BATON_OK;
}

/* Those of the question's names that are there. */
static int collect_each(const struct node_state *state, const struct question *question,
                        struct listing *ret)
{
    const char *end = (const char *)question->order + question->bytes;
    int code = BATON_OK;

    *ret = (struct listing){0};
    for (const char *name = (const char *)question->order; code == BATON_OK && name < end;
         name += strlen(name) + 1) {
        const struct keys_value *value = keys_find(state->keys, name);

        code = value ? add_value(ret, value) : BATON_OK;
    }
    if (code != BATON_OK) {
        listing_fini(ret);
    }
    return code;
}

static void tell_answer(struct node_state *state, struct question *question)
{
    struct listing listing;

    if (question->kind != QUESTION_WRITE && question->code == BATON_OK) {
        question->code =
            question->kind == QUESTION_EACH
                ? collect_each(state, question, &listing)
                : collect(state, question->kind == QUESTION_LIST, question->name, &listing);
        if (question->code == BATON_OK) {
            question->on_values(question->userdata, BATON_OK, listing.values, listing.count);
            listing_fini(&listing);
            free(question);
            return;
        }
    }
    question_finish(question, question->code);
}

/* Call this when no step is under way. */
void state_deliver(struct node *node)
{
    struct node_state *state = node->state;
    struct question *question;

    if (!state || state->is_telling) {
        return;
    }
    state->is_telling = true;
    while (node->state && watches_deliver(&state->watches)) {
    }
    while (node->state && (question = questions_take_answered(&state->questions))) {
        tell_answer(state, question);
    }
    state->is_telling = false;
    watches_sweep(&state->watches);
}

/* ---- The timer: for what nobody answered, and for lifetimes ------------------------------------
 */

static void rearm(struct node_state *state)
{
    const struct keys_value *first = keys_first_to_expire(state->keys);
    uint64_t ms = UINT64_MAX;

    if (first) {
        span left = instant_since(first->expires, clock_now());
        ms = left.ns > 0 ? (uint64_t)left.ns / 1000000 + 1 : EXPIRE_RETRY_MS;
    }
    if (state->questions.first && ms > RETRY_MS) {
        ms = RETRY_MS;
    }
    if (ms == UINT64_MAX) {
        (void)uv_timer_stop(&state->timer);
    } else if (!uv_is_active((uv_handle_t *)&state->timer) ||
               uv_timer_get_due_in(&state->timer) > ms) {
        /* Never postpones the timer: new questions must not delay the earlier ones. */
        (void)uv_timer_start(&state->timer, on_timer, ms, 0);
    }
}

/* ---- What the log brings --------------------------------------------------------------------- */

static void answer_write(struct question *question, int code, const struct keys_order *order,
                         const struct keys_value *changed)
{
    if (question->is_answered) {
        return; /* its time was over */
    }
    if (code == BATON_ECONFLICT) {
        question->revision = changed->revision;
        (void)error_set(&question->error, code,
                        "key \"%.60s\": is at revision %llu, not at %llu; read it again",
                        question->name, (unsigned long long)changed->revision,
                        (unsigned long long)order->revision);
    } else if (code == BATON_OK && order->data) {
        question->revision = changed->revision;
    }
    question_answer(question, code);
}

/* False: out of memory. The keys then differ from the group's, and no order is carried out any
 * more.
 */
static bool carry_out_key(struct node_state *state, const struct raft_entry *entry,
                          raft_index index)
{
    struct node *node = state->node;
    struct keys_order order;
    struct keys_value changed;
    struct question *question;
    char name[KEYS_NAME_MAX + 1];
    int code;

    if (keys_decode(&order, entry->data, entry->bytes) != BATON_OK) {
        return true; /* an order of a later version; all nodes of this version skip it */
    }
    code = keys_carry_out(state->keys, &order, index, clock_now(), &changed);
    (void)snprintf(name, sizeof(name), "%.*s", (int)order.name_bytes, order.name);
    if (code == BATON_OK && changed.revision == index) {
        watches_note(&state->watches, name, &changed);
    }
    question = order.node == node->id ? questions_find(&state->questions, order.request) : NULL;
    /* Out of memory: the group carries it out, and the question's deadline says "may". */
    if (question && code != BATON_ENOMEM) {
        answer_write(question, code, &order, &changed);
    }
    return code != BATON_ENOMEM;
}

static bool carry_out(struct node_state *state, const struct raft_entry *entry, raft_index index)
{
    const uint8_t *data = entry->data;

    state->term = entry->term;
    session_host_reach(state->node->host, entry->term);
    if (entry->kind != RAFT_ENTRY_DATA) {
        return true;
    }
    return entry->bytes > 0 && data[0] == SESSION_ORDER_TAG
               ? session_host_apply(state->node->host, data, entry->bytes, index)
               : carry_out_key(state, entry, index);
}

int state_offer(struct node *node, const struct raft_snapshot *snapshot)
{
    struct node_state *state = node->state;
    struct keys *offered = state ? keys_new() : NULL;
    struct sessions *sessions = NULL;
    int code =
        offered ? restore(snapshot->data, snapshot->bytes, offered, &sessions) : BATON_ENOMEM;

    if (!state) {
        return BATON_OK;
    }
    keys_free(state->offered);
    sessions_free(state->offered_sessions);
    state->offered = offered;
    state->offered_sessions = sessions;
    if (code != BATON_OK) {
        keys_free(offered);
        state->offered = NULL;
    }
    return code;
}

/* Installs the state that state_offer decoded; cannot fail. */
static void install(struct node_state *state, const struct raft_snapshot *snapshot)
{
    struct keys *before = state->keys;
    struct keys *after = state->offered;
    const struct keys_value *value = NULL;

    INVARIANT(after != NULL);
    state->offered = NULL;
    state->keys = after;
    while ((value = keys_next(before, "", value))) {
        if (!keys_find(after, value->name)) {
            struct keys_value gone = {.revision = snapshot->index};
            watches_note(&state->watches, value->name, &gone);
        }
    }
    while ((value = keys_next(after, "", value))) {
        const struct keys_value *old = keys_find(before, value->name);
        if (!old || old->revision != value->revision) {
            watches_note(&state->watches, value->name, value);
        }
    }
    keys_free(before);
    session_host_install(state->node->host, state->offered_sessions);
    state->offered_sessions = NULL;
}

bool state_apply(struct node *node, const struct raft_update *update)
{
    struct node_state *state = node->state;

    if (!state || node->state_is_lost) {
        return true;
    }
    if (update->install) {
        install(state, update->install);
    }
    for (size_t i = 0; i < update->apply_count; i++) {
        if (!carry_out(state, &update->apply[i], update->apply_first + i)) {
            node->state_is_lost = true;
            return false;
        }
    }
    if (update->install || update->apply_count > 0) {
        rearm(state);
    }
    for (size_t i = 0; i < update->read_count; i++) {
        struct question *question = questions_find(&state->questions, update->reads[i].context);
        if (question) {
            question->index = update->reads[i].index; /* 0: refused; the timer asks again */
        }
    }
    return true;
}

void state_applied(struct node *node, raft_index applied)
{
    for (struct question *question = node->state ? node->state->questions.first : NULL; question;
         question = question->next) {
        if (question->kind != QUESTION_WRITE && question->index > 0 && question->index <= applied) {
            question_answer(question, BATON_OK);
        }
    }
}

void state_snapshot(const struct node *node, struct buffer *buffer)
{
    size_t begin = buffer->bytes;
    uint32_t bytes;

    if (!node->state) {
        return;
    }
    buffer_put_u8(buffer, NODE_STATE_FORMAT);
    buffer_put_u32(buffer, 0);
    keys_snapshot(node->state->keys, buffer);
    if (!buffer->failed) {
        bytes = (uint32_t)(buffer->bytes - begin - 5);
        for (int i = 0; i < 4; i++) {
            buffer->data[begin + 1 + (size_t)i] = (uint8_t)(bytes >> 8 * i);
        }
    }
    session_host_snapshot(node->host, buffer);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

/* Asks the leader, this node or another. An order is sent only once: it may be carried out even if
 * no reply comes. */
static void ask(struct node_state *state, struct question *question)
{
    struct node *node = state->node;
    struct raft_status status;

    raft_get_status(node->raft, &status);
    if (question->kind != QUESTION_WRITE) {
        if (question->index == 0) {
            struct raft_input input = {
                .type = RAFT_IN_READ,
                .read = {.context = question->id, .by_lease = !node->is_poisoned}};
            (void)node_step(node, &input);
        }
    } else if (question->is_sent || state->is_held_up) {
        return;
    } else if (status.role == RAFT_LEADER) {
        question->leader = RAFT_NOBODY; /* this node knows by itself what it did not append */
        question->is_sent = orders_add(&state->orders, node->id, question->id, question->order,
                                       question->bytes) == BATON_OK;
    } else if (status.leader != RAFT_NOBODY && connection_is_up(node, status.leader)) {
        state->is_held_up = !connection_has_room(node, status.leader);
        if (state->is_held_up) {
            return;
        }
        question->is_sent = true;
        question->leader = status.leader;
        question->term = status.term;
        connection_send_bytes(node, status.leader, FRAME_ORDER, question->id, question->order,
                              question->bytes);
    }
}

int state_send_order(struct node *node, uint64_t request, const void *data, size_t bytes,
                     bool is_urgent)
{
    struct raft_status status;

    if (!node->state) {
        return BATON_EUNAVAILABLE;
    }
    raft_get_status(node->raft, &status);
    if (status.role == RAFT_LEADER) {
        return orders_add(&node->state->orders, node->id, request, data, bytes);
    }
    if (status.leader == RAFT_NOBODY || !connection_is_up(node, status.leader)) {
        return BATON_EUNAVAILABLE;
    }
    (is_urgent ? connection_send_urgent : connection_send_bytes)(node, status.leader, FRAME_ORDER,
                                                                 request, data, bytes);
    return BATON_OK;
}

void state_flush_orders(struct node *node)
{
    if (node->state) {
        orders_flush(&node->state->orders);
    }
}

static bool is_order(const void *data, size_t bytes, bool *ret_is_urgent)
{
    struct session_order of_session;
    struct keys_order of_key;

    *ret_is_urgent = false;
    if (keys_decode(&of_key, data, bytes) == BATON_OK) {
        return true;
    }
    if (session_order_decode(&of_session, data, bytes) != BATON_OK) {
        return false;
    }
    *ret_is_urgent = orders_is_urgent(of_session.type);
    return true;
}

void state_receive_order(struct node *node, raft_id from, const struct frame *frame)
{
    bool is_valid, is_urgent;

    is_valid = node->state &&
               raft_configuration_find(raft_get_configuration(node->raft), from) != NULL &&
               is_order(frame->text, frame->text_bytes, &is_urgent);
    if (is_valid && is_urgent &&
        orders_is_copy(&node->state->orders, from, frame->text, frame->text_bytes)) {
        return;
    }
    if (!is_valid || orders_add(&node->state->orders, from, frame->request_id, frame->text,
                                frame->text_bytes) != BATON_OK) {
        connection_send_bytes(node, from, FRAME_REFUSED, frame->request_id, "", 0);
    }
}

/* A refused order is certainly not carried out, so it may be sent again. */
static void take_refusal(struct node *node, uint64_t request)
{
    struct question *question =
        node->state ? questions_find(&node->state->questions, request) : NULL;

    if (question) {
        question->is_sent = false;
    } else if (node->host) {
        session_host_refused(node->host, request);
    }
}

void state_receive_refusal(struct node *node, const struct frame *frame)
{
    take_refusal(node, frame->request_id);
}

static void order_refused(struct node *node, raft_id asker, uint64_t request)
{
    if (asker == node->id) {
        take_refusal(node, request);
    } else {
        connection_send_bytes(node, asker, FRAME_REFUSED, request, "", 0);
    }
}

static void expire_keys(struct node_state *state)
{
    struct node *node = state->node;
    const struct keys_value *value = keys_first_to_expire(state->keys);
    struct raft_status status;

    raft_get_status(node->raft, &status);
    if (value && status.role == RAFT_LEADER && !instant_before(clock_now(), value->expires)) {
        struct keys_order order = {
            .revision = value->revision, .name = value->name, .name_bytes = strlen(value->name)};
        struct buffer bytes;
        buffer_init(&bytes, KEYS_ORDER_MAX);
        keys_encode(&bytes, &order);
        if (!bytes.failed) {
            (void)orders_add(&state->orders, node->id, 0, bytes.data, bytes.bytes);
        }
        buffer_fini(&bytes);
    }
}

/* Its leader would have appended the order before the later term began. */
static bool is_lost(const struct node_state *state, const struct question *question)
{
    return question->is_sent && question->leader != RAFT_NOBODY && question->term < state->term &&
           !connection_is_up(state->node, question->leader);
}

static void give_up(struct question *question, const char *why)
{
    (void)error_set(&question->error, BATON_ETIMEDOUT, "key \"%.60s\": %s%s", question->name, why,
                    question->kind == QUESTION_WRITE ? "; it may still be carried out" : "");
    question_answer(question, BATON_ETIMEDOUT);
}

static void on_timer(uv_timer_t *timer)
{
    struct node_state *state = timer->data;
    struct node *node = state->node;
    instant now = clock_now();

    node->depth++; /* delivers replies after the loop over the list */
    state->is_held_up = false;
    for (struct question *question = state->questions.first; question; question = question->next) {
        if (!instant_before(now, question->deadline)) {
            give_up(question, "the group did not answer in time");
        } else if (is_lost(state, question)) {
            give_up(question, "the leader of the log failed");
        } else {
            ask(state, question);
        }
    }
    expire_keys(state);
    node->depth--;
    event_deliver(node);
    state_deliver(node);
    if (node->state) {
        rearm(state);
    }
}

/* A reply may come before this returns. */
static int submit(struct node *node, struct question *question)
{
    struct node_state *state = node->state;

    question->id = ++node->next_request;
    question->deadline = instant_add(clock_now(), SPAN_MS(PATIENCE_MS));
    if (question->kind == QUESTION_WRITE) {
        struct keys_order order;
        struct buffer bytes;
        (void)keys_decode(&order, question->order, question->bytes);
        order.node = node->id;
        order.request = question->id;
        buffer_init(&bytes, KEYS_ORDER_MAX);
        keys_encode(&bytes, &order);
        if (bytes.failed) {
            buffer_fini(&bytes);
            free(question);
            return BATON_ENOMEM;
        }
        memcpy(question->order, bytes.data, bytes.bytes);
        buffer_fini(&bytes);
    }
    questions_add(&state->questions, question);
    node->depth++;
    ask(state, question);
    state_applied(node, node->applied);
    node->depth--;
    event_deliver(node);
    state_deliver(node);
    if (node->state) {
        rearm(state);
    }
    return BATON_OK;
}

static int check(const struct node *node, const char *key, size_t bytes, struct baton_error *reterr)
{
    if (!node->state) {
        return error_set(reterr, BATON_EUNAVAILABLE,
                         "key \"%.60s\": the group has state once this node takes part in its "
                         "election",
                         key);
    }
    if (node->state->questions.count >= QUESTIONS_MAX) {
        return error_set(
            reterr, BATON_EBUSY,
            "key \"%.60s\": %d requests wait for the group's answer already; try again later", key,
            QUESTIONS_MAX);
    }
    if (strlen(key) > KEYS_NAME_MAX || bytes > KEYS_VALUE_MAX) {
        return error_set(reterr, BATON_ETOOBIG,
                         "key \"%.40s\": %zu bytes under a name of %zu; at most %d under %d are "
                         "taken",
                         key, bytes, strlen(key), KEYS_VALUE_MAX, KEYS_NAME_MAX);
    }
    return BATON_OK;
}

static int read_state(struct provider *provider, enum question_kind kind, const char *name,
                      provider_values_cb done, void *userdata, struct baton_error *reterr)
{
    struct node *node = (struct node *)provider;
    struct question *question;
    int code = check(node, name, 0, reterr);

    if (code != BATON_OK) {
        return code;
    }
    question = calloc(1, sizeof(*question));
    if (!question) {
        return error_set(reterr, BATON_ENOMEM, "key \"%.60s\": out of memory", name);
    }
    question->kind = kind;
    question->on_values = done;
    question->userdata = userdata;
    (void)snprintf(question->name, sizeof(question->name), "%s", name);
    return submit(node, question);
}

int state_get(struct provider *provider, const char *key, provider_values_cb done, void *userdata,
              struct baton_error *reterr)
{
    return read_state(provider, QUESTION_READ, key, done, userdata, reterr);
}

int state_get_each(struct provider *provider, const char *const *keys, size_t count,
                   provider_values_cb done, void *userdata, struct baton_error *reterr)
{
    struct node *node = (struct node *)provider;
    struct question *question;
    size_t bytes = 0;
    int code = BATON_OK;

    for (size_t i = 0; i < count && code == BATON_OK; i++) {
        code = check(node, keys[i], 0, reterr);
        bytes += strlen(keys[i]) + 1;
    }
    if (code != BATON_OK) {
        return code;
    }
    question = calloc(1, sizeof(*question) + bytes);
    if (!question) {
        return error_set(reterr, BATON_ENOMEM, "%zu keys: out of memory", count);
    }
    question->kind = QUESTION_EACH;
    question->on_values = done;
    question->userdata = userdata;
    (void)snprintf(question->name, sizeof(question->name), "%s", count > 0 ? keys[0] : "");
    for (size_t i = 0; i < count; i++) {
        memcpy(question->order + question->bytes, keys[i], strlen(keys[i]) + 1);
        question->bytes += strlen(keys[i]) + 1;
    }
    return submit(node, question);
}

int state_list(struct provider *provider, const char *prefix, provider_values_cb done,
               void *userdata, struct baton_error *reterr)
{
    return read_state(provider, QUESTION_LIST, prefix, done, userdata, reterr);
}

int state_put(struct provider *provider, const char *key, const void *data, size_t bytes,
              uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
              struct baton_error *reterr)
{
    struct node *node = (struct node *)provider;
    struct keys_order order = {.revision = revision,
                               .lifetime = lifetime,
                               .name = key,
                               .name_bytes = strlen(key),
                               .data = data,
                               .bytes = data ? bytes : 0};
    struct question *question = NULL;
    struct buffer encoded;
    int code = check(node, key, bytes, reterr);

    if (code != BATON_OK) {
        return code;
    }
    buffer_init(&encoded, KEYS_ORDER_MAX);
    keys_encode(&encoded, &order);
    if (!encoded.failed) {
        question = calloc(1, sizeof(*question) + encoded.bytes);
    }
    if (question) {
        question->kind = QUESTION_WRITE;
        question->on_put = done;
        question->userdata = userdata;
        question->bytes = encoded.bytes;
        (void)snprintf(question->name, sizeof(question->name), "%s", key);
        memcpy(question->order, encoded.data, encoded.bytes);
    }
    buffer_fini(&encoded);
    code = question ? submit(node, question) : BATON_ENOMEM;
    return code == BATON_OK ? code : error_set(reterr, code, "key \"%.60s\": out of memory", key);
}

int state_watch(struct provider *provider, const char *prefix, provider_values_cb on_change,
                void *userdata, struct baton_error *reterr)
{
    struct node *node = (struct node *)provider;
    struct listing listing;
    int code = check(node, prefix, 0, reterr);

    if (code != BATON_OK) {
        return code;
    }
    if (collect(node->state, true, prefix, &listing) != BATON_OK) {
        return error_set(reterr, BATON_ENOMEM, "keys \"%.60s\": out of memory", prefix);
    }
    if (watches_add(&node->state->watches, prefix, on_change, userdata) == BATON_OK) {
        on_change(userdata, BATON_OK, listing.values, listing.count);
    } else {
        code = error_set(reterr, BATON_ENOMEM, "keys \"%.60s\": out of memory", prefix);
    }
    listing_fini(&listing);
    return code;
}

void state_unwatch(struct provider *provider, const char *prefix, void *userdata)
{
    struct node *node = (struct node *)provider;

    if (!node->state) {
        return;
    }
    watches_drop(&node->state->watches, prefix, userdata);
    if (!node->state->is_telling) {
        watches_sweep(&node->state->watches);
    }
}
