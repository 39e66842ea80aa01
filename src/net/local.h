/* Messages between processes of one machine: lines of JSON over a Unix stream socket.
 *
 *   net/listener.h ─▶ local_accept ─┐
 *                                local_connect ─┴▶ on_open ─▶ on_message … ─▶ on_close
 *
 * Each message is one JSON object on one line of at most LOCAL_LINE_MAX bytes. Long texts of bytes
 * may follow the line as they are (local_send_raw), since JSON takes longer than a takeover may:
 *
 *   {"do":"put","key":"k","raw":5000}\n<5000 bytes>
 *
 * Whoever receives it finds "text" in the message, and has nothing to do for it. A peer that sends
 * anything else is answered {"ok":false,"code":…,"error":…} and the connection is closed; one that
 * does not read is closed once LOCAL_QUEUE_MAX bytes wait for it. All of it belongs to the loop's
 * thread. on_close comes exactly once and last; its connection is freed when it has returned.
 */
#ifndef NET_LOCAL_H
#define NET_LOCAL_H

#include "base/buffer.h"
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

enum {
    LOCAL_LINE_MAX = 2 * 1024 * 1024,
    LOCAL_QUEUE_MAX = 4 * 1024 * 1024,
    LOCAL_VALUES_MAX = 4096, /* of JSON, in a message of a client */
    LOCAL_LIST_MAX =
        64 * 1024 * 1024, /* bytes of values in one list, which takes several messages */
};

struct local; /* a connection; opaque */

struct local_callbacks {
    /* NULL: not needed. */
    void (*on_open)(struct local *local, void *userdata);
    /* `message` is an object, borrowed during the call, which may close the connection. */
    void (*on_message)(struct local *local, json_t *message, void *userdata);
    /* code: 0 the peer ended it, BATON_ECANCELED it was closed here, BATON_EPROTO and BATON_ETOOBIG
     * what was sent is wrong, and as struct stream_callbacks has it. */
    void (*on_close)(struct local *local, int code, const char *reason, void *userdata);
    /* The peer has passed a pidfd, which the callee closes. NULL: descriptors are refused. */
    void (*on_pidfd)(struct local *local, int pidfd, void *userdata);
    /* The socket has taken all that waited for it. NULL: not needed. */
    void (*on_drain)(struct local *local, void *userdata);
    /* The messages of this peer have taken the loop for 100 us, and others have their turn: it is
     * not read before local_go_on(). NULL: no limit. */
    void (*on_turn)(struct local *local, void *userdata);
};

/* Who connected, by the kernel's word. The caller closes `pidfd`, -1: none could be had. */
struct local_peer {
    pid_t pid; /* 0: it is not visible from this PID namespace */
    uid_t uid;
    gid_t gid;
    int pidfd;
    bool is_exact; /* the kernel gave the pidfd with the connection: no number was reused */
};

/* Of a connection that a listener has accepted. `fd` is the connection's, also when this fails.
 * on_open may come before it returns. */
int local_accept(struct local **ret, uv_loop_t *loop, int fd,
                 const struct local_callbacks *callbacks, void *userdata,
                 struct baton_error *reterr);
int local_connect(struct local **ret, uv_loop_t *loop, const char *path,
                  const struct local_callbacks *callbacks, void *userdata,
                  struct baton_error *reterr);

/* BATON_ETOOBIG: it does not read, or the message is too long; BATON_ECLOSED; BATON_ENOMEM. Then
 * the connection is closing. */
int local_send(struct local *local, const json_t *message);
/* From now on long texts go behind the line: the peer has said that it reads them there. */
void local_send_raw(struct local *local);
/* Its next turn, in a later round of the loop than on_turn. Nothing happens if it waits for none.
 */
void local_go_on(struct local *local);
/* Bytes that were sent, and that the peer has not made room for. */
size_t local_backlog(const struct local *local);
/* Whether nothing waits for the peer, and it is not closing: else on_drain comes, or on_close. */
bool local_is_drained(const struct local *local);
/* Passes a pidfd to the peer, between two messages. False: it was not passed. */
bool local_pass_pidfd(struct local *local, int pidfd);
/* What was sent still goes out, as far as the socket takes it. */
void local_close(struct local *local);
int local_fd(const struct local *local); /* of its socket; borrowed */
int local_peer(const struct local *local, struct local_peer *ret, struct baton_error *reterr);
/* Whether both are the same process. False as well where the kernel cannot say, of processes that
 * are not visible from this PID namespace (before Linux 6.9). */
bool local_peer_is(const struct local_peer *peer, const struct local_peer *other);
/* Whether the process was in the group when it connected, by its own group or a supplementary one.
 * False as well where the kernel does not say. */
bool local_peer_has_group(const struct local *local, const struct local_peer *peer, gid_t group);

enum { LOCAL_TEXT_MAX = 256 * 1024 };

/* Bytes in a message: a member "text" where they are valid UTF-8 and at most LOCAL_TEXT_MAX, of
 * which each may take six in JSON; else "base64". */
void local_put_bytes(json_t *message, const void *data, size_t bytes);

struct local_bytes {
    const void *data; /* NULL: none */
    size_t count;
    unsigned char *own; /* NULL, or what the caller frees */
};

/* Borrows from `message`, or fills in `own`. False: there are none, or they are wrong. */
bool local_take_bytes(struct local_bytes *ret, const json_t *message);

/* How many values of JSON a line has, at most: parsing takes its time and memory by their number.
 */
size_t local_values(const char *line, size_t bytes);

/* How much the bytes in a message take there. */
size_t local_bytes_taken(const json_t *message);

/* Bytes that follow the line of a message: of its members "raw", and of those in "values". */

/* Appends the long texts to `raw`. A new reference: the message without them; or NULL, out of
 * memory. */
json_t *local_raw_split(const json_t *message, struct buffer *raw);
/* How many bytes follow; -1: that is wrong, or more than LOCAL_LINE_MAX. */
long local_raw_bytes(const json_t *message);
/* Puts them into the message. False: out of memory. */
bool local_raw_join(json_t *message, const char *data);

enum { LOCAL_PATH_MAX = 4096 }; /* bytes of a path, with the NUL; a socket's has at most 107 */

/* Where the agent of this host listens, unless `given` (not NULL) names it: $BATON_AGENT; for a
 * user, $XDG_RUNTIME_DIR/baton/agent.sock, if it is there or `serves`; else
 * /run/baton/agent.sock. */
void local_agent_path(char ret[static LOCAL_PATH_MAX], const char *given, bool serves);

/* Of the agent that a URL names: agent:, agent:/path, agent:///path. BATON_EINVAL: its path is
 * relative, or too long. */
int local_agent_url(char ret[static LOCAL_PATH_MAX], const char *url, struct baton_error *reterr);

/* The name of an error code without BATON_, as messages have it: "EINVAL"; and the code of such a
 * name, BATON_EPROTO for any other. */
const char *local_code_name(int code);
int local_code(const char *name);

#endif
