/* A transcript: a script of inputs to a few cores, with all that came out of them.
 *
 *   # a comment
 *   > a command
 *       what came out of it, a line for each message, write, event and change of a lease
 *
 * transcript.c carries out the commands; transcript_print.c writes what an update says.
 */
#ifndef TESTS_UNIT_RAFT_TRANSCRIPT_H
#define TESTS_UNIT_RAFT_TRANSCRIPT_H

#include "cluster.h"

#include <stdio.h>

enum { TRANSCRIPT_HIDDEN_MAX = 16, TRANSCRIPT_WORD = 32 };

struct transcript {
    struct cluster *cluster;
    FILE *out;
    instant begin;
    instant shown;                                       /* the time of the line before */
    char hidden[TRANSCRIPT_HIDDEN_MAX][TRANSCRIPT_WORD]; /* kinds of lines that are left out */
    size_t hidden_count;
    bool is_silent;
    struct { /* the next `left` messages of this type on this connection are lost */
        size_t left;
        char type[TRANSCRIPT_WORD];
        raft_id from, to; /* RAFT_NOBODY: any */
    } losses;
    bool is_lost[QUEUE_MAX]; /* the messages of the update that was printed last */
    size_t sent;             /* of these, given to the network so far */
    struct raft_lease leases[CLUSTER_MAX];
};

/* Carries out the script and writes it to `out` again, with what came out now. Fails the test, with
 * `name` and the line, at a command that it does not know. */
void transcript_play(const char *name, FILE *script, FILE *out);

/* One line of output, with the time in front if that has changed. */
void transcript_line(struct transcript *transcript, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void transcript_update(struct cluster *cluster, struct node *node,
                       const struct raft_update *update);
bool transcript_filter(struct cluster *cluster, const struct raft_message *message);
/* "n1 n2 n3:learner", into at least 256 bytes. */
void transcript_members(const struct raft_configuration *configuration, char *ret, size_t size);

#endif
