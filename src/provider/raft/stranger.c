/* Who knocks and has not greeted yet. A stranger costs a descriptor and a little memory, so there
 * are few at a time and each has little time: who has stood at the door the longest is turned out
 * first. An honest peer greets within a round trip, so a crowd that says nothing keeps nobody out.
 */
#include "provider/raft/node.h"

enum { LOOK_EVERY_MS = 1000 };

static void turn_out(struct connection *connection, const char *reason)
{
    struct node *node = connection->node;

    stranger_end(connection);
    node->counters.refused_strangers++;
    connection_log_refusal(connection, reason);
    stream_close(connection->stream);
}

static void on_look(uv_timer_t *timer)
{
    struct node *node = timer->data;
    instant now = clock_now();
    struct connection *next;

    for (struct connection *one = node->accepted; one; one = next) {
        next = one->next;
        if (one->is_stranger &&
            instant_since(now, one->since).ns > SPAN_MS(NODE_STRANGER_LIFE_MS).ns) {
            turn_out(one, "has not greeted in time");
        }
    }
    if (node->stranger_count == 0) {
        (void)uv_timer_stop(timer);
    }
}

/* Accepted ones are listed by age, the youngest first. */
static struct connection *oldest(const struct node *node)
{
    struct connection *found = NULL;

    for (struct connection *one = node->accepted; one; one = one->next) {
        found = one->is_stranger ? one : found;
    }
    return found;
}

void stranger_begin(struct connection *connection)
{
    struct node *node = connection->node;

    connection->is_stranger = true;
    connection->since = clock_now();
    node->stranger_count++;
    if (node->stranger_count > NODE_STRANGERS_MAX) {
        turn_out(oldest(node), "made room for another one that has not greeted");
    }
    if (!uv_is_active((uv_handle_t *)&node->door)) {
        (void)uv_timer_start(&node->door, on_look, LOOK_EVERY_MS, LOOK_EVERY_MS);
    }
}

void stranger_end(struct connection *connection)
{
    if (connection->is_stranger) {
        connection->is_stranger = false;
        connection->node->stranger_count--;
    }
}
