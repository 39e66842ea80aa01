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

/* Scripts compute in doubles: beyond this, n and n + 1 may be equal. */
#define PARSE_NUMBER_MAX (((uint64_t)1 << 53) - 1)

/* Accepts only digits, up to PARSE_NUMBER_MAX. */
bool parse_number(uint64_t *ret, const char *text, size_t bytes);

/* ---- The lock -------------------------------------------------------------------------------- */

struct lock_answer {
    struct majority_reply reply;  /* without its .holder */
    char holder[BATON_NAME_MAX];  /* HELD: the holder, printable; never "" */
    bool is_odd;                  /* the holder is truncated or has replaced characters */
    char spoiled[BATON_NAME_MAX]; /* GRANTED: a stored value that is no epoch; or "" */
    bool is_endless;              /* HELD: the lock has no lifetime */
    span max_lease;               /* HELD: the holder's setting; 0: not known */
    bool has_beat;                /* HELD: the holder has a heartbeat, of this age; */
    int64_t beat_age_ms;          /* below 0: it is in the future */
};

/* False: not a reply of the lock's scripts. */
bool parse_lock(struct lock_answer *ret, const redisReply *reply);

/* Parses the cursor at which a sweep continues. False: the sweep is complete, or it is no
 * cursor. */
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

/* The number of an election's entries, and of those with a lifetime in the sorted set. */
struct registered {
    uint32_t count; /* at least 1 */
    uint32_t dated;
};

/* Parses how entries expire, and the counts of each election. False: an invalid reply. */
bool parse_registered(struct registered *ret, size_t elections, char ret_way[16],
                      const redisReply *reply);

/* Whether the reply alternates ids and JSON, for parse_member(). */
bool parse_members(const redisReply *reply);

enum member_fault {
    MEMBER_FINE,
    MEMBER_NAMELESS, /* the id is invalid */
    MEMBER_TOO_LONG, /* more than PARSE_ENTRY_MAX: not read */
    MEMBER_NO_JSON,  /* no JSON object */
    MEMBER_ODD,      /* a field that we read has another type than the seed's */
    MEMBER_AHEAD,    /* its latest sign of life is in the future */
};

/* Another member, by its own entry; missing fields are NULL or "". */
struct parsed_member {
    enum member_fault fault;   /* the other fields are set, except for NAMELESS */
    char id[BATON_NAME_MAX];   /* printable */
    char name[BATON_NAME_MAX]; /* its identifier, or its id */
    char *metadata;            /* a JSON object; parsed_member_fini() */
    int64_t seen_ms;           /* "lastSeen", by its own entry; 0: none */
    span max_lease;            /* "maxLease"; 0: none */
    bool is_cordoned;          /* "observes"; the seed's peers have neither */
};

/* latest: later times, in the seed's format, are in the future. Out of memory, the entry has no
 * metadata. */
void parse_member(struct parsed_member *ret, const redisReply *id, const redisReply *json,
                  int64_t latest_unix_ms);
void parsed_member_fini(struct parsed_member *member);

/* ---- State ----------------------------------------------------------------------------------- */

/* These borrow data and keys from the reply. BATON_EPROTO: an unexpected reply. */

/* Parses one value. *ret_there: whether it exists. The caller sets its .key. */
int parse_value(struct provider_value *ret, bool *ret_there, const redisReply *reply);
/* Parses names, values and revisions in turns; skips invalid ones and counts them in *ret_odd. The
 * caller frees the array. BATON_ENOMEM. */
int parse_values(struct provider_value **ret, size_t *ret_count, size_t *ret_odd,
                 const redisReply *reply);
/* BATON_ECONFLICT: the key has another revision, *ret_revision. */
int parse_put(uint64_t *ret_revision, const redisReply *reply);

#endif
