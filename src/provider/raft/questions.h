/* This node's requests to its group about keys that have no reply yet.
 *
 * A reply is noted during a step, and its callback is called when no step is under way: the
 * callback may ask again. One thread; inside of this folder only.
 */
#ifndef PROVIDER_RAFT_QUESTIONS_H
#define PROVIDER_RAFT_QUESTIONS_H

#include "provider/provider.h"
#include "provider/raft/keys.h"
#include "raft/raft.h"

enum question_kind { QUESTION_READ, QUESTION_EACH, QUESTION_LIST, QUESTION_WRITE };

struct question {
    struct question *next;
    uint64_t id;
    enum question_kind kind;
    instant deadline;
    provider_values_cb on_values;
    provider_put_cb on_put;
    void *userdata;
    raft_index index; /* of a read: reply once this index is applied; 0: unknown */
    bool is_answered;
    int code;
    uint64_t revision; /* at which the key of a write is then; 0: absent, or not known */
    struct baton_error error;
    bool is_sent; /* a leader received the order: */
    raft_id leader;
    raft_term term;
    size_t bytes; /* of `order` */
    char name[KEYS_NAME_MAX + 1];
    uint8_t order[]; /* QUESTION_WRITE; QUESTION_EACH: the names, with a NUL behind each */
};

struct questions {                 /* {0}: none */
    struct question *first, *last; /* in the order in which they were asked, as replies come */
    size_t count;
};

/* Takes ownership. */
void questions_add(struct questions *questions, struct question *question);
struct question *questions_find(const struct questions *questions, uint64_t id); /* NULL: none */
/* Removes a question that has a reply, for question_finish(); NULL: none has. */
struct question *questions_take_answered(struct questions *questions);
/* No reply will come any more: all callers get BATON_ECANCELED. */
void questions_end(struct questions *questions);

/* Records a reply; only the first one counts. */
void question_answer(struct question *question, int code);
/* Calls the caller's callback, and frees the request. */
void question_finish(struct question *question, int code);

#endif
