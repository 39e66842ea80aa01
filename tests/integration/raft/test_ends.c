/* Many sessions whose lifetime is over at once, as after a stop of the leader, where the order of
 * each session's end takes long. */
#include "lib/await.h"
#include "lib/process.h"
#include "provider/provider.h"
#include "provider/raft/raft_provider.h"
#include "sessions/order.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* All ends together take longer than the second after which each is ordered again. */
enum { SESSIONS = 15, END_MS = 100, ENDS_MAX = 10 * SESSIONS };

static uv_loop_t loop;
static int ends;
static uint64_t sessions[SESSIONS];
static int attached, detached;
static bool is_closed;

void __real_session_order_encode(struct buffer *buffer, const struct session_order *order);
void __wrap_session_order_encode(struct buffer *buffer, const struct session_order *order);

void __wrap_session_order_encode(struct buffer *buffer, const struct session_order *order)
{
    const struct timespec moment = {.tv_nsec = END_MS * 1000000};

    if (order->type == SESSION_END) {
        (void)nanosleep(&moment, NULL); /* a machine with many sessions, or a busy one */
        if (++ends > ENDS_MAX) {
            fail_msg("ends are ordered again and again, and the loop does nothing else");
        }
    }
    __real_session_order_encode(buffer, order);
}

static void on_session(void *userdata, uint64_t session)
{
    uint64_t *own = userdata;

    attached += *own == 0 && session != 0;
    *own = session;
}

static void on_detached(void *userdata)
{
    detached++;
}

static void on_closed(void *userdata)
{
    is_closed = true;
}

static struct provider *attach(struct provider *node, int number)
{
    const uint8_t secret[PROVIDER_SECRET_BYTES] = {(uint8_t)(number + 1)};
    const struct provider_process about = {
        .name = "p", .secret = secret, .on_session = on_session, .userdata = &sessions[number]};
    struct provider *handle = NULL;

    assert_int_equal(provider_attach(&handle, node, NULL, &about, NULL), BATON_OK);
    return handle;
}

static void a_leader_goes_on_while_many_sessions_end(void **state)
{
    struct provider *node, *handles[SESSIONS];
    char folder[64], url[256];
    const struct provider_config config = {.loop = &loop, .url = url, .node = "n0"};

    process_make_folder(folder, sizeof(folder));
    (void)snprintf(url, sizeof(url),
                   "raft://127.0.0.1:0?group=ends&preset=fast&heartbeat-timeout=3s&lease=3s"
                   "&guardian=no&data=%s",
                   folder);
    assert_int_equal(provider_open(&node, &config, NULL), BATON_OK);
    for (int i = 0; i < SESSIONS; i++) {
        handles[i] = attach(node, i);
    }
    AWAIT(attached == SESSIONS);
    for (int i = 0; i < SESSIONS; i++) {
        provider_detach(handles[i], on_detached, NULL); /* nobody renews its session any more */
    }
    AWAIT(detached == SESSIONS && ends >= SESSIONS);
    attached = 0;
    sessions[0] = 0;
    handles[0] = attach(node, 0);
    AWAIT(attached == 1); /* the leader orders, commits and replies */
    handles[0]->ops->close(handles[0], on_detached, NULL);
    node->ops->close(node, on_closed, NULL);
    AWAIT(is_closed);
    process_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_leader_goes_on_while_many_sessions_end)};

    return uv_loop_init(&loop) == 0 ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
