/* Parsers of a server's data: bytes and replies in, structs out.
 *
 * Other programs may write anything into an election's keys and channels. So no parser trusts a
 * type, a length, a number or a time, and all of them are pure: no I/O, no clock, no state. Inner
 * header: for the files of this folder and their tests.
 *
 *   parse_lock.c      answers of the lock's scripts, and where a sweep goes on
 *   parse_notice.c    published messages: to wake an election, and changes of the state
 *   parse_registry.c  answers of the registry's scripts, and the JSON of others in it
 *   parse_state.c     answers of the state's scripts
 *
 * net/redis parses replies to commands outside scripts: INFO, messages, redirections, slots,
 * Sentinels.
 */
#ifndef PROVIDER_REDIS_PARSE_H
#define PROVIDER_REDIS_PARSE_H

#include "lease/majority.h"
#include "provider/provider.h"

#include <hiredis/hiredis.h>

enum { PARSE_ENTRY_MAX = 64 * 1024 }; /* bytes of a process's own entry */

/* Scripts count in doubles: from here on one more may be the same number. */
#define PARSE_NUMBER_MAX (((uint64_t)1 << 53) - 1)

/* Digits and nothing else, up to PARSE_NUMBER_MAX. */
bool parse_number(uint64_t *ret, const char *text, size_t bytes);

/* ---- The lock -------------------------------------------------------------------------------- */

struct lock_answer {
    struct majority_reply reply;  /* but for its .holder */
    char holder[BATON_NAME_MAX];  /* HELD: the holder, printable; never "" */
    bool is_odd;                  /* that is not all of it, or not as it was */
    char spoiled[BATON_NAME_MAX]; /* GRANTED: what stood in an epoch's place and is none; or "" */
    bool is_endless;              /* HELD: the lock has no lifetime */
    span max_lease;               /* HELD: the holder's setting; 0: not known */
    bool has_beat;                /* HELD: there is a heartbeat, and this is its age; */
    int64_t beat_age_ms;          /* below 0: it comes from the future */
};

/* False: not what a script of the lock's answers. */
bool parse_lock(struct lock_answer *ret, const redisReply *reply);

/* Where a sweep goes on. False: it is at its end, or that is no cursor. */
bool parse_cursor(char ret[24], const redisReply *reply);

/* ---- Notices --------------------------------------------------------------------------------- */

enum notice_type {
    NOTICE_RELEASED, /* "released BY [FOR] [EPOCH]", or "offered BY FOR [EPOCH]" */
    NOTICE_TAKEN,    /* "taken EPOCH BY" */
    NOTICE_MEMBERS,  /* "members [WHO CAME]" */
};

struct notice {
    enum notice_type type;
    uint64_t epoch;            /* TAKEN; RELEASED: the epoch that is over, 0: not given */
    char by[BATON_NAME_MAX];   /* the sender; MEMBERS: "": several */
    char heir[BATON_NAME_MAX]; /* RELEASED: the heir; "": any process */
    bool is_offer;             /* the heir was not chosen: it only asks first */
};

/* False: the message is not one of ours. */
bool parse_notice(struct notice *ret, const char *text, size_t bytes);

/* A change of the state: "REVISION LENGTH HAS-VALUE NAME" and, right behind it, the value. Its .key
 * is `name`, its data borrowed. False: the message is not one of ours. */
bool parse_change(struct provider_value *ret, char name[PROVIDER_KEY_MAX + 1], const char *text,
                  size_t bytes);

/* ---- The registry ---------------------------------------------------------------------------- */

/* Of one election: how many are in it, and of these, how many have a lifetime in the sorted set. */
struct registered {
    uint32_t count; /* at least 1 */
    uint32_t dated;
};

/* How entries end, and what became of the elections. False: that is no such answer. */
bool parse_registered(struct registered *ret, size_t elections, char ret_way[16],
                      const redisReply *reply);

/* Whether these are ids and JSON in turns, to be understood by parse_member(). */
bool parse_members(const redisReply *reply);

enum member_fault {
    MEMBER_FINE,
    MEMBER_NAMELESS, /* the id is invalid */
    MEMBER_TOO_LONG, /* more than PARSE_ENTRY_MAX: not read */
    MEMBER_NO_JSON,  /* no JSON object */
    MEMBER_ODD,      /* a field that we read is of another type than the seed's */
    MEMBER_AHEAD,    /* it was last seen in the future */
};

/* Another member, by its own entry; missing fields are NULL or "". */
struct parsed_member {
    enum member_fault fault;   /* the rest is there all the same, but for NAMELESS */
    char id[BATON_NAME_MAX];   /* as it may be shown */
    char name[BATON_NAME_MAX]; /* its identifier, or else its id */
    char *metadata;            /* a JSON object; parsed_member_fini() */
    int64_t seen_ms;           /* "lastSeen", by its own entry; 0: none */
    span max_lease;            /* "maxLease"; 0: none */
    bool is_cordoned;          /* "observes"; the seed's peers have neither */
};

/* latest: times beyond this one, as the seed writes them, are in the future. Without memory an
 * entry has no metadata. */
void parse_member(struct parsed_member *ret, const redisReply *id, const redisReply *json,
                  int64_t latest_unix_ms);
void parsed_member_fini(struct parsed_member *member);

/* ---- State ----------------------------------------------------------------------------------- */

/* Data and keys are borrowed from the answer. BATON_EPROTO: it is not what was asked for. */

/* One value. *ret_there: whether there is one. Its .key is left to the caller. */
int parse_value(struct provider_value *ret, bool *ret_there, const redisReply *reply);
/* Name, value and revision in turns; those that are no such thing are left out and counted as odd.
 * free() the array. BATON_ENOMEM. */
int parse_values(struct provider_value **ret, size_t *ret_count, size_t *ret_odd,
                 const redisReply *reply);
/* BATON_ECONFLICT: it is at another revision, which is this one. */
int parse_put(uint64_t *ret_revision, const redisReply *reply);

#endif
