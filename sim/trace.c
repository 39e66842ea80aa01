/* What happened, as lines for people, and as one hash that tells two runs apart. */
#include "sim/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void mix(struct world *world, uint64_t value)
{
    world->trace.hash = (world->trace.hash ^ value) * 0x9e3779b97f4a7c15u;
    world->trace.hash ^= world->trace.hash >> 29;
}

void trace_begin(struct world *world)
{
    world->trace.prints = world->options.prints_trace;
    world->trace.keeps = world->options.keeps_trace || world->options.prints_trace;
    world->trace.hash = world->options.seed + 1;
    world->trace.lines = 0;
}

static void add_line(struct world *world, raft_id node, const char *format, va_list arguments)
{
    struct trace *trace = &world->trace;
    char *line = trace->line[trace->lines % SIM_TRACE_LINES];
    int length;

    length = snprintf(line, SIM_TRACE_COLUMNS, "%12.6f ms  ", (double)world->now / 1e6);
    if (node != RAFT_NOBODY) {
        length +=
            snprintf(line + length, SIM_TRACE_COLUMNS - (size_t)length, "n%llu/%llu  ",
                     (unsigned long long)node, (unsigned long long)world->nodes[node].incarnation);
    }
    (void)vsnprintf(line + length, SIM_TRACE_COLUMNS - (size_t)length, format, arguments);
    trace->lines++;
    if (trace->prints) {
        (void)puts(line);
    }
}

void trace_say(struct world *world, raft_id node, const char *format, ...)
{
    va_list arguments;

    mix(world, (uint64_t)world->now ^ (node << 56));
    if (trace_wants(world)) {
        va_start(arguments, format);
        add_line(world, node, format, arguments);
        va_end(arguments);
    }
}

/* The same for what the hash knows already. */
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
        (void)snprintf(detail, sizeof(detail), "%s", m->vote_reply.granted ? "granted" : "refused");
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
    mix(world, (uint64_t)event->at);
    mix(world, (uint64_t)event->kind << 32 ^ event->node << 8 ^ event->number);
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

void trace_print_tail(const struct world *world)
{
    const struct trace *trace = &world->trace;
    size_t from = trace->lines > SIM_TRACE_LINES ? trace->lines - SIM_TRACE_LINES : 0;

    for (size_t i = from; i < trace->lines; i++) {
        (void)printf("    %s\n", trace->line[i % SIM_TRACE_LINES]);
    }
}
