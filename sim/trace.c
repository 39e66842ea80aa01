/* The lines of the story of a world. */
#include "sim/trace.h"

#include <stdarg.h>
#include <stdio.h>

static void add_line(struct world *world, raft_id node, const char *format, va_list arguments)
{
    char who[48] = "";

    if (node != RAFT_NOBODY) {
        (void)snprintf(who, sizeof(who), "n%llu/%llu", (unsigned long long)node,
                       (unsigned long long)world->nodes[node].incarnation);
    }
    story_add(&world->story, world->now, who, format, arguments);
}

void trace_say(struct world *world, raft_id node, const char *format, ...)
{
    va_list arguments;

    story_mix(&world->story, (uint64_t)world->now ^ (node << 56));
    if (trace_wants(world)) {
        va_start(arguments, format);
        add_line(world, node, format, arguments);
        va_end(arguments);
    }
}

void trace_show(struct world *world, raft_id node, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    add_line(world, node, format, arguments);
    va_end(arguments);
}

static void say_message(struct world *world, const struct event *event)
{
    const struct raft_message *m = event->message;
    char detail[80] = "";

    switch (m->type) {
    case RAFT_MSG_HEARTBEAT_REPLY:
        (void)snprintf(detail, sizeof(detail), "granted %.3f ms",
                       (double)m->heartbeat_reply.granted.ns / 1e6);
        break;
    case RAFT_MSG_VOTE_REPLY:
    case RAFT_MSG_PRE_VOTE_REPLY:
        (void)snprintf(detail, sizeof(detail), "%s, promised %.3f ms",
                       m->vote_reply.granted ? "granted" : "refused",
                       (double)m->vote_reply.promised.ns / 1e6);
        break;
    case RAFT_MSG_VOTE:
    case RAFT_MSG_PRE_VOTE:
        (void)snprintf(detail, sizeof(detail), "last %llu/%llu proof n%llu",
                       (unsigned long long)m->vote.last_index,
                       (unsigned long long)m->vote.last_term,
                       (unsigned long long)m->vote.proof.node);
        break;
    case RAFT_MSG_APPEND:
        (void)snprintf(detail, sizeof(detail), "after %llu/%llu, %zu entries, commit %llu",
                       (unsigned long long)m->append.prev_index,
                       (unsigned long long)m->append.prev_term, m->append.entry_count,
                       (unsigned long long)m->append.commit);
        break;
    case RAFT_MSG_APPEND_REPLY:
        (void)snprintf(detail, sizeof(detail), "%s %llu",
                       m->append_reply.rejected ? "rejected" : "has",
                       (unsigned long long)m->append_reply.index);
        break;
    default:
        break;
    }
    trace_show(world, event->node, "<- n%llu/%llu %s term %llu %s", (unsigned long long)m->from,
               (unsigned long long)m->incarnation, raft_message_name(m->type),
               (unsigned long long)m->term, detail);
}

static void say_proof(struct world *world, const struct event *event)
{
    const struct proof_input *p = event->proof;
    trace_show(world, event->node, "proof %s: n%llu/%llu heir n%llu", raft_proof_name(p->kind),
               (unsigned long long)p->proof.node, (unsigned long long)p->proof.incarnation,
               (unsigned long long)p->heir);
}

void trace_event(struct world *world, const struct event *event)
{
    story_mix(&world->story, (uint64_t)event->at);
    story_mix(&world->story, (uint64_t)event->kind << 32 ^ event->node << 8 ^ event->number);
    if (!trace_wants(world)) {
        return;
    }
    switch (event->kind) {
    case EVENT_MESSAGE:
        say_message(world, event);
        break;
    case EVENT_PROOF:
        say_proof(world, event);
        break;
    case EVENT_CONNECTION:
        trace_show(world, event->node, "connection to n%llu is %s", (unsigned long long)event->peer,
                   event->number ? "up" : "down");
        break;
    default:
        break;
    }
}
